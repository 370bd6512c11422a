"""Branches, loops, kernels and custom calls: what one run costs, and what the text does not reveal."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from scalingbook_book.code_exercises import judge
from scalingbook_lab.compiler import aot
from scalingbook_lab.kernels import comparison
from scalingbook_lib import hlo
from scalingbook_lib.notation import Mesh

pytestmark = pytest.mark.usefixtures("tpu")


def block(x, w, v):
    return jnp.tanh(x @ w) @ v


N = 1024
SQUARE = {"topology": "v5e:2x2", "mesh": Mesh(X=4), "B": 4 * N, "D": N, "F": N}


def test_the_longer_of_two_branches_counts():
    def chosen(x, w, i):
        return lax.cond(i > 0, lambda x: x @ w, lambda x: jnp.tanh(jnp.tanh(x @ w) @ w) @ w, x)

    i = jax.ShapeDtypeStruct((), jnp.int32)
    program = aot.compile(chosen, "A[B_X, D]", "W[D, F]", i, **SQUARE)
    assert program.flops == 3 * 2 * N**3
    assert "the longest of 2" in str(program.schedule())


def test_a_loop_of_unknown_length_counts_once():
    def looped(x, w, n):
        return lax.while_loop(lambda s: s[1] < n, lambda s: (jnp.tanh(s[0] @ w), s[1] + 1), (x, 0))[0]

    n = jax.ShapeDtypeStruct((), jnp.int32)
    program = aot.compile(looped, "A[B_X, D]", "W[D, F]", n, **SQUARE)
    assert program.flops == 2 * N**3
    assert program.cycles > 0
    assert "≥ 2.15 GFLOPs" in str(program)
    assert "counted once" in str(program)
    assert hlo.compare({}, program).agrees  # no collective is in that loop


def test_a_vector_times_a_matrix_counts_as_a_matmul():
    sizes = {"topology": "v5e:2x2", "mesh": Mesh(X=4), "B": 1, "D": 4096, "F": 16384}
    program = aot.compile(block, "A[B, D]", "W[D, F_X]", "V[F_X, D]", out="A[B, D]", **sizes)
    assert program.flops == 2 * 2 * 4096 * 4096
    assert not program.not_counted


def test_a_kernel_counts_the_flops_of_its_cost_estimate():
    groups = jax.ShapeDtypeStruct((8,), jnp.int32)
    on = {"topology": "v5e:1x1", "mesh": Mesh(X=1)}
    program = aot.compile(lax.ragged_dot, "A[B, D]", "W[E, D, F]", groups, **on, B=N, D=N, F=N, E=8)
    assert program.flops == 2 * N**3
    assert not program.not_counted


def test_a_kernel_without_a_cost_estimate_is_listed():
    """It sends by remote DMA, which is not in the program's text, so
    no assertion of its collectives holds.
    """
    program = comparison.all_gather(N, N).kernel
    assert [str(one) for one in program.not_counted] == [
        "not counted: of kernel ring_all_gather.1, its FLOPs and what it sends to other devices"
    ]
    assert "not counted" in str(program)
    assert "not counted" in str(program.collectives)
    assert program.collectives.counts() == {}
    assert program.collectives != {}
    assert not hlo.compare({}, program).agrees


def test_a_program_with_a_loop_of_unknown_length_is_not_judged():
    row = {"kind": "all-reduce", "axes": "X", "nbytes": 32, "dtype": "f32", "devices": 2}
    open_loop = hlo.CompiledCollective(**row, times=None)
    with pytest.raises(hlo.HloError, match="must be visible"):
        judge.summed(hlo.Collectives((open_loop,), ("a loop: counted once",)))
