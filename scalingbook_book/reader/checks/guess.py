"""Judge a guess by the factor between it and the answer. A guess is parsed like an exercise's answer."""

import math
import re

from scalingbook_book.reader.checks import given as reading
from scalingbook_book.reader.checks.check import Outcome, Status
from scalingbook_book.reader.checks.given import Unparsable

NEAR = 2.0  # a guess within this factor of the answer is right
_BARE = re.compile(r"[^A-Za-zµ%]*(?:[eE][-+]?\d+)?")  # a number without a unit


def judge(text: str, answer: str, unit: str = "") -> Outcome:
    """Return the outcome of a guess: right within a factor of two, otherwise the factor by which it is off.

    >>> print(judge("400", "454", "rows"))
    ✓ Within a factor of 2.
    >>> print(judge("1 µs", "1.01 ms", "ms"))
    ✗ Too small by a factor of 1,010.
    """
    try:
        guessed, right = (reading.number(_with_unit(one, unit), _measured(unit)) for one in (text, answer))
    except Unparsable as error:
        return Outcome(False, str(error), "unread")
    status, message = _judgement(guessed, right)
    return Outcome(status == "right", message, status)


def _with_unit(text: str, unit: str) -> str:
    """Return the text with the requested unit if it has none; a count needs no unit."""
    text = text.strip()
    if not _measured(unit):
        return re.sub(r"(?<=[\d\s])(?:times|×|x|" + re.escape(unit or "times") + r")$", "", text).strip()
    return f"{text} {unit}" if _BARE.fullmatch(text) else text


def _measured(unit: str) -> str:
    """Return the unit if the book knows it, or '' for things that are only counted, such as rows."""
    return unit if unit == "%" or reading.known(unit) else ""


def _judgement(guessed: float, right: float) -> tuple[Status, str]:
    if guessed == right:
        return "right", "Exactly."
    if guessed * right <= 0 or math.isinf(guessed) or math.isinf(right):
        return "wrong", "Not that."
    factor = max(guessed / right, right / guessed)
    if factor <= 1.02:
        return "right", "Within 2%."
    if factor <= NEAR:
        return "right", "Within a factor of 2."
    side = "large" if abs(guessed) > abs(right) else "small"
    return (
        "wrong",
        f"Too {side} by a factor of {factor:,.0f}."
        if factor >= 10
        else f"Too {side} by a factor of {factor:.1f}.",
    )
