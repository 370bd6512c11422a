"""How are numbers and names written in a verdict? One sequence or 32 sequences, this, that and another."""

import textwrap
from collections.abc import Iterable

from scalingbook_lib.units import count, rounded

_LINE = 58  # characters that fit on a phone


def several(n: float, noun: str) -> str:
    """A number of things.

    >>> several(1, "sequence"), several(32, "sequence")
    ('1 sequence', '32 sequences')
    """
    return f"{count(int(n))} {noun}{'' if int(n) == 1 else 's'}"


def three(value: float, digits: int = 3) -> str:
    """A ratio or a rate with so many digits and never an exponent.

    >>> three(7.524), three(1118.2)
    ('7.52', '1,120')
    """
    return count(rounded(value, digits), digits)


def listed(names: Iterable[str], last_by: str = "and") -> str:
    """Names in a sentence.

    >>> listed(["HBM"]), listed(["HBM", "VMEM", "PCIe"])
    ('HBM', 'HBM, VMEM and PCIe')
    """
    *most, last = names
    return f"{', '.join(most)} {last_by} {last}" if most else last


def counts(numbers: Iterable[int]) -> str:
    """Numbers in a sentence.

    >>> counts([1024, 8])
    '1,024, 8'
    """
    return ", ".join(f"{n:,}" for n in numbers)


def lines(text: str, *more: str) -> str:
    """A text cut into lines for a cell on a phone, and further lines below it."""
    return "\n".join([*textwrap.wrap(text, _LINE), *more])
