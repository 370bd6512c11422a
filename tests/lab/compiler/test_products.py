"""Compiled matmuls and reshardings agree with the prediction, or the difference is explained."""

import jax.numpy as jnp
import pytest

from scalingbook_lib import hlo
from scalingbook_lib.collectives.resharding import reshard
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.notation import Mesh, parse, parse_product
from scalingbook_lib.sharded_matmul import solve

ON = {"topology": "v5e:4x4", "mesh": Mesh(X=4, Y=4)}
MACHINE = Slice(V5E, (4, 4)).mesh(X=4, Y=4)
N = 4096

AS_PREDICTED = (
    "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    "A[I, J_X] · B[J_X, K] -> C[I, K]",
    "A[I_X, J_Y] · B[J_X, K_Y] -> C[I_X, K_Y]",
    "A[I_XY, J] · B[J_XY, K] -> C[I_XY, K]",
    "A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]",
    "A[I_X, J_Y] · B[J_Y, K_X] -> C[I_X, K]",
)
OTHERWISE = {  # what is said of them
    "A[I, J_X] · B[J, K] -> C[I, K]": "the compiler chose 'gather A over X'",
    "A[I, J_X] · B[J_X, K] -> C[I_X, K]": "it also shards the work over Y",
    "A[I_X, J] · B[J, K_X] -> C[I_X, K]": "it also shards the work over Y",
    "A[I_X, J] · B[J_Y, K] -> C[I_X, K_Y]": "the compiler chose 'all-to-all B over Y'",
    "A[I, J_XY] · B[J_XY, K] -> C[I_XY, K]": "then a slice, instead of the reduce-scatter",
}
RESHARDED = (
    ("A[I_X, J]", "A[I, J_X]"),
    ("A[I_XY, J]", "A[I_X, J]"),
    ("A[I_XY, J]", "A[I_YX, J]"),
    ("A[I_X, J_Y]", "A[I_Y, J_X]"),
    ("A[I_XY, J]", "A[I_X, J_Y]"),
    ("A[I_XY, J]", "A[I_Y, J]"),
    ("A[I_X, J_Y]", "A[I, J]"),
)


def product(tpu, text):
    p = parse_product(text)
    sizes = dict.fromkeys(p.names, N)
    letters = ["".join(array.names) for array in p.arrays]

    def multiplied(a, b):
        return jnp.einsum(f"{letters[0]},{letters[1]}->{letters[2]}", a, b)

    program = tpu(multiplied, p.a, p.b, out=p.c, **ON, **sizes)
    return hlo.compare(solve(p, MACHINE, sizes), program)


@pytest.mark.parametrize("text", AS_PREDICTED)
def test_the_compiler_multiplies_as_predicted(tpu, text):
    found = product(tpu, text)
    assert found.agrees, str(found)


@pytest.mark.parametrize(("text", "said"), OTHERWISE.items())
def test_differences_of_compiled_matmuls_are_explained(tpu, text, said):
    assert said in str(product(tpu, text))


def resharded(tpu, before, after):
    sizes = {"I": N, "J": N}
    program = tpu(lambda x: x, parse(before), out=after, **ON, **sizes)
    return hlo.compare(reshard(before, after, MACHINE, sizes).best.moves, program)


@pytest.mark.parametrize(("before", "after"), RESHARDED)
def test_the_compiler_reshards_as_predicted(tpu, before, after):
    found = resharded(tpu, before, after)
    assert found.agrees, str(found)


def test_permuting_whole_blocks_moves_the_bytes_of_gathered_parts(tpu):
    found = resharded(tpu, "A[I_X, J]", "A[I_Y, J]")
    assert found.compiled_bytes == pytest.approx(found.predicted_bytes)
    assert "collective-permute over XY: 8.39 MB, 4 times" in str(found)
