"""Trace and compile programs whose shardings are part of their types (JAX's Explicit mode).

`mesh(X=2, Y=4)` has axes of type Explicit in every JAX version. With `topology="v5e:2x4"` it is a mesh of
TPUs that are not attached. `compile` is `aot.compile` for such functions, and `types` returns the types of
their results without compiling. Chapter: JAX.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.sharding import AxisType

from scalingbook_lab.compiler import aot, sharding
from scalingbook_lib import notation
from scalingbook_lib.notation import Array
from scalingbook_lib.units import BF16, DType


def mesh(*, topology: str | None = None, **sizes: int) -> jax.sharding.Mesh:
    """Return a mesh of these axes, all of type Explicit, on this machine's devices or on a TPU slice."""
    auto_mesh = aot.mesh_for(topology, notation.Mesh(**sizes))
    return jax.sharding.Mesh(
        auto_mesh.devices, auto_mesh.axis_names, axis_types=(AxisType.Explicit,) * len(sizes)
    )


def struct(text: str | Array, on: Any, dtype: Any = BF16, /, **sizes: int) -> jax.ShapeDtypeStruct:
    """Return the shape, dtype and sharding of an array in the notation; `on` may be an abstract mesh."""
    a = sharding.array(text)
    shape = a.shape(**{name: sizes[name] for name in a.names})
    placed = jax.NamedSharding(on, sharding.spec(a))
    jax_dtype = sharding.JAX_DTYPES[dtype.name] if isinstance(dtype, DType) else dtype
    return jax.ShapeDtypeStruct(shape, jax_dtype, sharding=placed)


def compile(
    fn: Callable,
    *arrays: str | Array,
    topology: str | None = None,
    mesh: notation.Mesh,
    dtype: Any = BF16,
    options: Mapping[str, Any] | None = None,
    **sizes: int,
) -> aot.Program:
    """Compile a function that states its shardings with `out_sharding` and `reshard`.

    See `aot.compile`.
    """
    on = _make_mesh(topology=topology, **mesh.sizes)
    structs = _structs(arrays, on, dtype, sizes)
    # an abstract mesh, because `jax.set_mesh` would place arrays on devices that are not attached
    with jax.sharding.use_abstract_mesh(on.abstract_mesh):
        return aot.compile(fn, *structs, mesh=mesh, topology=topology, options=options)


def types(fn: Callable, *arrays: str | Array, mesh: notation.Mesh, dtype: Any = BF16, **sizes: int) -> Any:
    """Return JAX's types of the results of `fn` on a mesh of any size, without any devices.

    The result is one type as text, or a tuple of several.
    """
    explicit = (AxisType.Explicit,) * len(mesh.axes)
    on = jax.sharding.AbstractMesh(mesh.shape, mesh.axes, axis_types=explicit)
    found: list[str] = []

    def traced(*xs: jax.Array) -> Any:
        results = fn(*xs)
        found.extend(str(jax.typeof(leaf)) for leaf in jax.tree.leaves(results))
        return results

    with jax.sharding.use_abstract_mesh(on):
        jax.eval_shape(traced, *_structs(arrays, on, dtype, sizes))
    return found[0] if len(found) == 1 else tuple(found)


def _structs(arrays: Any, on: Any, dtype: Any, sizes: Mapping[str, int]) -> list[jax.ShapeDtypeStruct]:
    """Return the shape, dtype and sharding of every argument; `dtype` is one for all or one by array name."""
    parsed = [sharding.array(text) for text in arrays]
    return [struct(a, on, sharding.dtype_of(a, dtype), **sizes) for a in parsed]


_make_mesh = mesh  # `compile` has a parameter named `mesh`
