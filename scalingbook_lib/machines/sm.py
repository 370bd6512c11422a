"""The rates of one SM per cycle: Tensor Cores, shared memory, its share of L2 and HBM, and exponentials.

Rates inside the SM grow with the clock, so their ratios hold at any clock. `sm_rates.csv` has the source of
each number. Chapter: Kernels on GPUs.

>>> from scalingbook_lib.machines import chips
>>> print(sm_rates(chips.B200))
SM of B200 at 1.86 GHz: 8,192 FLOPs, 128 bytes of SMEM, 76.5 of L2, 29.1 of HBM and 16 exponentials per cycle
"""

import csv
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.occupancy import KernelError
from scalingbook_lib.units import Result, count, rounded, si

_LIKE = "like"  # the row that names the chip whose other numbers this one shares
_TABLE = "sm_rates.csv"


@dataclass(frozen=True, slots=True)
class SmRates(Result):
    """What one SM of a chip does in a cycle, in bf16. The rates of L2 and HBM are an even share per SM.

    The clock is the one at which the peak is quoted: peak / (SMs · FLOPs per cycle). `mma_rows` are the rows
    of the largest matmul instruction of one SM.
    """

    chip: Chip
    clock_hz: float
    tensor_flops: int
    smem_bytes: float
    l2_bytes: float
    hbm_bytes: float
    exponentials: float
    mma_rows: int
    sources: Mapping[str, Source] = field(repr=False)  # of each recorded figure

    def __str__(self) -> str:
        l2, hbm = rounded(self.l2_bytes), rounded(self.hbm_bytes)
        return (
            f"SM of {self.chip.name} at {si(self.clock_hz, 'Hz')}: {count(self.tensor_flops)} FLOPs, "
            f"{self.smem_bytes:g} bytes of SMEM, {l2:g} of L2, {hbm:g} of HBM "
            f"and {self.exponentials:g} exponentials per cycle"
        )


def sm_rates(chip: Chip) -> SmRates:
    """The rates of an SM of this chip; a KernelError for chips other than Hopper and Blackwell GPUs."""
    recorded = _recorded().get(chip.name)
    if recorded is None:
        raise KernelError(
            f"{chip.name} has no recorded rates of an SM; choose one of {', '.join(sorted(_recorded()))}"
        )
    figures = {name: value for name, (value, _) in recorded.items()}
    sms = chip.cores or 0
    clock = chip.bf16_flops_per_s / sms / figures["tensor_flops_per_cycle"]
    l2 = figures.get("l2_bytes_per_cycle") or figures["l2_bytes_per_s"] / clock
    return SmRates(
        chip=chip,
        clock_hz=clock,
        tensor_flops=int(figures["tensor_flops_per_cycle"]),
        smem_bytes=figures["smem_bytes_per_cycle"],
        l2_bytes=l2 / sms,
        hbm_bytes=chip.hbm_bytes_per_s / clock / sms,
        exponentials=figures["exponentials_per_cycle"],
        mma_rows=int(figures["mma_rows"]),
        sources={name: source for name, (_, source) in recorded.items()},
    )


@cache
def _recorded() -> dict[str, dict[str, tuple[float, Source]]]:
    """The figures of every chip, each with its source.

    A row `like`, which comes first, stands for the figures of an earlier chip.
    """
    text = (pkgutil.get_data(__package__ or "", _TABLE) or b"").decode()
    found: dict[str, dict[str, tuple[float, Source]]] = {}
    for row in csv.DictReader(text.splitlines()):
        figures = found.setdefault(row["chip"], {})
        if row["figure"] == _LIKE:
            figures |= found[row["value"]]
        else:
            source = Source(text=row["says"], as_of=row["read"], url=row["url"])
            figures[row["figure"]] = float(row["value"]), source
    return found
