"""How large is each dimension? Sizes as people type them, `I=128, J=2048`, and the errors of a wrong size."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from scalingbook_lib.notation.error import NotationError, broken

LONGEST_TEXT = 1000  # characters: a page hands over what readers type
LARGEST_SIZE = 10**15  # of a dimension; no array of this book comes near it

_ENTRY = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z0-9']*)\s*[=:]\s*(?P<size>-?[0-9]+(?:_[0-9]+)*)\s*(?:[,;](?!\s*$))?"
)


def parse_sizes(text: str) -> dict[str, int]:
    """Read the sizes of dimensions: 'I=128, J=2048' is {'I': 128, 'J': 2048}."""
    return entries(text, _ENTRY, ("empty-sizes", "size-syntax", "size-twice"), _sized)


def entries(
    text: str, entry: re.Pattern[str], rules: tuple[str, str, str], check: Callable[..., Any]
) -> dict[str, int]:
    """Every name and size in the text; `rules` are those for no entry, no such entry and one name twice."""
    empty, syntax, twice = rules
    if not (end := len(checked(text).rstrip())):
        raise broken(empty, text, (0, len(text)))
    found: dict[str, int] = {}
    at = 0
    while at < end:
        match = entry.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise broken(syntax, text, (start, end), found=repr(text[start:end][:20]))
        if match["name"] in found:
            raise broken(twice, text, match.span("name"), name=match["name"])
        digits = match["size"]  # Python reads no endless numbers
        try:
            found[match["name"]] = size = int(digits) if len(digits) < 100 else LARGEST_SIZE + 1
            check(**{match["name"]: size})
        except NotationError as error:
            raise error.at(text, match.span("size" if error.part == "size" else "name")) from None
        at = match.end()
    return found


def whole(name: str, size: object, read: str, *, most: int = LARGEST_SIZE) -> int:
    """The size as a whole number from 1 to `most`; NotationError where it is none."""
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
    """The size of the dimension `name`; NotationError where it is missing."""
    if name not in sizes:
        raise broken("missing-size", read, None, part, name=name)
    return whole(name, sizes[name], read)


def checked(text: object) -> str:
    """The text itself; NotationError where it is no text or longer than anyone would type."""
    if not isinstance(text, str):
        raise broken("not-text", type(text).__name__)
    if len(text) > LONGEST_TEXT:
        raise broken("too-long", text, (LONGEST_TEXT, len(text)), most=LONGEST_TEXT)
    return text


def _sized(**sizes: int) -> None:
    for name, size in sizes.items():
        whole(name, size, name)
