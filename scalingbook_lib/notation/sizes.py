"""Checks for the sizes of dimensions and the length of texts."""

import operator
from collections.abc import Mapping

from scalingbook_lib.notation.error import broken

LONGEST_TEXT = 1000  # characters, because pages pass on whatever readers type
LARGEST_SIZE = 10**15  # the largest size of a dimension, far above any array in this book


def whole(name: str, size: object, read: str, *, most: int = LARGEST_SIZE) -> int:
    """The size as an int from 1 to `most`.

    Raises a NotationError if it is not a whole number in that range.
    """
    if isinstance(size, float) and size.is_integer():
        size = int(size)  # sliders give 1024.0
    try:
        number = operator.index(size) if not isinstance(size, bool) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise broken("not-whole", read, None, "size", name=name, size=repr(size)[:40])
    if number < 1:
        raise broken("not-positive", read, None, "size", name=name)
    if number > most:
        raise broken("too-large", read, None, "size", name=name, most=most)
    return number


def size_of(name: str, sizes: Mapping[str, int], read: str, part: str = "") -> int:
    """The size of the dimension `name`. Raises a NotationError if it is missing."""
    if name not in sizes:
        raise broken("missing-size", read, None, part, name=name)
    return whole(name, sizes[name], read)


def checked(text: object) -> str:
    """The text itself. Raises a NotationError if it is not a string or is too long."""
    if not isinstance(text, str):
        raise broken("not-text", type(text).__name__)
    if len(text) > LONGEST_TEXT:
        raise broken("too-long", text, (LONGEST_TEXT, len(text)), most=LONGEST_TEXT)
    return text
