"""Reads the axes and sizes of a mesh from any of its forms."""

from collections.abc import Iterator, Mapping
from typing import Any

from scalingbook_lib.hlo.module import HloError


def sizes_of(mesh: Any) -> dict[str, int]:
    """The sizes of a mesh's axes in order, for a mesh of the notation, a JAX mesh or a dict."""
    for attribute in ("sizes", "shape"):
        if isinstance(sizes := getattr(mesh, attribute, None), Mapping):
            return dict(sizes)
    return dict(mesh)


def mesh_of(program: Any) -> Any:
    """The mesh that a program was compiled for, from its `mesh` or its arguments' and results' shardings.

    Raises an HloError if the program has none, as a text.
    """
    if (mesh := getattr(program, "mesh", None)) is not None:
        return mesh
    shardings = (getattr(program, "input_shardings", None), getattr(program, "output_shardings", None))
    for sharding in _leaves(shardings):
        if (mesh := getattr(sharding, "mesh", None)) is not None:
            return mesh
    raise HloError(
        "the program does not say which mesh it is for; give it, as in collectives(text, Mesh(X=4, Y=2))"
    )


def _leaves(tree: Any) -> Iterator[Any]:
    """The leaves of nested tuples, lists and dicts."""
    match tree:
        case Mapping():
            for branch in tree.values():
                yield from _leaves(branch)
        case tuple() | list():
            for branch in tree:
                yield from _leaves(branch)
        case _:
            yield tree
