"""Whether a set-up fits in memory, which one feasible plan answers long before the best one is found.

If it does not fit: what a chip would hold, and the next larger machine that fits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import prod
from typing import Any

import click

from scalingbook_cli import plan, serve
from scalingbook_cli.parameter_types import written_fields
from scalingbook_cli.workbench import shown
from scalingbook_cli.workbench.answers import answered, of_field, read
from scalingbook_cli.workbench.setup import WorkbenchSetup
from scalingbook_lib import inference, training
from scalingbook_lib.machines import Chip, Cluster, Machine, Slice, chips
from scalingbook_lib.machines.torus import write_shape
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner import Rejected
from scalingbook_lib.planner.space import CANDIDATES, LADDER
from scalingbook_lib.units import BF16, si

WHAT = {"plan": "Training", "serve": "Serving"}
MACHINES = {"plan": "machine", "serve": "server"}  # the field of a command's machine
OFFERED = ("v5e:4x4", "v5p:4x4x4", "v5p:8x8x8", "v6e:16x16", "tpu7x:4x4x4", "h100:8", "h100:512", "b200:8")
MOST_CHIPS = 2**17  # larger clusters are not looked at
TYPED = ("model", "machine", "batch", "T", "efficiency")
type Request = plan.PlanRequest | serve.ServeRequest


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """Whether a set-up fits, None if that is unknown; it fits on the machine `larger`."""

    fits: bool | None
    told: str
    short: str
    larger: str = ""
    late: bool = False  # it fits, but misses a latency target

    def json(self, command: str) -> dict[str, Any]:
        """What the page shows, and the field and value that its button sets."""
        apply = {"field": MACHINES[command], "value": self.larger} if self.larger else None
        bar = shown.bar(self.short, self.fits)
        return {"fits": self.fits, "told": self.told, "short": self.short, "apply": apply, "bar": bar}


@lru_cache(maxsize=64)
def fit(setup: WorkbenchSetup, command: str) -> FitAnswer:
    """Whether any plan or layout is feasible, without searching for the best."""
    asked, fixed = asked_of(setup, command)
    rejected = _rejected(asked, fixed)
    what, where = WHAT[command], asked.machine.name
    if not rejected:
        return FitAnswer(True, f"{what} fits on {where}.", f"{what} fits")
    memory = next((one for one in rejected if one.kind == "memory"), None)
    if memory is None:
        why = f"{what} is not possible on {where}: {rejected[0].why}."
        return FitAnswer(None, why, f"{what} is not possible")
    larger = _smallest(asked, fixed)
    more = f"The smallest machine tried that fits is {larger}."
    none = "None of the larger machines tried fits either."
    told = f"{what} does not fit on {where}: {_held(asked, memory)}. {more if larger else none}"
    return FitAnswer(False, told, f"{what} does not fit", larger)


def settled(setup: WorkbenchSetup, command: str) -> FitAnswer:
    """The same after the search, with the memory of the best one and any missed latency target."""
    answer = answered(setup, command).answer
    what, values = WHAT[command], answer.values
    if not answer.refused:
        held = f"{si(values['memory_bytes'], 'B')} of {si(values['hbm_bytes'], 'B')}"  # type: ignore[arg-type]
        chip = read(setup, command)["machine"].chip.name
        best = "fastest plan" if command == "plan" else "cheapest layout"
        told = f"{what} fits: the {best} uses {held} per {chip}."
        return FitAnswer(True, told, f"{what} fits")
    search: Any = values.get("search") or {}
    late = [one for one in search.get("rejected", ()) if one["kind"].startswith("latency")]
    if late:
        target = dict(setup.values)["itl"]
        miss = f"The closest miss: {late[0]['nearest']}."
        told = f"{what} fits, but no layout meets the ITL target of {target}. {miss}"
        return FitAnswer(True, told, f"{what} fits, but misses the ITL target", late=True)
    return fit(setup, command)


def asked_of(setup: WorkbenchSetup, command: str) -> tuple[Any, dict[str, Any]]:
    """The question of a command, and the fixed fields of its plan or layout."""
    typed = read(setup, command)
    way = training.Plan if command == "plan" else inference.Layout
    fixed = written_fields(
        {f.name: typed[f.name] for f in fields(way) if f.name in typed}, typed["machine"].chip
    )
    if command == "plan":
        try:
            return plan.PlanRequest.read(**{name: typed[name] for name in TYPED}, fixed=fixed), fixed
        except click.ClickException as error:  # the batch, which is read with the sequence length
            raise of_field(error, command) from error
    return serve.ServeRequest.of(typed), fixed


def _rejected(asked: Request, fixed: dict[str, Any]) -> tuple[Rejected, ...]:
    """The reasons of rejection, or () as soon as something is feasible."""
    if isinstance(asked, serve.ServeRequest):
        front = asked.front(dict(fixed), watch=lambda *_: True)
        return () if front.points else front.rejected
    found = asked.recommend(fixed, 1, watch=lambda *_: True).ranking
    return () if found.best else found.rejected


def _held(asked: Request, memory: Rejected) -> str:
    """The memory of a chip by part, for the plan or layout that comes closest."""
    if isinstance(asked, serve.ServeRequest) or memory.plan is None:
        layout, colon, held = memory.why.partition(": ")
        return f"with {layout.partition(';')[0]}, {held}" if colon else memory.why
    ways = [replace(memory.plan, zero=z, remat=r) for z in CANDIDATES["zero"] for r in LADDER]
    how = {"batch": asked.batch, "T": asked.T, "machine": asked.machine}
    return str(min((training.memory(asked.model, way, **how) for way in ways), key=lambda held: held.total))


def _smallest(asked: Request, fixed: dict[str, Any]) -> str:
    """The first of the doubled machines on which something is feasible, as typed, or ""."""
    model = asked.model
    if isinstance(asked, serve.ServeRequest):
        least = model.params * fixed.get("weights", BF16).bytes
    else:
        least = training_state(model, gradients=None).nbytes
    room = asked.machine.chip.hbm_bytes * (
        1 - asked.free_share if isinstance(asked, serve.ServeRequest) else 1
    )
    try:
        for machine in _larger(asked.machine):
            if least <= machine.chips * room and not _rejected(replace(asked, machine=machine), fixed):
                return typed(machine)
    except ValueError:  # chips that are joined by a network of which nothing is known
        pass
    return ""


def _larger(machine: Machine) -> Iterator[Machine]:
    """The most compact slices of 2, 4, ... times the chips; for clusters also a few more nodes."""
    chip, n = machine.chip, machine.chips
    if isinstance(machine, Slice):
        compact: dict[int, tuple[int, ...]] = {}
        for sides in sorted(chip.topology().shapes(), key=max):
            compact.setdefault(prod(sides), sides)
        yield from (Slice(chip, compact[size]) for size in _doubled(n) if size in compact)
    else:
        step = max(n // 8, chip.domain_chips or chip.chips_per_host)
        sizes = {*range(n + step, 4 * n, step), *_doubled(n)}
        yield from (Cluster.of(chip, size) for size in sorted(sizes))


def _doubled(n: int) -> list[int]:
    return [n << k for k in range(1, 20) if n << k <= MOST_CHIPS]


def offered() -> list[str]:
    """Suggested machines: some slices and clusters, and one domain of each switched chip."""
    return [*OFFERED, *(chip.name.lower() for chip in chips.KNOWN.values() if not chip.torus)]


def refusal(machine: str, command: str) -> str:
    """Why a machine can neither train nor serve any model, or ""."""
    try:
        fit(WorkbenchSetup.of({MACHINES[command]: machine, "model": "llama-3.2-1b"}), command)
    except ValueError as why:
        return str(why)
    return ""


def typed(machine: Machine) -> str:
    """A machine as typed: 'h100:16' or 'v5p:4x4x8'."""
    size = write_shape(machine.shape) if isinstance(machine, Slice) else f"{machine.chips}"
    return f"{short(machine.chip)}:{size}"


def short(chip: Chip) -> str:
    """A chip as typed."""
    return chip.name.lower().removeprefix("tpu ")
