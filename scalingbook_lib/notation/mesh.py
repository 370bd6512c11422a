"""Meshes of devices with named axes.

In `X4 Y2`, X is the slowest axis, Y the fastest, and there are eight devices.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from scalingbook_lib.notation.error import NotationError, broken
from scalingbook_lib.notation.sizes import LARGEST_SIZE, checked, whole
from scalingbook_lib.units import Result

LARGEST_AXIS = 10**6  # the most devices along one mesh axis

# `X4`, `data4`, `fsdp_1=4`: a name that ends in a digit needs an equals sign
_ENTRY = re.compile(
    r"\s*(?P<name>[A-Za-z]\w*(?=\s*[=:])|[A-Za-z_]+)\s*[=:]?\s*(?P<size>-?[0-9]+)\s*(?:[,;×](?!\s*$))?",
    re.ASCII,
)
_AXIS = re.compile(r"[A-Z]|[a-z]\w*", re.ASCII)


def is_axis(name: object) -> bool:
    """Whether this is the name of a mesh axis: one capital letter, `X`, or a lowercase word, `data`."""
    return isinstance(name, str) and bool(_AXIS.fullmatch(name))


def axis_names(given: Iterable[str]) -> tuple[str, ...]:
    """The axis names in a text such as "XY" or "data, model", or in an iterable of names, as a tuple."""
    if not isinstance(given, str):
        return tuple(given)
    words = given.replace(",", " ").split()
    return tuple(axis for word in words for axis in ([word] if is_axis(word) else word))


def join_axes(axes: Iterable[str]) -> str:
    """The axes as one word: "XY", or "data,model" if one of them is a word."""
    axes = tuple(axes)
    return ("" if all(len(axis) == 1 for axis in axes) else ",").join(axes)


def format_sizes(sizes: Mapping[str, int]) -> str:
    """The axes of a mesh with their sizes: 'X4 Y2', 'data=4 model=2'."""
    return " ".join(f"{name}{'=' * (len(name) > 1)}{size}" for name, size in sizes.items())


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mesh(Result):
    """A grid of devices with named axes, slowest first: `Mesh(X=4, Y=2)`.

    Raises a NotationError if a name or a size is not valid.
    """

    items: tuple[tuple[str, int], ...]

    def __init__(self, /, **sizes: int) -> None:
        read = f"Mesh of {', '.join(sizes)}" if sizes else "Mesh()"
        if not sizes:
            raise broken("empty-mesh", read)
        for name in sizes:
            if not is_axis(name):
                raise broken("mesh-axis", read, None, name, found=name)
        items = tuple((name, whole(name, size, read, most=LARGEST_AXIS)) for name, size in sizes.items())
        # a tuple of pairs, not a dict, because meshes are cache keys
        object.__setattr__(self, "items", items)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The mesh of a text; 'X4 Y2', 'X=4, Y=2' and 'X:4 Y:2' mean the same.

        Raises a NotationError if the text does not describe a mesh.
        """
        return cls(**_axes_in(text))

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every axis, in order."""
        return dict(self.items)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, slowest first."""
        return tuple(name for name, _ in self.items)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, slowest first."""
        return tuple(size for _, size in self.items)

    @property
    def devices(self) -> int:
        """The number of devices in the mesh."""
        return math.prod(self.shape)

    def size(self, axes: Iterable[str]) -> int:
        """The number of devices along these axes: `size("XY")` is X times Y, `size("")` is 1."""
        sizes = self.sizes
        return math.prod(sizes[self.known(axis)] for axis in axis_names(axes))

    def known(self, axis: str, read: str = "", part: str = "") -> str:
        """The axis itself. Raises a NotationError if the mesh has no axis of that name."""
        if axis not in self.axes:
            raise broken(
                "unknown-axis", read or axis, None, part, mesh=self, axis=axis, known=", ".join(self.axes)
            )
        return axis

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """The mesh coordinates of every device, with the last axis fastest."""
        return itertools.product(*map(range, self.shape))

    def __str__(self) -> str:
        return format_sizes(self.sizes)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.items)})"


def _axes_in(text: str) -> dict[str, int]:
    """The size of every axis in the text. An error is located at the axis that causes it."""
    if not (end := len(checked(text).rstrip())):
        raise broken("empty-mesh", text, (0, len(text)))
    found: dict[str, int] = {}
    at = 0
    while at < end:
        match = _ENTRY.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise broken("mesh-syntax", text, (start, end), found=repr(text[start:end][:20]))
        if match["name"] in found:
            raise broken("mesh-axis-twice", text, match.span("name"), name=match["name"])
        digits = match["size"]  # Python refuses to convert very long digit strings
        try:
            found[match["name"]] = size = int(digits) if len(digits) < 100 else LARGEST_SIZE + 1
            Mesh(**{match["name"]: size})
        except NotationError as error:
            raise error.at(text, match.span("size" if error.part == "size" else "name")) from None
        at = match.end()
    return found
