"""Published chip-hours of whole training runs, and how often a run was interrupted.

From `evidence/data/training_gpu_hours.csv`, which includes restarts and all other overheads, and
`interruptions.csv`, with sources. Chapter: Training.
"""

from dataclasses import dataclass

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.reading.cells import whole
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import Utilization
from scalingbook_lib.units import Result, count, si


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun(Result):
    """A completed training run: active parameters, tokens, and total chip-hours.

    `chips` is None if several numbers of chips were used or none is published.
    """

    name: str
    params: float
    tokens: float
    chip: Chip
    chips: int | None
    chip_hours: float

    @property
    def utilization(self) -> Utilization:
        """6 · P · tokens over the 16-bit peak FLOPs of all chip-hours."""
        return arithmetic.mfu(6 * self.params * self.tokens, self.chip_hours * 3600, self.chip)

    @property
    def days(self) -> float | None:
        """The duration in days, if the number of chips is known."""
        return self.chip_hours / self.chips / 24 if self.chips else None

    def __str__(self) -> str:
        long = f", {si(self.days)} days on {self.chips:,}" if self.days else ""
        return (
            f"{self.name}: {count(self.tokens)} tokens in {count(self.chip_hours)} hours of {self.chip.name}"
            f"{long}; {self.utilization}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions(Result):
    """The interruptions of a run on `chips` chips within `days` days."""

    name: str
    chip: Chip
    chips: int
    days: float
    planned: int
    unexpected: int

    @property
    def mtbf_s(self) -> float:
        """The mean time between unexpected interruptions, in seconds."""
        return self.days * 86400 / self.unexpected

    def __str__(self) -> str:
        return (
            f"{self.name} on {self.chips:,} {self.chip.name}: {self.unexpected} unexpected interruptions in "
            f"{self.days:g} days, one every {self.mtbf_s / 3600:.1f} hours"
        )


def _whole_runs() -> tuple[WholeRun, ...]:
    return tuple(
        WholeRun(
            name=row["name"],
            params=float(row["params"]),
            tokens=float(row["tokens"]),
            chip=chips.find(
                row["accelerator"].split("-")[0]
            ),  # variants with 40 and 80 GB have the same peak
            chips=whole(row, "accel_count"),
            chip_hours=float(row["accel_hours"]),
        )
        for row in resources.rows("training_gpu_hours")
    )


def _interruptions() -> Interruptions:
    (row,) = resources.rows("interruptions")
    return Interruptions(
        name=row["run"],
        chip=chip(row["chip"]),
        chips=int(row["chips"]),
        days=float(row["days"]),
        planned=int(row["planned"]),
        unexpected=int(row["unexpected"]),
    )


WHOLE_RUNS: tuple[WholeRun, ...]
"""Every row of `training_gpu_hours.csv`."""
LLAMA3_INTERRUPTIONS: Interruptions
"""The one row of `interruptions.csv`."""

__getattr__ = resources.lazy_attributes(
    __name__, {"WHOLE_RUNS": _whole_runs, "LLAMA3_INTERRUPTIONS": _interruptions}
)
