"""The pictures of the Workbench panels, drawn like the book's explorers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from scalingbook_book.reader import draw
from scalingbook_book.reader.draw.palette import LIGHT
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve, Points, RefLine, Scale, Series, View
from scalingbook_cli.answer import DerivationLine, part_label
from scalingbook_cli.roofline import counted, times
from scalingbook_cli.workbench.answers import UnreadableCommand, answered, read
from scalingbook_cli.workbench.setup import WorkbenchSetup
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import BF16, si

DEFAULT_TOKENS = 1024  # of the matmul that is drawn where there is neither a plan nor a layout


def drawn(setup: WorkbenchSetup, panel: str) -> dict[str, str]:
    """The panel's picture in a wide and a narrow version, and its message in a sentence."""
    view = PICTURES[panel](setup)
    return {
        "wide": draw.figure(view, wide=True),
        "narrow": draw.figure(view, wide=False),
        "told": view.verdict,
    }


def _values(setup: WorkbenchSetup, command: str) -> Any:
    return answered(setup, command).answer.values


def _held(setup: WorkbenchSetup) -> View:
    """The memory that the model takes, with the HBM of both machines."""
    values = _values(setup, "model")
    rows = {
        "weights in bf16": 2 * values["parameters"]["total"],
        "training state": values["training_state"]["total_bytes"],
        f"KV cache, {values['kv_cache']['context_tokens']:,} tokens": values["kv_cache"]["total_bytes"],
    }
    machines = [_machine(setup, command) for command in ("plan", "serve")]
    rows |= {f"HBM of {one.name}": one.chips * one.chip.hbm_bytes for one in machines if one}
    bars = Bars(Scale("bytes", "B", "log"), [*rows], (Series("bytes", [*rows.values()], 0),))
    told = (
        f"The weights of {values['model']} take {si(rows['weights in bf16'], 'B')} in bf16, and "
        f"its training state takes {si(rows['training state'], 'B')}."
    )
    return View(told, (bars,))


def _machine(setup: WorkbenchSetup, command: str) -> Machine | None:
    """The machine of a command, or None if it cannot be parsed."""
    try:
        return read(setup, command)["machine"]
    except UnreadableCommand:
        return None


def _served(setup: WorkbenchSetup) -> View:
    """The Pareto front, and the decode step of the cheapest layout by term."""
    values = _values(setup, "serve")
    step = _step(values, "a decode step", "decode_step_time_s")
    points: list[dict[str, Any]] = values["search"]["front"]
    itl, costs = [p["itl_s"] for p in points], [p["cost_per_million_tokens"] for p in points]
    front = Chart(
        Scale("inter-token latency (ITL)", "s", "log"),
        Scale(f"{values['search']['cost_unit']} per million output tokens", "", "log"),
        (
            Curve("Pareto front", itl, costs, 0),
            Points("cheapest", itl[-1:], costs[-1:], ["cheapest"], 1),
        ),
        title="Latency against cost",
    )
    told = f"In the cheapest layout, the ITL is {si(itl[-1], 's')}, prefills included. {step.verdict}"
    return View(told, (front, *step.panels))


def _step(values: Any, what: str, total: str) -> View:
    terms, held = values["terms_s"], values["memory_bytes_by_part"]
    times = Bars(Scale("time", "s"), [what], _stack(terms), stacked=True, title="Time by term")
    memory = Bars(
        Scale("bytes", "B"), ["per chip"], _stack(held),
        stacked=True, refs=(RefLine("HBM", values["hbm_bytes"]),), title="Memory by part",
    )  # fmt: skip
    longest = max(terms, key=lambda name: terms[name])
    share = f"{terms[longest] / sum(terms.values()):.0%}"
    told = f"{what} takes {si(values[total], 's')}; the largest term is {part_label(longest)} ({share})."
    return View(f"{told[0].upper()}{told[1:]}", (times, memory))


def _stack(parts: dict[str, float]) -> tuple[Series, ...]:
    """A color for each part; if there are too many parts, one for all of the smallest."""
    shown = {name: n for name, n in parts.items() if n}
    if len(shown) > len(LIGHT):
        small = sorted(shown, key=lambda name: shown[name])[: 1 - len(LIGHT)]
        shown["the rest"] = sum(shown.pop(name) for name in small)
    return tuple(Series(part_label(name), [n]) for name, n in shown.items())


def _roofs(setup: WorkbenchSetup) -> View:
    """The MLP matmuls of the fastest training plan and the cheapest serving layout on the roofline."""
    found = products(setup)
    curves = []
    for at, chip in enumerate({one.chip.name: one.chip for one in found.values()}.values()):
        top, ridge = chip.bf16_flops_per_s, rules.ridge(chip)
        curves.append(Curve(chip.name, [0.5, ridge, 2.0**13], [0.5 * top / ridge, top, top], at))
    points = [
        Points(name, [one.line.intensity], [one.line.attained_flops_per_s], [name], len(curves) + at)
        for at, (name, one) in enumerate(found.items())
    ]
    chart = Chart(
        Scale("arithmetic intensity, FLOPs per byte", "", "log"),
        Scale("FLOPs/s per chip", "", "log"),
        (*curves, *points),
    )
    told = "; ".join(f"{one.told} is {one.line.bound} on {one.chip.name}" for one in found.values())
    return View(f"{told[0].upper()}{told[1:]}.", (chart,))


@dataclass(frozen=True, slots=True)
class ChipMatmul:
    """X[B, D] · W[D, F] in bf16 on one chip."""

    chip: Chip
    shape: tuple[float, float, float]
    line: roofline.Roofline
    told: str  # what it belongs to, as in "the MLP matmul of a decode step"

    def derivation(self, name: str) -> Iterator[DerivationLine]:
        """The lines for FLOPs, bytes and times, with the name of the matmul's phase."""
        count = counted(self.line, self.shape, (BF16.bytes, BF16.bytes, BF16.bytes))
        return (replace(step, name=f"{name}: {step.name}") for step in (*count, *times(self.line)))


def products(setup: WorkbenchSetup) -> dict[str, ChipMatmul]:
    """The MLP matmul of the fastest training plan, and of the cheapest serving layout.

    If neither exists, one of the model with a thousand tokens, on the first machine with a known peak.
    """
    commands = {"training": "plan", "decode": "serve"}
    found = {name: one for name, command in commands.items() if (one := _product(setup, command))}
    if found:
        return found
    model: Transformer = read(setup, "model")["model"]
    problems = []
    for command in commands.values():
        chip: Chip = read(setup, command)["machine"].chip
        shape = (DEFAULT_TOKENS, model.D, model.experts.F if model.experts else model.F)
        try:
            line = roofline.matmul(*shape, chip)
        except ValueError as problem:
            problems.append(problem)
            continue
        return {"a matmul": ChipMatmul(chip, shape, line, f"an MLP matmul over {DEFAULT_TOKENS:,} tokens")}
    raise problems[0]


def _product(setup: WorkbenchSetup, command: str) -> ChipMatmul | None:
    """The matmul on one chip, with the tokens of the plan or layout, or None without one."""
    try:
        typed, values = read(setup, command), _values(setup, command)
        way = values.get("plan" if command == "plan" else "layout")
        chip: Chip = typed["machine"].chip
        chip.flops_per_s(BF16)
    except ValueError:  # the command refuses, which its own panel says
        return None
    if way is None:
        return None
    model: Transformer = typed["model"]
    if command == "plan":
        tokens, told = way["microbatch"] * typed["T"] / way["cp"], "the MLP matmul of a training microbatch"
    else:
        tokens, told = values["batch_size_sequences"] / way["attention_dp"], "the MLP matmul of a decode step"
    F = model.F
    if (experts := model.experts) is not None:  # of the tokens of all chips that hold an expert once
        F, tokens = experts.F, tokens * way["ep"] * experts.k / experts.E
    shape = (max(tokens, 1), model.D, max(F // way["tp"], 1))
    return ChipMatmul(chip, shape, roofline.matmul(*shape, chip), told)


PICTURES = {
    "model": _held,
    "roofline": _roofs,
    "plan": lambda setup: _step(_values(setup, "plan"), "a training step", "step_time_s"),
    "serve": _served,
}
