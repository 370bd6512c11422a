"""Collectives as findings name them: what moves over which axes, and how often."""

from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.inspection.findings.finding import axes_in_words
from scalingbook_lib.inspection.transfer_group import TransferGroup
from scalingbook_lib.units import si


def named(c: CompiledCollective, *, sized: bool = False) -> str:
    """'An all-gather of 8.39 MB over the axis data', or without the size of its array."""
    article = "An" if c.kind[0] in "aeiou" else "A"
    return f"{article} {c.kind}{f' of {si(c.nbytes, "B")}' if sized else ''} {_over(c)}"


def _over(c: CompiledCollective) -> str:
    """'over the axis data'."""
    return f"over {axes_in_words(c.axis_names)}" if c.axis_names else "over groups that follow no axis"


def runs_in_words(found: TransferGroup, synchronous: int) -> str:
    """'An all-gather of 8.39 MB over the axis data runs 4 times, 3 of them synchronously'."""
    if synchronous in (0, found.runs):
        how = " synchronously" if synchronous else " with too little compute to overlap with"
    else:
        how = f", {synchronous:,} of them synchronously"
    c = found.largest
    if len({t.collective.nbytes for t in found.transfers}) == 1:
        return f"{named(c, sized=True)} runs {times_in_words(found.runs)}{how}"
    size, times = si(c.nbytes, "B"), times_in_words(found.runs)
    return f"{c.kind.capitalize()}s of up to {size} {_over(c)} run {times}{how}"


def times_in_words(runs: int) -> str:
    """'once' or '4 times'."""
    return "once" if runs == 1 else f"{runs:,} times"
