"""The book's notation and JAX's shardings are equivalent."""

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from scalingbook_lab.compiler import sharding
from scalingbook_lib.notation import Mesh, NotationError, parse
from scalingbook_lib.units import FP32, INT8

X4Y2 = Mesh(X=4, Y=2)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("A[I_X, J]", P("X", None)),
        ("A[I, J]", P(None, None)),
        ("A[I_XY, J]", P(("X", "Y"), None)),
        ("A[I_YX, J]", P(("Y", "X"), None)),
        ("A[I_Y, J_X, K]", P("Y", "X", None)),
    ],
)
def test_notation_converts_to_partition_specs(text, spec):
    assert sharding.spec(text) == spec


def test_a_partial_sum_is_unreduced():
    a = parse("A[I_Y, J]{U_X}")
    assert sharding.spec(a).unreduced == {"X"}
    assert sharding.array_of(sharding.spec(a)) == a


def test_a_mesh_of_the_notation_becomes_a_jax_mesh_with_auto_axes():
    mesh = sharding.mesh(X4Y2)
    assert dict(mesh.shape) == {"X": 4, "Y": 2}
    assert set(mesh.axis_types) == {AxisType.Auto}
    assert sharding.mesh(X=4, Y=2) == mesh
    assert sharding.mesh(mesh) is mesh


@pytest.mark.parametrize("text", ["A[I_X, J]", "A[I_XY, J]", "A[I_YX, J]", "A[I, J_Y]", "A[I, J]"])
def test_every_device_holds_the_block_that_the_notation_says(text):
    x = np.arange(64).reshape(8, 8)
    placed = sharding.place(x, text, X4Y2)
    mesh = sharding.mesh(X4Y2)
    at = {device: place for place, device in np.ndenumerate(mesh.devices)}
    blocks = parse(text).blocks(X4Y2, I=8, J=8)
    for shard in placed.addressable_shards:
        rows, columns = blocks[at[shard.device]]
        assert (np.asarray(shard.data) == x[np.ix_(rows, columns)]).all()
    assert sharding.array_of(placed) == parse(text)
    assert placed.sharding.shard_shape(placed.shape) == parse(text).local_shape(X4Y2, I=8, J=8)


def test_an_array_on_one_device_is_unsharded():
    assert str(sharding.array_of(jax.numpy.ones((2, 3)))) == "A[I, J]"


def test_a_struct_allocates_nothing():
    huge = sharding.struct("A[I_X, J]", X4Y2, INT8, I=10**6, J=10**6, K=3)
    assert (huge.shape, huge.dtype, huge.sharding.spec) == ((10**6, 10**6), np.int8, P("X", None))


def test_a_local_function_gets_the_shards_of_one_device():
    seen = []

    def block(x):
        seen.append(x.shape)
        return jax.lax.psum(x, "X")

    whole = sharding.local(block, "A[I_X, J]", out="A[I, J]", on=X4Y2)
    assert (whole(np.ones((8, 6), np.float32)) == 4).all()
    assert seen[0] == (2, 6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sharding.place(np.ones(3), "A[I_X, J]", X4Y2), "2 dimensions"),
        (lambda: sharding.named("A[I_Z]", X4Y2), "Z"),
        (lambda: sharding.spec("A[I_X, J_X]"), "X"),
        (lambda: sharding.struct("A[I]", X4Y2, FP32, J=3), "I"),
    ],
)
def test_arrays_that_cannot_be_placed_are_refused_with_a_reason(call, says):
    with pytest.raises(NotationError, match=says):
        call()
