"""Checks that a mesh has the axes that a program knows, and that they divide what is sharded over them.

The trainer and the server each know a few axes by their letters. A mesh names some of them; the others have
size 1, so nothing is sharded or moved over them.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from scalingbook_lib import hlo


def sizes(mesh: Any, known: str) -> dict[str, int]:
    """The size of each of the known axes in their order.

    Raises ValueError where the mesh has another axis.
    """
    given = hlo.sizes_of(mesh)
    refuse_others(given, known)
    return {axis: given.get(axis, 1) for axis in known}


def refuse_others(named: Iterable[str], known: str) -> None:
    """Raise ValueError where an axis is none of the known ones."""
    if unknown := set(named) - set(known):
        raise ValueError(f"axis {min(unknown)} is none of {', '.join(known)}; name one of them")


def refuse_uneven(splits: Iterable[tuple[str, int, str]], sizes: Mapping[str, int]) -> None:
    """Raise ValueError for the first of (name, size, axes that shard
    it) whose size the axes do not divide.
    """
    for what, size, axes in splits:
        degree = math.prod(sizes[axis] for axis in axes)
        if size % degree:
            raise ValueError(f"{what} = {size} does not divide over {axes} = {degree}; change one of them")


def format_mesh(sizes: Mapping[str, int]) -> str:
    """A mesh in words: 'X4 Y2', or 'one device'."""
    return " ".join(f"{axis}{n}" for axis, n in sizes.items() if n > 1) or "one device"
