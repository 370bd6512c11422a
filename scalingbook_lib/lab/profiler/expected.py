"""How should a profile look on a TPU slice that is not here, and how near to the roofline was each operation?

The first is the compiler's schedule, given times: what computes takes the compiler's estimate in cycles at
the chip's clock; what moves takes the formulas of `collectives` over the slice's links, one transfer at a
time on each. Nothing is measured: compare programs, not seconds. The second is against a chip of the
catalogue, or what `measure.machine()` found; on a CPU that plays many devices no chip's rate means
anything, and the table says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalingbook_lib import collectives
from scalingbook_lib.lab.compiler import hlo
from scalingbook_lib.lab.compiler.hlo import table
from scalingbook_lib.lab.compiler.schedule import ScheduledStep
from scalingbook_lib.lab.profiler.table import COLLECTIVE, EXPECTED, Op, OperationRow, Trace
from scalingbook_lib.lab.profiler.times import Event
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline import Roofline, operation
from scalingbook_lib.units import BF16, DType, Result, percent, si

FORMULAS = {
    collectives.Collective.named(kind).hlo: formula for kind, formula in collectives.FORMULAS.items()
} | {
    hlo.RAGGED: collectives.all_to_all,
    hlo.BROADCAST: collectives.all_gather,
}


def expected(program: Any, title: str = "a program") -> Trace:
    """The profile that a program of `compiler.aot` should have on its slice: one device, one run."""
    if program.chip is None or not program.chip.clock_hz:
        raise ValueError(
            f"{program.target} has no compiler's estimate; compile for a slice as in topology='v5e:2x4'"
        )
    shape = program.target.rpartition(" ")[2]
    laid = chips.Slice.of(program.chip, shape).mesh(**hlo.sizes_of(program.mesh))
    clock = _DeviceClock(program.chip.clock_hz, laid)
    clock.play([*_unrolled(list(program.schedule()))])
    return Trace(
        title=title,
        platform=EXPECTED,
        kind=program.target,
        devices=1,
        simulated=False,
        warmup=None,
        versions="",
        ops=tuple(clock.places),
        events=tuple(clock.events),
    )


def _unrolled(steps: Sequence[ScheduledStep]) -> Iterator[ScheduledStep]:
    """The steps as they run: a loop's body as often as it says; once where it does not."""
    i = 0
    while i < len(steps):
        step, i = steps[i], i + 1
        if step.what != "loop":
            yield step
            continue
        body = i
        while i < len(steps) and steps[i].depth > step.depth:
            i += 1
        times = step.label.split()[0]
        for _ in range(int(times) if times.isdigit() else 1):
            yield from _unrolled(steps[body:i])


@dataclass
class _DeviceClock:
    """One device at work: what time it is, when each link is free, and which transfers are on their way."""

    hz: float
    laid: Any
    now_s: float = 0.0
    free_s: dict[str, float] = field(default_factory=dict)
    open: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    places: dict[Op, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def play(self, steps: Sequence[ScheduledStep]) -> None:
        for step in steps:
            match step.what:
                case "compute":
                    self._add(Op(step.label, step.label, "", step.source), self.now_s, step.cycles / self.hz)
                    self.now_s += step.cycles / self.hz
                case "start":
                    self.open.setdefault((step.label, step.nbytes), []).append(self._move(step))
                case "done" if waiting := self.open.get((step.label, step.nbytes)):
                    self.now_s = max(self.now_s, waiting.pop(0))
                case "wait":
                    self.now_s = self._move(step)

    def _move(self, step: ScheduledStep) -> float:
        """Send when the links are free; when it will have arrived."""
        kind, axes, *shift = step.label.split()
        over = self.laid.axes(axes)
        if kind == collectives.Collective.PERMUTE.hlo:
            transfer = collectives.permute(step.nbytes, over[0], int(shift[0]) if shift else 1)
        else:
            transfer = FORMULAS[kind](step.nbytes, *over)
        takes = transfer.total_s
        link = axes + (shift[0][0] if shift else "")
        start = max(self.now_s, self.free_s.get(link, 0.0))
        moves = f"{kind} over {' '.join([axes, *shift])} of {si(step.nbytes, 'B')}"
        self._add(Op(kind, COLLECTIVE, "", step.source, moves=moves), start, takes)
        self.free_s[link] = start + takes
        return start + takes

    def _add(self, op: Op, start_s: float, took_s: float) -> None:
        self.events.append(Event(self.places.setdefault(op, len(self.places)), 0, 0, start_s, took_s, took_s))


KINDS = {
    "TPU v2": chips.V2,
    "TPU v3": chips.V3,
    "TPU v4": chips.V4,
    "TPU v5 lite": chips.V5E,
    "TPU v5e": chips.V5E,
    "TPU v5": chips.V5P,
    "TPU v5p": chips.V5P,
    "TPU v6 lite": chips.V6E,
    "TPU v6e": chips.V6E,
    "TPU7x": chips.TPU7X,
}
HALVES = (chips.V2, chips.V3, chips.TPU7X)  # of these a device is one of a chip's two cores


@dataclass(frozen=True, slots=True)
class AttainedOperation(Result):
    """An operation beside the bound that a roofline sets on it."""

    row: OperationRow
    roofline: Roofline

    @property
    def once_s(self) -> float:
        """The time of one run of the operation, in the mean."""
        return self.row.own_s / self.row.times

    @property
    def flops_per_s(self) -> float:
        """The rate of its matmuls."""
        return self.roofline.flops / self.once_s if self.once_s else 0.0

    @property
    def bytes_per_s(self) -> float:
        """The rate at which it read and wrote."""
        return self.roofline.bytes / self.once_s if self.once_s else 0.0

    @property
    def fraction(self) -> float:
        """The share of the attainable speed: 1 is the roofline itself."""
        return self.roofline.lower_s / self.once_s if self.once_s else 0.0

    def __str__(self) -> str:
        return f"{self.row.op}: {si(self.once_s, 's')}, {percent(self.fraction)} of the roofline"


@dataclass(frozen=True, slots=True)
class TraceRoofline(Result):
    """The operations of a trace that compute, beside one roofline."""

    name: str
    simulated: bool
    rows: tuple[AttainedOperation, ...]

    def __str__(self) -> str:
        head = ("operation", "scope", "once", "FLOPs/s", "B/s", "bound", "roofline", "attained")
        lines: list[tuple[str, ...]] = [head]
        for a in self.rows:
            rates = (si(a.once_s, "s"), si(a.flops_per_s, ""), si(a.bytes_per_s, ""))
            bound = (a.roofline.bound, si(a.roofline.lower_s, "s"), percent(a.fraction))
            lines.append((a.row.op.name, a.row.op.scope, *rates, *bound))
        doubt = "\nthe devices are simulated: these shares say nothing about a chip" if self.simulated else ""
        return f"against {self.name}\n{table(lines)}{doubt}"


def against(trace: Trace, machine: Any = None, dtype: DType = BF16) -> TraceRoofline:
    """Every operation whose FLOPs and bytes are known, against a chip or a measured machine.

    Without one, against the chip that the trace was recorded on. Collectives are left out: their bound is
    the links.
    """
    on = machine or chip_of(trace)
    rows = [r for r in trace.rows if r.op.nbytes and r.own_s and r.op.kind != COLLECTIVE]
    found = tuple(AttainedOperation(r, _roofline(r, on, dtype, trace.kind)) for r in rows)
    return TraceRoofline(on.name if isinstance(on, Chip) else str(on), trace.simulated, found)


def chip_of(trace: Trace) -> Chip:
    """The chip that a trace was recorded on, by the name that JAX has for its devices."""
    if trace.kind in KINDS:
        return KINDS[trace.kind]
    for gpu in chips.GPUS:
        if gpu.name.split()[-1] in trace.kind.split():
            return gpu
    raise ValueError(
        f"{trace.kind!r} is no chip of the catalogue; name one, as in against(trace, chips.V5E), "
        "or measure this machine: against(trace, measure.machine())"
    )


def _roofline(row: OperationRow, on: Any, dtype: DType, kind: str) -> Roofline:
    flops, nbytes = row.op.flops or 0, row.op.nbytes or 0
    if not isinstance(on, Chip):
        return on.operation(flops, nbytes)
    cores = 2 if on in HALVES and KINDS.get(kind) is on else 1
    return operation(
        flops,
        nbytes,
        on,
        dtype,
        flops_per_s=on.flops_per_s(dtype) / cores,
        bytes_per_s=on.hbm_bytes_per_s / cores,
    )
