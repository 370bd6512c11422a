"""How are efficiencies found from published runs? The least sum of squares, distant rows counted less.

Levenberg and Marquardt's method, in logarithms. Used for steps of training and for inference. Chapters:
Training, Inference.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import copysign, exp, log, sqrt, sumprod
from typing import NamedTuple

type Values = dict[str, float]  # a value by the name of its class
type Residuals = Callable[[Sequence[float]], list[float]]
type Limits = list[tuple[float, float]]


class Expected(NamedTuple):
    """A value, the spread of its logarithm, and its limits."""

    value: float
    spread: float
    low: float
    high: float


def fitted(
    expected: Mapping[str, Expected],
    errors: Callable[[Values], list[float]],
    rounds: int = 25,
    start: Values | None = None,
) -> Values:
    """The values that make errors least, each drawn to what is expected of it.

    Least is the sum of the squares of the errors at these values and of (ln value - ln expected) / spread.
    The search begins at `start`, and at what is expected of values that it does not have.
    """

    residuals, limits = _drawn(expected, errors)
    begin = [log((start or {}).get(name, one.value)) for name, one in expected.items()]
    return _values(expected, least(residuals, begin, limits, rounds))


def without(
    expected: Mapping[str, Expected],
    errors: Callable[[Values], list[float]],
    values: Values,
    parts: Iterable[Collection[int]],
) -> Iterator[Values]:
    """What the values would be without some of the errors: for each part, those of these numbers.

    One more step of Gauss and Newton from the values of all, with the derivatives there: leaving out costs
    the solution of one system and no evaluation. A value that only these errors knew becomes as expected.
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
    expected: Mapping[str, Expected], errors: Callable[[Values], list[float]]
) -> tuple[Residuals, Limits]:
    """The errors, and behind them how far each value is from what is expected of it; and the limits."""

    def residuals(x: Sequence[float]) -> list[float]:
        values = {name: exp(value) for name, value in zip(expected, x, strict=True)}
        drawn = zip(expected.values(), x, strict=True)
        return errors(values) + [(value - log(one.value)) / one.spread for one, value in drawn]

    return residuals, [(log(one.low), log(one.high) - 1e-12) for one in expected.values()]


def _values(expected: Mapping[str, Expected], x: Sequence[float]) -> Values:
    # four digits: the rest depends on where the search stopped
    return {name: float(f"{exp(value):.4g}") for name, value in zip(expected, x, strict=True)}


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
            damping *= 4  # a step that does not help is tried again, shorter and more along the slope
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
    # forward, but backward at the upper limit, beyond which the residuals mean nothing
    step = 1e-3 if x[k] + 1e-3 <= limit[1] else -1e-3
    moved = [value + step * (j == k) for j, value in enumerate(x)]
    return [(after - before) / step for after, before in zip(residuals(moved), now, strict=True)]


def _stepped(
    x: list[float], now: list[float], columns: list[list[float]], damping: float, limits: Limits
) -> list[float]:
    """One damped step, within the limits."""
    # (JᵀJ + damping · its diagonal) · step = -Jᵀr, columns of J in `columns` (Marquardt, 1963)
    normal = [[sumprod(one, two) for two in columns] for one in columns]
    for k in range(len(x)):
        normal[k][k] *= 1 + damping
    right = [-sumprod(one, now) for one in columns]
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
