"""Which devices are there, and what are the axes of their grid called?

A mesh is a grid of devices with named axes, `X4 Y2`: X is the slow axis, Y the fast one, eight devices in all.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from ..told import Told
from .error import NotationError

LONGEST_TEXT = 1000  # characters: a page hands over what readers type
LARGEST_SIZE = 10**15  # of a dimension; no array of this book comes near it
LARGEST_AXIS = 10**6  # devices along one mesh axis

_ENTRY = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z0-9']*?)\s*(?P<equals>[=:]?)\s*(?P<size>-?[0-9]+)\s*(?:[,;]|$|(?=\s))"
)


def is_axis(name: object) -> bool:
    """Is this the name of a mesh axis: one capital letter, A to Z?"""
    return isinstance(name, str) and len(name) == 1 and name.isascii() and name.isupper()


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mesh(Told):
    """A grid of devices with named axes, in order, slowest first: `Mesh(X=4, Y=2)`."""

    items: tuple[tuple[str, int], ...]

    def __init__(self, /, **sizes: int) -> None:
        read = " ".join(f"{name}={size!r}" for name, size in sizes.items())
        if not sizes:
            raise NotationError("empty-mesh", "Mesh()", "a mesh needs an axis", "write one as in X4 Y2")
        for name in sizes:
            if not is_axis(name):
                raise _bad_axis(name, read)
        items = tuple((n, whole(n, s, read, most=LARGEST_AXIS)) for n, s in sizes.items())
        object.__setattr__(self, "items", items)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a mesh: 'X4 Y2', 'X=4, Y=2' or 'X:4 Y:2'."""
        sizes: dict[str, int] = {}
        for name, size, span in _entries(text, "X4 Y2"):
            try:
                if name in sizes:
                    raise NotationError(
                        "mesh-axis-twice", text, f"the mesh has two axes {name}", "give each its own letter"
                    )
                sizes |= cls(**{name: size}).sizes
            except NotationError as error:
                raise error.at(text, span) from None
        return cls(**sizes)

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
        """How many devices the mesh has."""
        return math.prod(self.shape)

    def size(self, axes: Iterable[str]) -> int:
        """The number of devices along these axes together: `size("XY")` is X times Y, `size("")` is 1."""
        sizes = self.sizes
        for axis in (axes := tuple(axes)):
            if axis not in sizes:
                raise unknown_axis(axis, self, axis)
        return math.prod(sizes[axis] for axis in axes)

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """Every device by its place along each axis, the last axis fastest."""
        return itertools.product(*(range(size) for size in self.shape))

    def __str__(self) -> str:
        return " ".join(f"{name}{size}" for name, size in self.items)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.items)})"


def parse_sizes(text: str) -> dict[str, int]:
    """Read the sizes of dimensions: 'I=128, J=2048' is {'I': 128, 'J': 2048}."""
    sizes: dict[str, int] = {}
    for name, size, span in _entries(text, "I=128, J=2048"):
        if name in sizes:
            raise NotationError("size-twice", text, f"{name} has two sizes", f"give {name} one size", span)
        try:
            sizes[name] = whole(name, size, text)
        except NotationError as error:
            raise error.at(text, span) from None
    return sizes


def whole(name: str, size: object, read: str, *, most: int = LARGEST_SIZE) -> int:
    """The size as a whole number from 1 to `most`, or an error that names what has this size."""
    broke, write = "", f"write a whole number as in {name}=4"
    if isinstance(size, float) and size.is_integer():
        size = int(size)  # sliders give 1024.0
    if isinstance(size, bool) or not isinstance(size, int):
        broke = f"the size of {name} is {size!r}, which is no whole number"
    elif size < 1:
        broke = f"the size of {name} is {size}, and nothing is smaller than 1"
    elif size > most:
        broke, write = f"the size of {name} is more than {most:,}", "write a smaller number"
    if broke:
        raise NotationError("bad-size", read, broke, write)
    assert isinstance(size, int)
    return size


def size_of(name: str, sizes: Mapping[str, int], read: str) -> int:
    """The size of the dimension `name`, or an error where it is missing."""
    if name not in sizes:
        known = f"the sizes given are {', '.join(sizes)}" if sizes else "no sizes are given"
        raise NotationError(
            "missing-size", read, f"dimension {name} has no size ({known})", f"give it as in {name}=1024"
        )
    return whole(name, sizes[name], read)


def unknown_axis(axis: str, mesh: Mesh, read: str, part: str = "") -> NotationError:
    """The error for an axis that the mesh does not have."""
    return NotationError(
        "unknown-axis",
        read,
        f"the mesh {mesh} has no axis {axis}",
        f"use {' or '.join(mesh.axes)}, or add {axis} to the mesh",
        part=part,
    )


def _bad_axis(name: str, read: str) -> NotationError:
    return NotationError(
        "axis-name", read, f"{name!r} cannot name a mesh axis", "write one capital letter, as in X"
    )


def check_text(text: object) -> str:
    """The text itself, or an error where it is no text, empty or longer than a reader would type."""
    if not isinstance(text, str):
        raise NotationError(
            "not-text", repr(text)[:80], "this is no text", "write it in quotes, as in 'A[I_X, J]'"
        )
    if len(text) > LONGEST_TEXT:
        raise NotationError(
            "too-long", text, f"more than {LONGEST_TEXT} characters", "write less", (LONGEST_TEXT, len(text))
        )
    return text


def _entries(text: str, example: str) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Every name, size and place in 'X4 Y2' or 'X=4, Y=2'."""
    if not check_text(text).strip():
        raise NotationError(
            "empty-mesh", text, "there is nothing here", f"write it as in {example}", (0, len(text))
        )
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _ENTRY.match(text, at)
        if match is None:
            broke = f"{text[at:end].strip()[:20]!r} is no name with its size"
            raise NotationError(
                "size-syntax", text, broke, f"write names and sizes as in {example}", (at, end)
            )
        yield match["name"], int(match["size"]), match.span("name")
        at = match.end()
