"""Read a reader's answer as a number in the requested unit, or say why it cannot be read."""

import math
import re
import sys
from collections.abc import Callable
from typing import Any

from scalingbook_book.reader.checks import arithmetic
from scalingbook_lib import units

_ENDLESS = {"inf", "infinity", "∞", "infinite", "never"}


class Unparsable(ValueError):
    """Raised for an answer that cannot be judged; the message says what to write instead."""


MOST_LINES = 100_000  # executed Python lines while an answer is read; NumPy and JAX need a few hundred


class _Endless(BaseException):
    """Stops an object that never returns; a BaseException, so that no `except Exception` can swallow it."""


def bounded[Read](read: Callable[..., Read], *given: Any) -> Read:
    """Return the result of `read`.

    Raises Unparsable if an object's own code runs more than `MOST_LINES` lines.
    """
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
        raise Unparsable(
            "Evaluating this answer does not end, because its own code loops. Give the number or the "
            "text itself."
        ) from None
    finally:
        sys.settrace(before)


def unanswered(given: Any) -> bool:
    """Return whether the answer is still empty."""
    return given is ... or given is None or (isinstance(given, str) and given.strip() in ("", "...", "…"))


def number(given: Any, unit: str, words: frozenset[str] = frozenset()) -> float:
    """Return the given number in base units; a number without a unit is taken to be in the requested unit.

    `words` are the exercise's own words: `200 sequences` is a count if the exercise counts sequences. Raises
    Unparsable if no number can be read.
    """
    if isinstance(given, str):
        return _quantity(given, unit, words)
    return _in_unit(given, unit) if isinstance(given, units.Quantity) else _plain(given)


def _plain(given: Any) -> float:
    """Return a Python, NumPy or JAX number, or an array with one element, as a float."""
    try:
        one = given.item() if hasattr(given, "item") else given  # a NumPy or JAX scalar as a Python number
        other = getattr(given, "_mask", False) or "time" in str(getattr(given, "dtype", ""))  # NumPy's
        # float() would also accept text and bytes, and would drop the imaginary part of a NumPy complex
        value = None if other or isinstance(one, bool | complex) else math.fsum((one,))
    except OverflowError:
        raise Unparsable("That number is implausibly large. Check the units of every term.") from None
    except (TypeError, ValueError):  # ValueError: an array with several elements
        raise Unparsable(
            f"This asks for one number, and what you gave is of type {type(given).__name__:.40}. "
            "Give the number itself: one field of a result, one element of an array."
        ) from None
    if value is None:
        raise Unparsable(
            f"This asks for a real number, and what you gave ({type(given).__name__:.40}) is a truth value, "
            "complex, masked or a date. Give the number itself."
        )
    if math.isnan(value):
        raise Unparsable("That is not a number (nan): an intermediate result was 0/0 or inf - inf.")
    return value


def _quantity(text: str, unit: str, words: frozenset[str]) -> float:
    if len(text) > arithmetic.LONGEST:
        raise Unparsable("That is too long for a number; write one as in 43.6e-6, 2^20 or 43.6 µs.")
    if text.strip().lower() in _ENDLESS:
        return math.inf
    counted = _is_count(unit)
    plain = _without_words(text, words) if counted else text
    try:
        if counted and (billions := _BILLIONS.fullmatch(plain.strip())):
            return 1e9 * _calculated(billions[1]).value  # "18.39 B" parameters: no bytes here
        return _in_unit(_calculated(plain), unit)
    except Unparsable:
        raise
    except ValueError as error:
        raise Unparsable(f"{error}.") from None


_COUNTING = frozenset({"x", "times", "fold", "parameters", "params", "elements", "ways"})
_BILLIONS = re.compile(r"(.*[0-9)])\s*B")
_LAST_WORD = re.compile(
    r"(.*[0-9)](?:\s*[kKMGTBPE]i?|\s*[a-z]+illion|\s*thousand)?)[\s-]*([a-zA-Z]+(?: [a-zA-Z]+)?)"
)
_MEASURES = {"s", "B", "FLOP"}


def _is_count(unit: str) -> bool:
    """Return whether the unit is that of a plain number or of counted things."""
    return not _MEASURES & set(canonical(unit).unit.split("/"))


def _without_words(text: str, words: frozenset[str]) -> str:
    """Return the text without the exercise's own name for the counted thing: `200` for `200 sequences`."""
    if not (found := _LAST_WORD.fullmatch(text.strip())):
        return text
    own = {_stem(word) for word in words if not known(word)} | {_stem(word) for word in _COUNTING}
    return found[1] if all(_stem(word) in own for word in found[2].split()) else text


def _stem(word: str) -> str:
    return word.casefold().removesuffix("s")


def _calculated(text: str) -> units.Quantity:
    """Return a number with its unit, or a calculation followed by its unit, in base units."""
    try:
        return units.parse(text)
    except ValueError:
        calculation, unit = arithmetic.split(text)
        if not any(sign in calculation for sign in "+-*/^()"):
            raise
        scale = units.parse(f"1 {unit}")
        return units.Quantity(arithmetic.value(calculation) * scale.value, scale.unit)


def _in_unit(quantity: units.Quantity, unit: str) -> float:
    given, asked = canonical(quantity.unit), canonical(unit)
    if quantity.unit and given.unit != asked.unit:
        what = f"in {asked.unit}" if asked.unit else "a plain number"
        raise Unparsable(
            f"Your answer is in {given.unit}, but it should be {what}. Check what you divide or multiply."
        )
    return _plain(quantity.value) * (given.value / asked.value if quantity.unit else 1.0)


def canonical(unit: str) -> units.Quantity:
    """Return a unit with numerator and denominator in base units: 'B/ms' is 1000 B/s."""
    top, slash, bottom = (part.strip() for part in unit.partition("/"))
    upper, lower = _base(top), _base(bottom)
    return units.Quantity(upper.value / lower.value, upper.unit + slash + lower.unit)


def known(unit: str) -> bool:
    """Return whether the book knows this unit."""
    try:
        return bool(unit) and bool(units.parse(f"1 {unit}"))
    except ValueError:
        return False


def _base(unit: str) -> units.Quantity:
    """Return one of this unit in base units; an unknown word is a unit of its own."""
    try:
        return units.parse(f"1 {unit}") if unit else units.Quantity(1.0, "")
    except ValueError:
        return units.Quantity(1.0, unit)
