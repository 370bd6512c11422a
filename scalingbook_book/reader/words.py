"""Format numbers and names as words of a sentence, for the verdicts of explorers."""

import textwrap
from collections.abc import Iterable

from scalingbook_lib.units import count, rounded

_LINE = 58  # characters that fit on a phone


def sig3(value: float, digits: int = 3) -> str:
    """Return a ratio or a rate with `digits` significant digits, never with an exponent.

    >>> sig3(7.524), sig3(1118.2)
    ('7.52', '1,120')
    """
    return count(rounded(value, digits), digits)


def join_counts(numbers: Iterable[int]) -> str:
    """Return integers with thousands separators, joined by commas.

    >>> join_counts([1024, 8])
    '1,024, 8'
    """
    return ", ".join(f"{n:,}" for n in numbers)


def wrap_lines(text: str, *more: str) -> str:
    """Return the text wrapped to the width of a phone, followed by further lines."""
    return "\n".join([*textwrap.wrap(text, _LINE), *more])
