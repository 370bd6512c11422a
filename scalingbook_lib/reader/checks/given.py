"""What did the reader write? A number in the unit asked for, or the reason why it cannot be read."""

import math
import sys
from collections.abc import Callable
from typing import Any

from scalingbook_lib import units

_ENDLESS = {"inf", "infinity", "∞", "infinite", "never"}


class Unread(ValueError):
    """What was given cannot be judged; the message says what to write instead."""


MOST_LINES = 100_000  # of Python, while an answer is read: NumPy and JAX take a few hundred


class _Endless(BaseException):
    """No `except Exception` on the way takes it for an ordinary failure, and asks the object again."""


def bounded[Read](read: Callable[..., Read], *given: Any) -> Read:
    """What is read from an answer; the code of an object that loops is stopped after so many lines."""
    lines, before = 0, sys.gettrace()

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += 1
        if lines > MOST_LINES:
            raise _Endless
        return count

    sys.settrace(count)
    try:
        return read(*given)
    except _Endless:
        raise Unread(
            "What you gave does not end: its own code loops. Give the number or the text itself."
        ) from None
    finally:
        sys.settrace(before)


def unanswered(given: Any) -> bool:
    """Is the place for the answer still empty?"""
    return given is ... or given is None or (isinstance(given, str) and given.strip() in ("", "...", "…"))


def number(given: Any, unit: str) -> float:
    """The given number in base units; a number without a unit is taken to be in the unit asked for."""
    if isinstance(given, str):
        return _quantity(given, unit)
    return _in_unit(given, unit) if isinstance(given, units.Quantity) else _plain(given)


def _plain(given: Any) -> float:
    """A number of whatever library: Python's, NumPy's, JAX's; arrays of one element too."""
    try:
        one = given.item() if hasattr(given, "item") else given  # what is it to Python?
        other = getattr(given, "_mask", False) or "time" in str(getattr(given, "dtype", ""))  # NumPy's
        # float() reads texts and bytes too, and a complex of NumPy's by half
        value = None if other or isinstance(one, bool | complex) else math.fsum((one,))
    except OverflowError:
        raise Unread("That number is too large to be meant; check the units of every term.") from None
    except (TypeError, ValueError):  # ValueError: an array of several
        raise Unread(
            f"This asks for one number, and what you gave is of type {type(given).__name__:.40}. "
            "Give the number itself: one field of a result, one element of an array."
        ) from None
    if value is None:
        raise Unread(
            f"This asks for a real number, and what you gave ({type(given).__name__:.40}) is a truth value, "
            "complex, masked or a date. Give the number itself."
        )
    if math.isnan(value):
        raise Unread("That is not a number (nan): something on the way was 0/0 or inf - inf.")
    return value


def _quantity(text: str, unit: str) -> float:
    if len(text) > 200:
        raise Unread("That is too long for a number; write one as in 43.6e-6, 2^20 or 43.6 µs.")
    if text.strip().lower() in _ENDLESS:
        return math.inf
    try:
        quantity = units.parse(text)
    except ValueError as error:
        raise Unread(f"{error}.") from None
    return _in_unit(quantity, unit)


def _in_unit(quantity: units.Quantity, unit: str) -> float:
    given, asked = canonical(quantity.unit), canonical(unit)
    if quantity.unit and given.unit != asked.unit:
        what = f"asks for {asked.unit}" if asked.unit else "asks for a plain number"
        raise Unread(
            f"Your answer is in {given.unit}, but this {what}: check which two things you divide or multiply."
        )
    return _plain(quantity.value) * (given.value if quantity.unit else 1.0)


def canonical(unit: str) -> units.Quantity:
    """A unit with numerator and denominator in base units: 'FLOPs/byte' is FLOP/B, 'B/ms' is 1000 B/s."""
    top, slash, bottom = (part.strip() for part in unit.partition("/"))
    upper, lower = _base(top), _base(bottom)
    return units.Quantity(upper.value / lower.value, upper.unit + slash + lower.unit)


def _base(unit: str) -> units.Quantity:
    """One of this unit; a word the book has no unit for stands for itself."""
    try:
        return units.parse(f"1 {unit}") if unit else units.Quantity(1.0, "")
    except ValueError:
        return units.Quantity(1.0, unit)
