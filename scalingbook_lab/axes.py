"""Check that a mesh has only the axes that a program knows, and that they divide what they shard.

The trainer and the server each know a few axes by their letters. A mesh names some of them. The others have
size 1, so nothing is sharded over them and no data moves along them.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from scalingbook_lib import hlo


def sizes(mesh: Any, known: str) -> dict[str, int]:
    """Return the size of each known axis, in the order of `known`; an axis that the mesh lacks has size 1.

    Raises ValueError if the mesh has an axis that is not known.
    """
    given = hlo.sizes_of(mesh)
    refuse_others(given, known)
    return {axis: given.get(axis, 1) for axis in known}


def refuse_others(named: Iterable[str], known: str) -> None:
    """Raise ValueError if any of the named axes is not a known one."""
    if unknown := set(named) - set(known):
        raise ValueError(f"axis {min(unknown)} is none of {', '.join(known)}; name one of them")


def refuse_uneven(splits: Iterable[tuple[str, int, str]], sizes: Mapping[str, int]) -> None:
    """Raise ValueError for the first uneven split.

    Each split is (name, size, axes that shard the dimension); it is uneven if the axes do not divide the
    size.
    """
    for what, size, axes in splits:
        degree = math.prod(sizes[axis] for axis in axes)
        if size % degree:
            raise ValueError(f"{what} = {size} is not divisible by {axes} = {degree}; change one of them")


def format_mesh(sizes: Mapping[str, int]) -> str:
    """Return a mesh in words: 'X4 Y2', or 'one device'."""
    return " ".join(f"{axis}{n}" for axis, n in sizes.items() if n > 1) or "one device"
