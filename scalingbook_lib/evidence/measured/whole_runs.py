"""How many chip-hours did whole training runs take, and how often did they stop? Published totals.

The rows of `evidence/data/training_gpu_hours.csv`, which count restarts and everything else, and of
`interruptions.csv`; each source stands there. Chapter: Training.
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
    """A model trained to its end: parameters that serve a token, tokens, and hours of all chips together.

    `chips` is None where several numbers were in use, or none is published.
    """

    name: str
    params: float
    tokens: float
    chip: Chip
    chips: int | None
    chip_hours: float

    @property
    def utilization(self) -> Utilization:
        """6 · P · tokens over what the chips could have done in those hours, in 16 bits."""
        return arithmetic.mfu(6 * self.params * self.tokens, self.chip_hours * 3600, self.chip)

    @property
    def days(self) -> float | None:
        """How long it took, where the number of chips is known."""
        return self.chip_hours / self.chips / 24 if self.chips else None

    def __str__(self) -> str:
        long = f", {si(self.days)} days on {self.chips:,}" if self.days else ""
        return (
            f"{self.name}: {count(self.tokens)} tokens in {count(self.chip_hours)} hours of {self.chip.name}"
            f"{long}; {self.utilization}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops(Result):
    """How often a run of that many chips was interrupted within so many days."""

    name: str
    chip: Chip
    chips: int
    days: float
    planned: int
    unexpected: int

    @property
    def between_s(self) -> float:
        """From one unexpected interruption to the next, on average."""
        return self.days * 86400 / self.unexpected

    def __str__(self) -> str:
        return (
            f"{self.name} on {self.chips:,} {self.chip.name}: {self.unexpected} unexpected interruptions in "
            f"{self.days:g} days, one every {self.between_s / 3600:.1f} hours"
        )


def _whole_runs() -> tuple[WholeRun, ...]:
    return tuple(
        WholeRun(
            name=row["name"],
            params=float(row["params"]),
            tokens=float(row["tokens"]),
            chip=chips.find(row["accelerator"].split("-")[0]),  # with 40 GB or 80: the same peak
            chips=whole(row, "accel_count"),
            chip_hours=float(row["accel_hours"]),
        )
        for row in resources.rows("training_gpu_hours")
    )


def _stops() -> Stops:
    (row,) = resources.rows("interruptions")
    return Stops(
        name=row["run"],
        chip=chip(row["chip"]),
        chips=int(row["chips"]),
        days=float(row["days"]),
        planned=int(row["planned"]),
        unexpected=int(row["unexpected"]),
    )


WHOLE_RUNS: tuple[WholeRun, ...]
"""Every row of `training_gpu_hours.csv`."""
LLAMA3_STOPS: Stops
"""The one row of `interruptions.csv`."""

__getattr__ = resources.lazily(__name__, {"WHOLE_RUNS": _whole_runs, "LLAMA3_STOPS": _stops})
