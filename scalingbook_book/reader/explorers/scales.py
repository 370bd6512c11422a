"""Compute the ticks of an axis and their labels, on linear, log (decades) and pow2 (octaves) scales.

All functions are pure and fast, because they run for every event of a slider.
"""

import math
from collections.abc import Callable, Sequence

from scalingbook_lib.units import binary, count, rounded, si

KINDS = ("linear", "log", "pow2")
PREFIXED = {"s", "B", "bytes", "FLOP", "FLOPs", "OP", "OPs", "W", "Hz", "bit", "bits"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Projection = Callable[[Sequence[float]], list[float]]


def written(value: float, unit: str = "", *, kind: str = "linear") -> str:
    """Return the value as text: '43.6 µs', '8,192 tokens', '240 FLOPs/byte'; '16 GiB' on a pow2 scale."""
    if kind == "pow2" and unit in ("B", "bytes") and value >= 1:
        return binary(value, "B")
    if prefixed(unit):
        return si(value, unit)
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    number, space = count(value), "" if unit in ("", "×", "%") else " "
    return f"{number}{space}{_singular(unit) if number == '1' else unit}"


def _singular(unit: str) -> str:
    """Return the unit after the number 1: 'chip' for 'chips', 'FLOP/byte' for 'FLOPs/byte'; 'µs' is kept."""
    counted, slash, per = unit.partition("/")
    return (counted.removesuffix("s") if len(counted) > 3 else counted) + slash + per


def power(value: float, digits: int) -> str:
    """Return the value as significant digits and a power of ten.

    >>> power(4.87e24, 3)
    '4.87 × 10²⁴'
    """
    figures, _, exponent = f"{rounded(value, digits):.{digits - 1}e}".partition("e")
    return f"{figures} × 10{str(int(exponent)).translate(_RAISED)}"


def prefixed(unit: str) -> bool:
    """Return whether a unit takes prefixes: seconds, bytes, FLOPs and rates do, tokens and ratios do not."""
    top, slash, bottom = unit.partition("/")
    return top in PREFIXED and (not slash or bottom == "s")


def project(kind: str, low: float, high: float, start: float, end: float) -> Projection:
    """Return the function from values to pixels that maps `low` to `start` and `high` to `end`."""
    if kind == "linear":
        slope = (end - start) / (high - low)
        offset = start - slope * low
        return lambda values: [offset + slope * v for v in values]
    log = math.log
    slope = (end - start) / (log(high) - log(low))
    offset = start - slope * log(low)
    return lambda values: [offset + slope * log(v) for v in values]


def ticks(kind: str, low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round values between `low` and `high`: 1-2-5 steps, decades or powers of two."""
    if kind == "linear":
        return _linear_ticks(low, high, most)
    if kind == "pow2":
        return [2.0**e for e in _whole_powers(math.log2(low), math.log2(high), most, (1, 2, 3, 4, 5, 10, 20))]
    decades = _whole_powers(math.log10(low), math.log10(high), most, (1, 2, 3, 6, 9, 12))
    return (
        [10.0**e for e in decades]
        if len(decades) > 2 or high >= 1000 * low
        else _between_decades(low, high, most)
    )


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return the finest 1-2-2.5-5 steps that produce at most `most` ticks."""
    power = 10.0 ** math.floor(math.log10((high - low) / max(most, 1)))
    steps = (m * power for m in (1, 2, 2.5, 5, 10, 20, 25))
    step = next((s for s in steps if len(_multiples(s, low, high)) <= most), 50 * power)
    return [i * step for i in _multiples(step, low, high)]


def _multiples(step: float, low: float, high: float) -> range:
    return range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)


def _whole_powers(low: float, high: float, most: int, steps: Sequence[int]) -> list[int]:
    """Return the integer exponents between two logarithms, thinned out so that at most `most` remain."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    step = next((s for s in steps if (last // s) + (-first // s) + 1 <= most), steps[-1])
    return list(range(-(-first // step) * step, last + 1, step))


def _between_decades(low: float, high: float, most: int) -> list[float]:
    """Return ticks for less than three decades: 1, 2 and 5 of each, or 1 and 3; finer or round steps within
    one decade.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finer = ((1, 1.5, 2, 3, 5, 7),) if high < 10 * low else ()
    for marks in (*finer, (1, 2, 5), (1, 3), (1,)):
        found = [
            m * 10.0**e
            for e in exponents
            for m in marks
            if low <= m * 10.0**e * (1 + 1e-9) <= high * (1 + 2e-9)
        ]
        if 1 < len(found) <= most:
            return found
    return [t for t in _linear_ticks(low, high, most) if t > 0]


def tick_texts(values: Sequence[float], kind: str, unit: str) -> tuple[list[str], str]:
    """Return the tick labels, and the unit for the axis label if the ticks omit it."""
    if kind == "pow2":
        return _pow2_texts(values, unit)
    if not prefixed(unit):
        return [count(v) for v in values], unit
    if kind == "linear":
        return _shared_prefix(values, unit)
    if "/" in unit:  # a rate is too long for a tick: '100 T' there, FLOP/s in the axis label
        return [si(v).replace(" ", "\u202f") for v in values], unit
    if unit == "s":  # decades of seconds are not round numbers of minutes
        return [f"{v:,.0f} s" if v >= 1000 else si(v, unit) for v in values], ""
    return [si(v, unit) for v in values], ""


def _pow2_texts(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    if unit in ("B", "bytes"):
        return [binary(v, "B") for v in values], ""
    if values and values[-1] >= 2**20:
        return [binary(v, "") for v in values], unit
    return [count(v) for v in values], unit


def _shared_prefix(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    """Return the ticks of a linear axis with one prefix, such as 0, 5, 10, and the unit, such as ms."""
    top = max((abs(v) for v in values), default=0)
    text = si(top, unit, 6)
    number, _, with_prefix = text.partition(" ")
    factor = top / float(number.replace(",", "")) if top else 1.0
    return [f"{v / factor:.4g}" for v in values], with_prefix
