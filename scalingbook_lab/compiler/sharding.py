"""Translate the book's notation into JAX's `Mesh`, `PartitionSpec` and `NamedSharding`, and back.

A mesh of the notation (`Mesh(X=4, Y=2)`) is accepted wherever a JAX mesh is expected. Chapter: Sharding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from scalingbook_lab import devices as lab_devices
from scalingbook_lib import hlo, notation
from scalingbook_lib.notation import Array, Dim, NotationError
from scalingbook_lib.units import BF16, DType

JAX_DTYPES = {
    "fp32": jnp.float32,
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "fp8": jnp.float8_e4m3fn,
    "int8": jnp.int8,
    "int4": jnp.int4,
}

type AnyMesh = notation.Mesh | jax.sharding.Mesh


def mesh(
    sizes: AnyMesh | None = None, devices: Sequence[Any] | None = None, /, **named: int
) -> jax.sharding.Mesh:
    """Return a JAX mesh of these axes, with the last one fastest: `mesh(Mesh(X=4, Y=2))` or `mesh(X=4, Y=2)`.

    Its axes are of type Auto in every JAX version: the compiler chooses the shardings that are not given.
    """
    if isinstance(sizes, jax.sharding.Mesh):
        return sizes
    wanted = hlo.sizes_of(sizes if sizes is not None else notation.Mesh(**named))
    n = int(np.prod(list(wanted.values())))
    # set axis_types explicitly: the default is Auto in JAX 0.7 and Explicit since 0.9, and Explicit rejects
    # programs that leave shardings to the compiler
    grid = np.array(devices if devices is not None else lab_devices.get(n)).reshape(tuple(wanted.values()))
    return jax.sharding.Mesh(grid, tuple(wanted), axis_types=(AxisType.Auto,) * len(wanted))


def array(text: str | Array) -> Array:
    """Return an array of the notation, parsed if it is given as text."""
    return notation.parse(text) if isinstance(text, str) else text


def spec(text: str | Array) -> PartitionSpec:
    """`A[I_XY, J]` as `PartitionSpec(('X', 'Y'), None)`; a partial sum `{U_Z}` as `unreduced={'Z'}`."""
    a = array(text)
    entries = [dim.axes if len(dim.axes) > 1 else dim.axes[0] if dim.axes else None for dim in a.dims]
    return PartitionSpec(*entries, unreduced=frozenset(a.partial)) if a.partial else PartitionSpec(*entries)


def named(text: str | Array, on: AnyMesh) -> NamedSharding:
    """Return `A[I_X, J]` on a mesh as a NamedSharding. Raises NotationError if the mesh lacks an axis."""
    a = array(text)
    a.check(notation.Mesh(**hlo.sizes_of(on)))
    return NamedSharding(mesh(on), spec(a))


def array_of(given: Any, names: Sequence[str] = "IJKLM", name: str = "A") -> Array:
    """Return in the notation how a JAX array, a sharding or a PartitionSpec is sharded.

    A spec may be shorter than its array, so give as many dimension names as the array has dimensions.
    """
    # an array has a sharding, and a sharding has a spec; an array on a single device has no spec and is not
    # sharded
    spec_of = getattr(given, "sharding", given)
    spec_of = spec_of if isinstance(spec_of, PartitionSpec) else getattr(spec_of, "spec", PartitionSpec())
    entries = list(getattr(spec_of, "partitions", None) or tuple(spec_of))
    rank = getattr(given, "ndim", len(entries) if names == "IJKLM" else len(names))
    entries += [None] * (rank - len(entries))
    dims = tuple(Dim(n, _axes(entry)) for n, entry in zip(names, entries, strict=False))
    return Array(name, dims, tuple(sorted(getattr(spec_of, "unreduced", ()))))


def place(x: Any, text: str | Array, on: AnyMesh) -> jax.Array:
    """Shard an array over a mesh: `place(x, "A[I_X, J]", Mesh(X=4, Y=2))`.

    Raises NotationError if the number of dimensions differs.
    """
    a = array(text)
    if np.ndim(x) != len(a.dims):
        reason = f"it has {len(a.dims)} dimensions, and the array to place has {np.ndim(x)}"
        raise NotationError("rank", str(a), reason, "write one name for each dimension")
    return jax.device_put(x, named(a, on))


def struct(text: str | Array, on: AnyMesh, dtype: DType = BF16, /, **sizes: int) -> jax.ShapeDtypeStruct:
    """Return the shape, dtype and sharding of an array in the notation, without allocating it."""
    a = array(text)
    shape = a.shape(**{name: size for name, size in sizes.items() if name in a.names})
    return jax.ShapeDtypeStruct(shape, JAX_DTYPES[dtype.name], sharding=named(a, on))


def argument(a: Any, on: AnyMesh, dtype: DType | Mapping[str, DType], sizes: Mapping[str, int]) -> Any:
    """Return the shape, dtype and sharding of an argument in the notation; return any other argument
    unchanged.

    `dtype` is one for all arguments, or one by array name (bf16 for arrays that have no entry).
    """
    if not isinstance(a, str | Array):
        return a
    return struct(a, on, dtype_of(array(a), dtype), **sizes)


def dtype_of(a: Array, dtype: Any) -> Any:
    """Return the dtype of an array, given one dtype for all arrays or one by array name."""
    return dtype.get(a.name, BF16) if isinstance(dtype, Mapping) else dtype


def results(out: Any, on: AnyMesh) -> dict[str, Any]:
    """Return the keyword arguments of `jax.jit` for results in the notation.

    The dict is empty if the compiler is to choose the shardings.
    """
    if out is None:
        return {}
    placed = jax.tree.map(lambda a: named(a, on), out)
    return {"out_shardings": tuple(placed) if isinstance(placed, list) else placed}


def local(
    fn: Callable, *arrays: str | Array, out: str | Array | Sequence[str | Array], on: AnyMesh
) -> Callable:
    """Turn `fn`, written for the shards of one device, into a function of global arrays (`jax.shard_map`)."""
    ins = tuple(spec(a) for a in arrays)
    # check_vma=False: JAX cannot infer that the result of a hand-written kernel, or of a replicated sum, is
    # replicated
    outs = spec(out) if isinstance(out, str | Array) else tuple(spec(a) for a in out)
    return jax.shard_map(fn, mesh=mesh(on), in_specs=ins, out_specs=outs, check_vma=False)


def _axes(entry: Any) -> tuple[str, ...]:
    """Return the axes in one entry of a PartitionSpec."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
