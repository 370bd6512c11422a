"""How far a prediction may be off: bands from left-out runs, and what a known doubt adds.

A band is a factor, up or down, that is to cover 80% of the runs of a source that no value was fitted to.
`tools.calibrate` records it with the fit (`evidence` computes it), so that a prediction needs no published
run. Each doubt about what is predicted widens the band. Chapters: Training; Inference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import exp, hypot, log

from scalingbook_lib.calibrated import factors, records
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import DType, Result

SEEN = "software", "release"
COVERAGE = 0.8  # the share of the runs of an unseen source that a band is to cover
MIN_ROWS = 20  # left-out runs below which a band is not calibrated
DOUBTS = {
    "chip by its kin": 0.25,
    "batch not given": 0.2,
    "global_batch not given": 0.2,
    "layout not given": 0.2,
    "tp and pp not given": 0.2,
    "shapes by size alone": 0.2,
    "frozen weights": 0.15,
    "fits no chip by the count of memory": 0.1,
    "how FLOPs are counted not given": 0.1,
    "band not calibrated": 0.2,
}
"""What a doubt adds to the half-width of a band, as a logarithm, independently of the others: rounded from
the errors of the published runs that have it, beyond those of runs without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band(Result):
    """A factor, up or down, from `rows` left-out runs."""

    name: str
    factor: float
    rows: int

    @property
    def calibrated(self) -> bool:
        """Whether there are enough left-out runs."""
        return self.rows >= MIN_ROWS

    def widened(self, doubts: Iterable[str] = ()) -> float:
        """The factor with these doubts, of which those without an entry in `DOUBTS` add nothing."""
        told = {*doubts, *(() if self.calibrated else ("band not calibrated",))}
        return exp(hypot(log(self.factor), *(DOUBTS.get(doubt, 0.0) for doubt in sorted(told))))

    def __str__(self) -> str:
        said = f"within a factor of {self.factor:.2f}" if self.calibrated else "band not calibrated"
        return f"{self.name}: {said}, from {self.rows} left-out runs"


def training_name(experts: bool, seen: str) -> str:
    """The name of a band of training steps; `seen` is what the fit knows of the software."""
    return f"training, {'experts' if experts else 'dense'}, {seen or 'unknown software'}"


def serving_name(experts: bool, full: bool, known: bool) -> str:
    """The name of a band of full servers or of single batches."""
    kind = ("experts" if experts else "dense") if full else "single batches"
    return f"serving, {kind}, {'known' if known else 'unknown'} software"


@cache
def band(name: str) -> Band:
    """The recorded band of that name."""
    return Band(name=name, **records.record("prediction_bands")["bands"][name])


def class_rows(name: str) -> int:
    """The left-out runs of a class of `evidence.score`, such as 'serving prefill, dense'."""
    return records.record("prediction_bands")["classes"].get(name, 0)


def seen(software: tuple[str, ...], experts: bool) -> str:
    """What the fit has seen of software and its release: the "release", only the "software", or ""."""
    values, what = factors.record("training").values, "experts" if experts else "slowness"
    known = {level: f"{one}: {what}" in values for level, one in zip(SEEN, software, strict=False)}
    return next((level for level in reversed(SEEN) if known.get(level)), "")


def training_band(*, experts: bool, seen: str = "") -> Band:
    """The band of a training step, of whose software the fit has seen "release", "software" or nothing."""
    return band(training_name(experts, seen))


def serving_band(*, experts: bool, full: bool = True, known: bool = False) -> Band:
    """The band of full servers, dense or with experts, or of single batches, under software known or not."""
    return band(serving_name(experts, full, known))


def chip_doubts(what: str, chip: Chip, dtype: DType | str) -> tuple[str, ...]:
    """The doubt that no published run of "training" or "inference" was on this chip in this dtype."""
    precision = dtype if isinstance(dtype, str) else dtype.name
    fitted = factors.figure_key(chip, precision) in factors.record(what).values
    return () if fitted else ("chip by its kin",)
