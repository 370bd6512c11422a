"""Conversions between the book's notation for a sharding and JAX's.

The book's `A[I_XY, J]{U_Z}` is `P(('X', 'Y'), None, unreduced={'Z'})` as a spec and
`bfloat16[1024@(X,Y),2048]{U:Z}` as a type. Nothing is imported from JAX: a test in the lab compares every
text with what JAX prints.
"""

import ast
from collections.abc import Sequence

from scalingbook_lib.notation import Array, Dim, Mesh

NAMES = "IJKLM"
JAX_NAMES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "i8"}
_HOW = "write one entry for each dimension, as in P('X', None) or P(('X', 'Y'), None)"


def read(text: str, rank: int, mesh: Mesh, name: str = "A", dims: Sequence[str] = NAMES) -> Array:
    """The array of `rank` dimensions sharded by a spec such as `P('X', None, unreduced={'Y'})`.

    A spec may be shorter than its array, as in JAX. Raises a ValueError if JAX would refuse the spec.
    """
    call = _call(text)
    entries = [_axes(text, node) for node in call.args]
    if len(entries) > rank:
        raise ValueError(f"{text}: {len(entries)} entries for {rank} dimensions; {_HOW}")
    entries += [()] * (rank - len(entries))
    partial = _partial(text, call)
    _check(text, [axis for entry in entries for axis in entry], partial, mesh)
    return Array(name, tuple(Dim(d, e) for d, e in zip(dims, entries, strict=False)), partial)


def spec(array: Array) -> str:
    """The array's spec as text: `A[I_XY, J]{U_Z}` becomes `P(('X', 'Y'), None, unreduced={'Z'})`."""
    entries = [entry(dim.axes) for dim in array.dims]
    if array.partial:
        entries.append(f"unreduced={{{', '.join(map(repr, sorted(array.partial)))}}}")
    return f"P({', '.join(entries)})"


def typed(array: Array, shape: Sequence[int], jax_name: str = "bfloat16") -> str:
    """The array's type as `jax.typeof` prints it: `bfloat16[1024@(X,Y),2048]{U:Z}`."""
    dims = ",".join(f"{n}{at(dim.axes)}" for n, dim in zip(shape, array.dims, strict=True))
    partial = f"{{U:{','.join(sorted(array.partial))}}}" if array.partial else ""
    return f"{jax_name}[{dims}]{partial}"


def _call(text: str) -> ast.Call:
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise ValueError(f"{text!r} is not Python; {_HOW}") from None
    if not (isinstance(call, ast.Call) and ast.unparse(call.func) in ("P", "jax.P", "PartitionSpec")):
        raise ValueError(f"{text!r} is not a P(...); {_HOW}")
    return call


def _axes(text: str, node: ast.expr) -> tuple[str, ...]:
    """The axes of one entry: None, the name of an axis, or a tuple of names."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [part.value for part in parts if isinstance(part, ast.Constant)]
    if names == [None] and not isinstance(node, ast.Tuple):
        return ()
    found = tuple(name for name in names if isinstance(name, str))
    if len(found) < len(parts):
        raise ValueError(f"{text}: {ast.unparse(node)} is not an entry; write None, 'X' or ('X', 'Y')")
    return found


def _partial(text: str, call: ast.Call) -> tuple[str, ...]:
    """The axes of `unreduced={'Y'}`."""
    names: list[str] = []
    for given in call.keywords:
        if given.arg != "unreduced" or not isinstance(given.value, ast.Set):
            raise ValueError(f"{text}: {given.arg}= is not read here; write unreduced={{'Y'}} or nothing")
        names += _axes(text, ast.Tuple(given.value.elts))
    return tuple(names)


def _check(text: str, split: list[str], partial: tuple[str, ...], mesh: Mesh) -> None:
    """Raise a ValueError if the spec breaks one of JAX's three rules.

    Every axis is an axis of the mesh, shards one dimension at most, and is not both sharded and unreduced.
    """
    for axis in (*split, *partial):
        both = axis in partial and axis in split
        for broken, why in (
            (axis not in mesh.axes, f"the mesh has no axis {axis!r}; choose from {', '.join(mesh.axes)}"),
            (split.count(axis) > 1, f"axis {axis!r} is used twice; an axis shards one dimension, once"),
            (both, f"axis {axis!r} cannot both shard a dimension and be unreduced; keep one"),
        ):
            if broken:
                raise ValueError(f"{text}: {why}")


def entry(axes: tuple[str, ...]) -> str:
    """One dimension's axes as JAX prints them: None, 'X' or ('X', 'Y')."""
    return "None" if not axes else repr(axes[0]) if len(axes) == 1 else repr(axes)


def at(axes: tuple[str, ...]) -> str:
    """The axes as JAX prints them after a size in a type: `@X`, `@(X,Y)`."""
    return "" if not axes else f"@{axes[0]}" if len(axes) == 1 else f"@({','.join(axes)})"
