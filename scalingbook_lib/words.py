"""Formats numbers and names as words of a sentence: counts with their nouns, enumerations, and units."""

import re
from collections.abc import Iterable

from scalingbook_lib.units import count_in_words

_UNIT = (
    r"(?:[pnµmkMGTPE]|[KMGTP]i)?(?:s|B|b|J|W|Wh|Hz|USD|FLOPs?|OPs?|tokens)(?:/[A-Za-z]+)?|[kMGTPE](?= )|"
    r"%|×|hours?|h|min|minutes|seconds|days?|years?|bytes?|bits?|tokens?|chips?|GPUs?|TPUs?|FLOPs/byte"
)
_APART = re.compile(rf"(?<=\d) (?=(?:{_UNIT})(?![\w’']))")


def pluralize(n: float, noun: str) -> str:
    """The number with its noun, in the plural unless the number is 1.

    >>> pluralize(1, "sequence"), pluralize(32, "sequence")
    ('1 sequence', '32 sequences')
    """
    return f"{count_in_words(int(n))} {noun}{'' if int(n) == 1 else 's'}"


def join_and(names: Iterable[str], last_by: str = "and") -> str:
    """The names as an enumeration with "and" (or `last_by`) before the last.

    >>> join_and(["HBM"]), join_and(["HBM", "VMEM", "PCIe"])
    ('HBM', 'HBM, VMEM and PCIe')
    """
    *most, last = names
    return f"{', '.join(most)} {last_by} {last}" if most else last


def joined_units(text: str) -> str:
    """The text or HTML with a no-break space between every number and its unit, for pages that wrap lines.

    >>> joined_units("8 chips take 1.71 s").split(" ")
    ['8\\xa0chips', 'take', '1.71\\xa0s']
    """
    return _APART.sub("\N{NO-BREAK SPACE}", text)
