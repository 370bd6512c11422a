"""Formats numbers and names as words of a sentence: counts with their nouns, and enumerations."""

from collections.abc import Iterable

from scalingbook_lib.units import count_in_words


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
