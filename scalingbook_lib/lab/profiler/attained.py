"""How near to the roofline did each operation come?

Against a chip of the catalogue, or what `measure.machine()` found; on a CPU that plays many devices no chip's
rate means anything, and the table says so.
"""

from dataclasses import dataclass
from typing import Any

from scalingbook_lib.lab.compiler.hlo import table
from scalingbook_lib.lab.profiler.table import COLLECTIVE, Row, Trace
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline import Roofline, operation
from scalingbook_lib.units import BF16, DType, Told, percent, si

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
class Attained(Told):
    """An operation beside the bound that a roofline sets on it."""

    row: Row
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
class Against(Told):
    """The operations of a trace that compute, beside one roofline."""

    name: str
    simulated: bool
    rows: tuple[Attained, ...]

    def __str__(self) -> str:
        head = ("operation", "scope", "once", "FLOPs/s", "B/s", "bound", "roofline", "attained")
        lines: list[tuple[str, ...]] = [head]
        for a in self.rows:
            rates = (si(a.once_s, "s"), si(a.flops_per_s, ""), si(a.bytes_per_s, ""))
            bound = (a.roofline.bound, si(a.roofline.lower_s, "s"), percent(a.fraction))
            lines.append((a.row.op.name, a.row.op.scope, *rates, *bound))
        doubt = "\nthe devices are simulated: these shares say nothing about a chip" if self.simulated else ""
        return f"against {self.name}\n{table(lines)}{doubt}"


def against(trace: Trace, machine: Any = None, dtype: DType = BF16) -> Against:
    """Every operation whose FLOPs and bytes are known, against a chip or a measured machine.

    Without one, against the chip that the trace was recorded on. Collectives are left out: their bound is
    the links.
    """
    on = machine or chip_of(trace)
    rows = [r for r in trace.rows if r.op.nbytes and r.own_s and r.op.kind != COLLECTIVE]
    found = tuple(Attained(r, _roofline(r, on, dtype, trace.kind)) for r in rows)
    return Against(on.name if isinstance(on, Chip) else str(on), trace.simulated, found)


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


def _roofline(row: Row, on: Any, dtype: DType, kind: str) -> Roofline:
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
