"""Errors of predictions against published runs, and prediction intervals for new ones.

A run is predicted by the recorded fit, and by a leave-one-out fit without the run's source. A prediction
interval is a factor, up or down, that is to cover 80% of the runs of an unseen source. Chapters: Training;
Inference.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from math import exp, log, sqrt
from statistics import mean, median

from scalingbook_lib.calibrated.bands import COVERAGE
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.units import Result, percent, si


@dataclass(frozen=True, kw_only=True)
class Predicted[Run](Result):
    """One quantity of a run, published and predicted."""

    run: Run
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over published, minus 1."""
        return self.predicted / self.published - 1


@dataclass(frozen=True, kw_only=True)
class Score[Run](Predicted[Run]):
    """Seconds per step or tokens/s of a run, predicted by the recorded fit and without its source."""

    source: str
    unit: str
    leave_one_out: float

    @property
    def leave_one_out_error(self) -> float:
        """The error of the leave-one-out prediction: predicted over published, minus 1."""
        return self.leave_one_out / self.published - 1

    def __str__(self) -> str:
        found = f"{si(self.predicted, self.unit)} predicted ({signed(self.error)})"
        return f"{self.run}; {found}, {signed(self.leave_one_out_error)} by a table without {self.source}"


@dataclass(frozen=True, slots=True)
class Summary(Result):
    """Errors of several runs: mean, median and 90th percentile of their sizes, and the signed mean."""

    name: str
    runs: int
    mean: float
    median: float
    p90: float
    bias: float

    @classmethod
    def of(cls, name: str, errors: Sequence[float]) -> "Summary":
        """The summary of at least one error."""
        sizes = sorted(map(abs, errors))
        return cls(name, len(sizes), mean(sizes), median(sizes), quantile(sizes, 0.9), mean(errors))

    @property
    def values(self) -> dict[str, object]:
        """The summary as a dictionary, for JSON."""
        return dict(zip(("class", "n", "mean", "median", "p90", "bias"), astuple(self), strict=True))

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.runs} runs: mean error {percent(self.mean)}, median {percent(self.median)}, "
            f"90 in 100 within {percent(self.p90)}, bias {signed(self.bias)}"
        )


def signed(share: float, digits: int = 1) -> str:
    """'+4.5%', or with a minus sign."""
    return f"{share:+.{digits}%}".replace("-", "\N{MINUS SIGN}")


def quantile(values: Sequence[float], share: float) -> float:
    """The value at `share` of a sorted list, with linear interpolation."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def total[S: Score](name: str, scores: Sequence[S], leave_one_out: bool) -> Summary:
    """The summary of all scores, as fitted or leave-one-out."""
    if leave_one_out:
        return Summary.of(f"{name}, source left out", [s.leave_one_out_error for s in scores])
    return Summary.of(name, [s.error for s in scores])


def prediction_interval_of[S: Score](scores: Sequence[S], excluded_source: str = "") -> float:
    """The factor, up or down, that covers `COVERAGE` of the leave-one-out errors of these scores.

    `excluded_source` is left out of the computation.
    """
    by_source = grouped(scores, lambda s: s.source)
    errors = {name: _log_errors(group) for name, group in by_source.items() if name != excluded_source}
    return prediction_interval(errors, COVERAGE)


def covered[S: Score](scores: Sequence[S], least: float = 1.0) -> dict[str, bool]:
    """Whether a run lies in its leave-one-out interval, which its own source did not determine, by run id.

    No interval is narrower than `least`.
    """
    found = {}
    for name, group in grouped(scores, lambda s: s.source).items():
        width = log(max(prediction_interval_of(scores, excluded_source=name), least))
        inside = (abs(error) <= width for error in _log_errors(group))
        found |= zip((s.run.id for s in group), inside, strict=True)
    return found


def interval_coverage[S: Score](scores: Sequence[S], least: float = 1.0) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs its leave-one-out interval covers, and how many it has."""
    inside, by_source = covered(scores, least), grouped(scores, lambda s: s.source)
    return {name: (sum(inside[s.run.id] for s in group), len(group)) for name, group in by_source.items()}


def _log_errors[S: Score](scores: Sequence[S]) -> list[float]:
    return [log(s.leave_one_out / s.published) for s in scores]


def prediction_interval(errors: Mapping[str, Sequence[float]], share: float) -> float:
    """The factor, up or down, that covers that share of the runs of an unseen source.

    `errors` has errors as logarithms, by source. Runs of one source have correlated errors, so a source with
    n runs has weight √n: a large one does not dominate, and one with a single run does not count as much.
    """
    weights = sorted((abs(error), 1 / sqrt(len(found))) for found in errors.values() for error in found)
    reached = list(accumulate(weight for _, weight in weights))
    return exp(weights[bisect_left(reached, share * reached[-1] - 1e-9)][0])
