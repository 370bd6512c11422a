"""How are efficiencies found from published runs, how are predictions scored, and how far may they be off?

`least` minimizes a sum of squares (Levenberg and Marquardt's method), `far` counts distant rows less, `read`
reads a frozen table; `summary` tells the errors of many predictions, `band` what to add to one. Used for
steps of training and for inference. Chapters: Training, Inference.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import copysign, exp, sqrt
from statistics import NormalDist, mean, median
from typing import NamedTuple

from scalingbook_lib.units import Told, percent

type Values = dict[str, float]  # a value by the name of its class
type Key = tuple[str, str]  # chip and type of the products
type Table = Mapping[Key, Values]
type Residuals = Callable[[Sequence[float]], list[float]]
type Limits = list[tuple[float, float]]


class Expected(NamedTuple):
    """A value, the spread of its logarithm, and its limits."""

    value: float
    spread: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary(Told):
    """Errors of several runs: the mean, median and 90th percentile of their sizes, and the signed mean."""

    name: str
    runs: int
    mean: float
    median: float
    p90: float
    bias: float

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.runs} runs: mean error {percent(self.mean)}, median {percent(self.median)}, "
            f"90 in 100 within {percent(self.p90)}, bias {signed(self.bias)}"
        )


def signed(share: float) -> str:
    """'+4.5 %', or with a minus."""
    return f"{share:+.1%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def summary(name: str, errors: Sequence[float]) -> Summary:
    """Their sizes and their bias."""
    sizes = sorted(map(abs, errors))
    return Summary(name, len(sizes), mean(sizes), median(sizes), quantile(sizes, 0.9), mean(errors))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted ones lies, between neighbors in proportion."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def band(errors: Mapping[str, Sequence[float]], share: float) -> float:
    """The factor, up or down, that shall hold that share of the runs of a source that nobody has seen.

    `errors` are logarithms, by source. Each source counts once, however many runs it has: the root of the
    mean over sources of their mean square error, times Student's t for as many sources.
    """
    squares = [mean(error**2 for error in found) for found in errors.values()]
    return exp(students_t(share, len(squares)) * sqrt(mean(squares)))


def students_t(share: float, n: int) -> float:
    """How many standard deviations, known from n, hold that share: Fisher's expansion in 1/n."""
    z = NormalDist().inv_cdf((1 + share) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def read(rows: str) -> dict[Key, Values]:
    """A table from entries such as 'TPU v5e | bf16 | matmul=0.9 ...', which may go on in indented lines."""
    found: dict[Key, Values] = {}
    for line in filter(None, rows.replace("\n ", " ").split("\n")):
        chip, precision, values = (part.strip() for part in line.split("|"))
        found[chip, precision] = {name: float(v) for name, v in (one.split("=") for one in values.split())}
    return found


def far(error: float, noise: float) -> float:
    """h(x) = 2 (sqrt(1 + x²) - 1) of x = error / noise is its square: distant rows count less."""
    x = error / noise
    return copysign(sqrt(2 * (sqrt(1 + x * x) - 1)), x)


def least(residuals: Residuals, start: list[float], limits: Limits, rounds: int) -> list[float]:
    """Where the sum of the squares of the residuals is least, within the limits."""
    x, damping = start, 1e-3
    now = residuals(x)
    for _ in range(rounds):
        columns = [_slope(residuals, x, now, k, limits[k]) for k in range(len(x))]
        while damping < 1e6:
            tried = _stepped(x, now, columns, damping, limits)
            then = residuals(tried)
            if sum(r * r for r in then) < sum(r * r for r in now):
                break
            damping *= 4
        else:
            return x
        gain = sum(r * r for r in now) - sum(r * r for r in then)
        x, now, damping = tried, then, max(damping / 8, 1e-9)
        if gain < 1e-6:
            break
    return x


def _slope(
    residuals: Residuals, x: list[float], now: list[float], k: int, limit: tuple[float, float]
) -> list[float]:
    step = 1e-3 if x[k] + 1e-3 <= limit[1] else -1e-3
    moved = [value + step * (j == k) for j, value in enumerate(x)]
    return [(after - before) / step for after, before in zip(residuals(moved), now, strict=True)]


def _stepped(
    x: list[float], now: list[float], columns: list[list[float]], damping: float, limits: Limits
) -> list[float]:
    """One damped step, within the limits."""
    normal = [[sum(a * b for a, b in zip(one, two, strict=True)) for two in columns] for one in columns]
    for k in range(len(x)):
        normal[k][k] *= 1 + damping
    right = [-sum(a * r for a, r in zip(one, now, strict=True)) for one in columns]
    moved = [a + b for a, b in zip(x, _solved(normal, right), strict=True)]
    return [min(max(value, low), high) for value, (low, high) in zip(moved, limits, strict=True)]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Elimination by Gauss; the matrix is positive definite."""
    n, rows = len(right), [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(n):
        for i in range(n):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]
