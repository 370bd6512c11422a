"""What becomes of a program whose shardings are part of its types? Mode Explicit, for real and TPU devices.

`mesh(X=2, Y=4)` has axes of type Explicit, whatever JAX's version prefers; with `topology="v5e:2x4"` it is
one of TPUs that are not here. `compile` is `aot.compile` for functions that JAX shall type, and `types` says
how it types their results, with nothing compiled. Chapter: JAX.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.sharding import AxisType

from scalingbook_lib import notation
from scalingbook_lib.lab.compiler import aot, sharding
from scalingbook_lib.notation import Array
from scalingbook_lib.units import BF16, DType


def mesh(*, topology: str | None = None, **sizes: int) -> jax.sharding.Mesh:
    """A mesh of these axes, all of them Explicit, on this machine's devices or on a slice of TPUs."""
    auto = aot.mesh_for(topology, notation.Mesh(**sizes))
    return jax.sharding.Mesh(auto.devices, auto.axis_names, axis_types=(AxisType.Explicit,) * len(sizes))


def struct(text: str | Array, on: Any, dtype: Any = BF16, /, **sizes: int) -> jax.ShapeDtypeStruct:
    """An array as JAX needs to know it to type a program; `on` may be a mesh without any devices."""
    a = sharding.array(text)
    shape = a.shape(**{name: sizes[name] for name in a.names})
    placed = jax.NamedSharding(on, sharding.spec(a))
    kind = sharding.JAX_DTYPES[dtype.name] if isinstance(dtype, DType) else dtype
    return jax.ShapeDtypeStruct(shape, kind, sharding=placed)


def compile(
    fn: Callable,
    *arrays: str | Array,
    topology: str | None = None,
    mesh: notation.Mesh,
    dtype: Any = BF16,
    options: Mapping[str, Any] | None = None,
    **sizes: int,
) -> aot.Program:
    """As `aot.compile`, but JAX types the function: it says by `out_sharding` and `reshard` what it wants."""
    on = _mesh(topology=topology, **mesh.sizes)
    structs = _structs(arrays, on, dtype, sizes)
    # an abstract mesh, for `jax.set_mesh` would place arrays on devices that are not here
    with jax.sharding.use_abstract_mesh(on.abstract_mesh):
        return aot.compile(fn, *structs, mesh=mesh, topology=topology, options=options)


def types(fn: Callable, *arrays: str | Array, mesh: notation.Mesh, dtype: Any = BF16, **sizes: int) -> Any:
    """How JAX types fn's results, on a mesh of any number of devices, of which none is needed."""
    explicit = (AxisType.Explicit,) * len(mesh.axes)
    on = jax.sharding.AbstractMesh(mesh.shape, mesh.axes, axis_types=explicit)
    said: list[str] = []

    def told(*xs: jax.Array) -> Any:
        results = fn(*xs)
        said.extend(str(jax.typeof(leaf)) for leaf in jax.tree.leaves(results))
        return results

    with jax.sharding.use_abstract_mesh(on):
        jax.eval_shape(told, *_structs(arrays, on, dtype, sizes))
    return said[0] if len(said) == 1 else tuple(said)


def _structs(arrays: Any, on: Any, dtype: Any, sizes: Mapping[str, int]) -> list[jax.ShapeDtypeStruct]:
    """Every argument; `dtype` is one for all, or by array name, a library's or JAX's."""
    read = [sharding.array(text) for text in arrays]
    return [struct(a, on, sharding.dtype_of(a, dtype), **sizes) for a in read]


_mesh = mesh  # for `compile`, where the name is an argument's
