"""Fits efficiencies to published runs by robust least squares with log-normal priors.

The Levenberg-Marquardt method minimizes over the logarithms of the values, with a pseudo-Huber loss.
Chapters: Training; Inference.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import copysign, exp, log, sqrt, sumprod
from typing import NamedTuple

from scalingbook_lib.calibrated.records import Values

type Residuals = Callable[[Sequence[float]], list[float]]
type Limits = list[tuple[float, float]]


class Prior(NamedTuple):
    """A log-normal prior: the median, the standard deviation of the logarithm, and limits of the value."""

    value: float
    spread: float
    low: float
    high: float


def fitted(
    expected: Mapping[str, Prior],
    errors: Callable[[Values], list[float]],
    rounds: int = 25,
    start: Values | None = None,
) -> Values:
    """The values that minimize Σ errors² + Σ ((ln value - ln prior) / spread)², to four digits.

    The search begins at `start`, and at the prior for values that `start` lacks. It ends after `rounds` steps
    of the Levenberg-Marquardt method, or when a step gains less than 1e-6.
    """

    residuals, limits = _drawn(expected, errors)
    begin = [log((start or {}).get(name, one.value)) for name, one in expected.items()]
    return _values(expected, least(residuals, begin, limits, rounds))


def without(
    expected: Mapping[str, Prior],
    errors: Callable[[Values], list[float]],
    values: Values,
    parts: Iterable[Collection[int]],
) -> Iterator[Values]:
    """For each part, the approximate fit without the errors at its indices.

    One Gauss-Newton step from the fit of all, with the derivatives there, so that each part costs one linear
    solve and no evaluation. A value on which only these errors depend returns to its prior.
    """
    residuals, limits = _drawn(expected, errors)
    x = [log(values[name]) for name in expected]
    now = residuals(x)
    columns = [_slope(residuals, x, now, k, limits[k]) for k in range(len(x))]
    for part in parts:
        keep = [k for k in range(len(now)) if k not in part]
        rest = [[column[k] for k in keep] for column in columns]
        yield _values(expected, _stepped(x, [now[k] for k in keep], rest, 0.0, limits))


def _drawn(
    expected: Mapping[str, Prior], errors: Callable[[Values], list[float]]
) -> tuple[Residuals, Limits]:
    """The residuals (the errors, then (ln value - ln prior) / spread of each value) and ln value's limits."""

    def residuals(x: Sequence[float]) -> list[float]:
        values = {name: exp(value) for name, value in zip(expected, x, strict=True)}
        drawn = zip(expected.values(), x, strict=True)
        return errors(values) + [(value - log(one.value)) / one.spread for one, value in drawn]

    return residuals, [(log(one.low), log(one.high) - 1e-12) for one in expected.values()]


def _values(expected: Mapping[str, Prior], x: Sequence[float]) -> Values:
    # Four digits, because further ones depend on where the search stopped.
    return {name: float(f"{exp(value):.4g}") for name, value in zip(expected, x, strict=True)}


def pseudo_huber(error: float, noise: float) -> float:
    """The signed square root of the pseudo-Huber loss 2 (sqrt(1 + x²) - 1), where x = error / noise."""
    x = error / noise
    return copysign(sqrt(2 * (sqrt(1 + x * x) - 1)), x)


def least(residuals: Residuals, start: list[float], limits: Limits, rounds: int) -> list[float]:
    """The point within the limits that minimizes the sum of squared residuals, by Levenberg-Marquardt."""
    x, damping = start, 1e-3
    now = residuals(x)
    for _ in range(rounds):
        columns = [_slope(residuals, x, now, k, limits[k]) for k in range(len(x))]
        while damping < 1e6:
            tried = _stepped(x, now, columns, damping, limits)
            then = residuals(tried)
            if sum(r * r for r in then) < sum(r * r for r in now):
                break
            damping *= 4  # a rejected step: the next is shorter and closer to the gradient
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
    # A forward difference, or a backward one at the upper limit: beyond it the residuals are meaningless.
    step = 1e-3 if x[k] + 1e-3 <= limit[1] else -1e-3
    moved = [value + step * (j == k) for j, value in enumerate(x)]
    return [(after - before) / step for after, before in zip(residuals(moved), now, strict=True)]


def _stepped(
    x: list[float], now: list[float], columns: list[list[float]], damping: float, limits: Limits
) -> list[float]:
    """The point after one damped step, clipped to the limits."""
    # (JᵀJ + damping · its diagonal) · step = -Jᵀr, columns of J in `columns` (Marquardt, 1963)
    normal = [[sumprod(one, two) for two in columns] for one in columns]
    for k in range(len(x)):
        normal[k][k] *= 1 + damping
    right = [-sumprod(one, now) for one in columns]
    moved = [a + b for a, b in zip(x, _solved(normal, right), strict=True)]
    return [min(max(value, low), high) for value, (low, high) in zip(moved, limits, strict=True)]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a positive definite system, by Gaussian elimination without pivoting."""
    n, rows = len(right), [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(n):
        for i in range(n):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]
