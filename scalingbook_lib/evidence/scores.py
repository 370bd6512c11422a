"""How near do predictions come to published runs, and how far may a new one be off?

A run is predicted by the frozen table, and by a table that never saw the run's source; a band is what to add
to a prediction of a source that nobody has seen. Used for steps of training and for inference. Chapters:
Training, Inference.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from math import exp, log, sqrt
from statistics import mean, median

from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.units import Result, percent, si

HOLDS = 0.8  # the share of the runs of a new source that a band shall contain


@dataclass(frozen=True, kw_only=True)
class Predicted[Run](Result):
    """A figure of a run, as published and as predicted."""

    run: Run
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over published, less 1."""
        return self.predicted / self.published - 1


@dataclass(frozen=True, kw_only=True)
class Score[Run](Predicted[Run]):
    """Seconds of a step, or tokens/s: by the frozen table, and by one that never saw the run's source."""

    source: str
    unit: str
    left_out: float

    @property
    def left_out_error(self) -> float:
        """The same of the prediction by a table that never saw the source."""
        return self.left_out / self.published - 1

    def __str__(self) -> str:
        found = f"{si(self.predicted, self.unit)} predicted ({signed(self.error)})"
        return f"{self.run}; {found}, {signed(self.left_out_error)} by a table without {self.source}"


@dataclass(frozen=True, slots=True)
class Summary(Result):
    """Errors of several runs: the mean, median and 90th percentile of their sizes, and the signed mean."""

    name: str
    runs: int
    mean: float
    median: float
    p90: float
    bias: float

    @classmethod
    def of(cls, name: str, errors: Sequence[float]) -> "Summary":
        """Of these errors, which must not be none."""
        sizes = sorted(map(abs, errors))
        return cls(name, len(sizes), mean(sizes), median(sizes), quantile(sizes, 0.9), mean(errors))

    @property
    def values(self) -> dict[str, object]:
        """For programs."""
        return dict(zip(("class", "n", "mean", "median", "p90", "bias"), astuple(self), strict=True))

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.runs} runs: mean error {percent(self.mean)}, median {percent(self.median)}, "
            f"90 in 100 within {percent(self.p90)}, bias {signed(self.bias)}"
        )


def signed(share: float, digits: int = 1) -> str:
    """'+4.5%', or with a minus."""
    return f"{share:+.{digits}%}".replace("-", "\N{MINUS SIGN}")


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted ones lies, between neighbors in proportion."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def total[S: Score](name: str, scores: Sequence[S], left_out: bool) -> Summary:
    """All of them; as fitted, or each by a table that never saw its source."""
    if left_out:
        return Summary.of(f"{name}, source left out", [s.left_out_error for s in scores])
    return Summary.of(name, [s.error for s in scores])


def band_of[S: Score](scores: Sequence[S], besides: str = "") -> float:
    """The factor, up or down, that shall hold `HOLDS` of the runs of a source that nobody has seen.

    Left out, as a new source is. `besides`: a source that the band never saw.
    """
    by_source = grouped(scores, lambda s: s.source)
    errors = {name: _logarithms(group) for name, group in by_source.items() if name != besides}
    return band(errors, HOLDS)


def held_by_band[S: Score](scores: Sequence[S]) -> dict[str, tuple[int, int]]:
    """For each source, how many of its runs a band holds that never saw it, and how many there are."""
    found = {}
    for name, group in grouped(scores, lambda s: s.source).items():
        width = log(band_of(scores, besides=name))
        found[name] = sum(abs(error) <= width for error in _logarithms(group)), len(group)
    return found


def _logarithms[S: Score](scores: Sequence[S]) -> list[float]:
    return [log(s.left_out / s.published) for s in scores]


def band(errors: Mapping[str, Sequence[float]], share: float) -> float:
    """The factor, up or down, that shall hold that share of the runs of a source that nobody has seen.

    `errors` are logarithms, by source. Runs of one source err alike, so a source counts as the root of how
    many it has: a large one does not decide alone, nor does one with a single run count as much.
    """
    weights = sorted((abs(error), 1 / sqrt(len(found))) for found in errors.values() for error in found)
    reached = list(accumulate(weight for _, weight in weights))
    return exp(weights[bisect_left(reached, share * reached[-1] - 1e-9)][0])
