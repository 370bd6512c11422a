"""Compares predicted matmuls with compiled programs, and explains the differences."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_lib import hlo, sharded_matmul
from scalingbook_lib.machines import chips
from scalingbook_lib.notation import Mesh, parse_product
from scalingbook_lib.units import BF16, FP32

MESH = Mesh(X=2, Y=4)
SLICE = chips.Slice.of(chips.V5E, "2x4").mesh(X=2, Y=4)
SMALL, LARGE = dict.fromkeys("IJK", 2048), dict.fromkeys("IJK", 8192)


def multiply(a, b):
    return a @ b


def both(compiler, text, sizes=SMALL, topology="v5e:2x4", dtype=BF16):
    a, b, c = (array.canonical() for array in parse_product(text).arrays)
    program = compiler(multiply, a, b, out=c, mesh=MESH, topology=topology, dtype=dtype, **sizes)
    return sharded_matmul.solve(text, SLICE, sizes, BF16), program


@pytest.mark.parametrize(
    "text",
    [
        "A[I_X, J_Y] · B[J, K] -> C[I_X, K]",
        "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]",
        "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]",
    ],
)
def test_small_products_are_compiled_as_predicted(tpu, text):
    told = hlo.compare(*both(tpu, text))
    assert told.agrees
    assert told.predicted_bytes == told.compiled_bytes
    assert str(told).startswith("as predicted: a device receives")


def test_a_large_gather_becomes_a_collective_matmul(tpu):
    told = hlo.compare(*both(tpu, "A[I_X, J_Y] · B[J, K_Y] -> C[I_X, K_Y]", LARGE))
    (line,) = told.differences
    assert line.predicted == (("all-gather", "Y"),)
    assert line.compiled == (("collective-permute", "Y"),)
    assert "instead of the all-gather: a ring hidden behind the chunks of the matmul" in str(line)
    assert told.predicted_bytes == told.compiled_bytes


def test_a_large_reduce_scatter_becomes_a_longer_ring(tpu):
    told = hlo.compare(*both(tpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]", LARGE))
    assert "instead of the reduce-scatter: a ring of 1.67 times the bytes" in str(told)


def test_xla_on_a_cpu_uses_fp32_and_slices_after_an_all_reduce(cpu):
    wide = hlo.compare(*both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", topology=None))
    assert "2 times the 4.19 MB predicted: it moves fp32, which is twice bf16" in str(wide)
    sliced = hlo.compare(*both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]", topology=None))
    assert "of fp32, then a slice, instead of the reduce-scatter: twice the bytes on the links" in str(sliced)
    assert sliced.compiled_bytes == 4 * sliced.predicted_bytes


def test_duplicated_work_is_reported(cpu):
    solution, _ = both(cpu, "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", topology=None)
    program = cpu(multiply, "A[I, J]", "B[J, K_Y]", out="C[I, K_Y]", mesh=MESH, topology=None, **SMALL)
    assert "2 times the 2.15 GFLOPs predicted" in str(hlo.compare(solution, program))


def test_a_loop_explains_repeated_collectives():
    def summed(x):
        def step(total, part):
            return total + lax.psum(part, "X"), None

        return lax.scan(step, jnp.zeros(x.shape[1:]), x)[0]

    from scalingbook_lab.compiler import aot

    program = aot.compile(summed, "A[N, I_X]", out="B[I]", mesh=Mesh(X=4), local=True, dtype=FP32, N=5, I=64)
    told = hlo.compare({"all-reduce X": (1, 4 * 16)}, program)
    assert ": it runs 5 times, not 1, in a loop" in str(told)
    assert hlo.compare({"all-reduce X": (5, 5 * 4 * 16)}, program).agrees


def test_a_program_is_compared_with_another(cpu):
    _, program = both(cpu, "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", topology=None)
    assert hlo.compare(program, program).agrees
    assert hlo.compare(program.collectives.nbytes(), program).agrees


def test_a_jax_program_knows_its_mesh():
    mesh = jax.make_mesh((4,), ("X",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    split = jax.NamedSharding(mesh, jax.P("X"))
    whole = jax.NamedSharding(mesh, jax.P())
    program = jax.jit(lambda x: x + 1, in_shardings=split, out_shardings=whole).lower(jnp.ones(64)).compile()
    assert hlo.compare({"all-gather X": 256}, program).agrees
