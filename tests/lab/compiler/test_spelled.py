"""Functions that JAX has renamed work in every version, and types are derived without compiling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from scalingbook_lab import compat
from scalingbook_lab.compiler import aot, explicit, sharding
from scalingbook_lib.notation import Mesh
from scalingbook_lib.units import FP32

GRID = Mesh(X=2, Y=4)


def in_blocks(fn, out=P("X", "Y")):  # noqa: B008
    local = jax.shard_map(fn, mesh=sharding.mesh(GRID), in_specs=P("X", "Y"), out_specs=out)
    return local(jnp.arange(32.0).reshape(4, 8))


def test_the_varying_axes_are_listed():
    seen = []

    def spy(x):
        seen.extend(
            map(compat.varies, (x, lax.psum(x, "Y"), jnp.zeros(3), compat.varying(jnp.zeros(3), "X")))
        )
        return x

    in_blocks(spy)
    assert seen == [("X", "Y"), ("X",), (), ("X",)]


def test_a_value_may_vary_already():
    once = in_blocks(lambda x: compat.varying(compat.varying(x, ("X", "Y")), "X"))
    assert (once == jnp.arange(32.0).reshape(4, 8)).all()


@pytest.mark.parametrize(("axis", "out"), [(0, P(None, "Y")), (1, P("X", None))])
def test_a_gathered_array_is_the_same_on_all_devices(axis, out):
    gathered = in_blocks(lambda x: compat.all_gather(x, "XY"[axis], axis=axis), out)
    assert (np.asarray(gathered) == np.arange(32).reshape(4, 8)).all()


def test_a_refusal_is_captured_and_its_absence_is_an_error():
    with compat.refused() as said:
        raise TypeError("two\n words")
    assert said == ["TypeError", "two words"]
    with compat.refused(about="a type") as said:
        raise TypeError("In line 3, a type is unknown. Write another.")
    assert said == ["TypeError", "a type is unknown"]
    with pytest.raises(AssertionError, match="refused nothing"), compat.refused():
        pass


def test_a_type_needs_no_devices():
    def scatter(x, w):
        return jnp.dot(x, w, out_sharding=P("X", "Y"))

    pod = Mesh(X=16, Y=16)
    assert explicit.types(scatter, "X[B_X, D_Y]", "W[D_Y, F]", mesh=pod, B=64, D=64, F=64) == (
        "bfloat16[64@X,64@Y]"
    )
    two = explicit.types(lambda a: (a, a.sum(1)), "A[B_X, D]", mesh=GRID, dtype=FP32, B=64, D=64)
    assert two == ("float32[64@X,64]", "float32[64@X]")


def test_a_sharded_contraction_without_a_sum_is_refused():
    with compat.refused() as said:
        explicit.types(jnp.matmul, "X[B, D_Y]", "W[D_Y, F]", mesh=GRID, B=8, D=8, F=8)
    assert said[0] == "ShardingTypeError"


def test_types_may_differ_by_array():
    lookup = lambda e, t: e.at[t].get(out_sharding=P("X", None))  # noqa: E731
    kinds = {"T": jnp.int32, "E": FP32}
    found = explicit.types(lookup, "E[V_Y, D]", "T[B_X]", mesh=GRID, dtype=kinds, V=16, D=8, B=4)
    assert found == "float32[4@X,8]"


def test_a_typed_program_compiles_and_runs():
    def product(x, w):
        return jnp.dot(x, w, out_sharding=P("X", None))

    assert set(explicit.mesh(X=2, Y=4).axis_types) == {AxisType.Explicit}
    program = explicit.compile(product, "X[B_X, D_Y]", "W[D_Y, F]", mesh=GRID, dtype=FP32, B=4, D=8, F=4)
    assert program.collectives.over_axes() == {"all-reduce Y": 1}
    assert (program.run(np.ones((4, 8), "float32"), np.ones((8, 4), "float32")) == 8).all()


@pytest.mark.skipif(not aot.available(), reason=aot.why_not() or "")
def test_a_typed_program_compiles_for_a_slice():
    def product(x, w):
        return jnp.dot(x, w, out_sharding=P("X", None, unreduced=frozenset("Y")))

    program = explicit.compile(
        product, "X[B_X, D_Y]", "W[D_Y, F]", mesh=GRID, topology="v5e:2x4", B=256, D=256, F=256
    )
    assert not program.collectives
    assert program.chip is not None
