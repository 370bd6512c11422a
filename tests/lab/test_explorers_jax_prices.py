"""The bytes that the type checker of the chapter on JAX predicts are those that the TPU compiler moves."""

import os

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from scalingbook_book.chapters.jax.explorers.types import NOT_GIVEN, operands
from scalingbook_lab.compiler import aot
from scalingbook_lib import hlo
from scalingbook_lib.hlo.predicted import KINDS
from scalingbook_lib.notation.types import rules
from scalingbook_lib.notation.types import spec as jax_spec
from scalingbook_lib.notation.types.operands import MESH
from scalingbook_lib.sharded_matmul import prices

N = 2048
FLAT, UNREDUCED = "A.reshape(-1)", "P('X', None, unreduced={'Y'})"
PRODUCT, RESHARD = rules.PRODUCT, rules.RESHARD
RUNS = {
    PRODUCT: lambda a, b, out: a @ b if out is None else jnp.dot(a, b, out_sharding=out),
    RESHARD: lambda a, b, out: jax.reshard(a, out),
    FLAT: lambda a, b, out: a.reshape(-1),
    "A + B": lambda a, b, out: a + b,
}
CASES = [
    (PRODUCT, "P('X', 'Y')", "P('Y', None)", UNREDUCED),
    (PRODUCT, "P('X', 'Y')", "P('Y', None)", "P('X', 'Y')"),
    (PRODUCT, "P('X', 'Y')", "P('Y', None)", "P(('X', 'Y'), None)"),
    (PRODUCT, "P('X', 'Y')", "P('Y', None)", "P('X', None)"),
    (PRODUCT, "P('X', 'Y')", "P(None, 'Y')", NOT_GIVEN),
    (PRODUCT, "P('X', 'Y')", "P(None, None)", NOT_GIVEN),
    (FLAT, "P('X', 'Y')", "P(None, None)", NOT_GIVEN),
    ("A + B", "P('X', 'Y')", "P('X', None)", NOT_GIVEN),
    (RESHARD, "P('X', 'Y')", "P(None, None)", UNREDUCED),
    (RESHARD, "P(('X', 'Y'), None)", "P(None, None)", "P(('Y', 'X'), None)"),
]


@pytest.fixture(scope="module")
def mesh():
    """The eight chips of an absent v5e:2x4, in explicit mode."""
    if not aot.available():
        if os.environ.get("CI"):
            pytest.fail(aot.why_not())
        pytest.skip(aot.why_not())
    there = aot.mesh_for("v5e:2x4", MESH.sizes)
    return jax.sharding.Mesh(there.devices, there.axis_names, axis_types=(AxisType.Explicit,) * 2)


@pytest.mark.parametrize(("operation", "a", "b", "out"), CASES)
def test_the_compiler_moves_what_the_checker_says(mesh, operation, a, b, out):
    o = operands(operation, a=a, b=b, out=out, I=N, J=N, K=N)
    made = rules.answer(operation, o).array
    wanted = [move for move in prices.ways(operation, o, made)[0].moves if move.seconds]
    found = hlo.collectives(_compiled(mesh, operation, o), mesh)
    assert [c.kind for c in found] == [KINDS[move.kind] for move in wanted]
    if wanted and wanted[0].axes:  # a permutation of shards names no axes, and counts what one device sends
        assert [c.axes for c in found] == [move.axes for move in wanted]
        assert [c.nbytes for c in found] == [move.nbytes for move in wanted]


def _compiled(mesh, operation, o):
    def struct(array):
        sharding = NamedSharding(mesh, spec(array))
        return jax.ShapeDtypeStruct(array.shape(**o.sizes), jnp.bfloat16, sharding=sharding)

    def run(a, b):
        return RUNS[operation](a, b, o.out and spec(o.out))

    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        lowered = jax.jit(run).lower(struct(o.a), struct(o.b))
        return lowered.compile({"xla_jf_spmd_threshold_for_windowed_einsum_mib": "1000000"})


def spec(array):
    return eval(jax_spec.spec(array), {"P": PartitionSpec})
