"""Compares the operations of a trace with their rooflines.

The roofline is that of a chip of the catalog, or of `measure.machine()`. No chip's rates apply to devices
that are simulated on a CPU, and the table says so.
"""

from dataclasses import dataclass
from typing import Any

from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.profiles.trace import COLLECTIVE, OperationRow, Trace
from scalingbook_lib.roofline import Roofline, operation
from scalingbook_lib.units import BF16, DType, Result, percent, si

DEVICE_KINDS = {
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
CORE_DEVICES = (chips.V2, chips.V3, chips.TPU7X)  # a device is one of the chip's two cores


@dataclass(frozen=True, slots=True)
class AttainedOperation(Result):
    """An operation and the bound that a roofline sets on it."""

    row: OperationRow
    roofline: Roofline

    @property
    def mean_s(self) -> float:
        """The average time of one run of the operation in seconds."""
        return self.row.self_s / self.row.times

    @property
    def flops_per_s(self) -> float:
        """The rate of its matmuls in FLOPs/s."""
        return self.roofline.flops / self.mean_s if self.mean_s else 0.0

    @property
    def bytes_per_s(self) -> float:
        """The rate of its reads and writes in bytes/s."""
        return self.roofline.bytes / self.mean_s if self.mean_s else 0.0

    @property
    def fraction(self) -> float:
        """Its speed as a fraction of the attainable speed: 1 is the roofline itself."""
        return self.roofline.lower_s / self.mean_s if self.mean_s else 0.0

    def __str__(self) -> str:
        return f"{self.row.op}: {si(self.mean_s, 's')}, {percent(self.fraction)} of the roofline"


@dataclass(frozen=True, slots=True)
class TraceRoofline(Result):
    """The operations of a trace that compute, each compared with the same roofline."""

    name: str
    simulated: bool
    rows: tuple[AttainedOperation, ...]

    def __str__(self) -> str:
        head = ("operation", "scope", "time", "FLOPs/s", "B/s", "bound", "roofline", "attained")
        lines: list[tuple[str, ...]] = [head]
        for a in self.rows:
            rates = (si(a.mean_s, "s"), si(a.flops_per_s, ""), si(a.bytes_per_s, ""))
            bound = (a.roofline.bound, si(a.roofline.lower_s, "s"), percent(a.fraction))
            lines.append((a.row.op.name, a.row.op.scope, *rates, *bound))
        caveat = (
            "\nthe devices are simulated: these percentages do not apply to any chip"
            if self.simulated
            else ""
        )
        return f"against {self.name}\n{text_table(lines)}{caveat}"


def against(trace: Trace, machine: Any = None, dtype: DType = BF16) -> TraceRoofline:
    """Every operation with known FLOPs and bytes, compared with the roofline of a chip or measured machine.

    By default it is the roofline of the chip on which the trace was recorded. Collectives are left out,
    because links bound them. Raises a ValueError if the catalog lacks that chip.
    """
    bound_by = machine or chip_of(trace)
    rows = [r for r in trace.rows if r.op.nbytes and r.self_s and r.op.kind != COLLECTIVE]
    found = tuple(AttainedOperation(r, _roofline(r, bound_by, dtype, trace.kind)) for r in rows)
    return TraceRoofline(
        bound_by.name if isinstance(bound_by, Chip) else str(bound_by), trace.simulated, found
    )


def chip_of(trace: Trace) -> Chip:
    """The chip on which a trace was recorded, by JAX's name for its devices.

    Raises a ValueError for another name.
    """
    if trace.kind in DEVICE_KINDS:
        return DEVICE_KINDS[trace.kind]
    for gpu in chips.GPUS:
        if gpu.name.split()[-1] in trace.kind.split():
            return gpu
    raise ValueError(
        f"{trace.kind!r} is not a chip in the catalog; name one, as in against(trace, chips.V5E), "
        "or measure this machine: against(trace, measure.machine())"
    )


def _roofline(row: OperationRow, machine: Any, dtype: DType, kind: str) -> Roofline:
    """The roofline of one operation."""
    flops, nbytes = row.op.flops or 0, row.op.nbytes or 0
    if not isinstance(machine, Chip):
        return machine.operation(flops, nbytes)
    cores = 2 if machine in CORE_DEVICES and DEVICE_KINDS.get(kind) is machine else 1
    return operation(
        flops,
        nbytes,
        machine,
        dtype,
        flops_per_s=machine.flops_per_s(dtype) / cores,
        bytes_per_s=machine.hbm_bytes_per_s / cores,
    )
