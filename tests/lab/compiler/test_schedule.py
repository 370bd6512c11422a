"""Overlap in the schedules of compiled programs."""

import pytest
from jax import lax

from scalingbook_lab.compiler import aot
from scalingbook_lib.notation import Mesh

X2Y4 = Mesh(X=2, Y=4)


def by_hand(x, w):
    """Y = X · W as a ring: blocks of X are sent on while the last one is multiplied."""
    n, me, D, out = lax.axis_size("Y"), lax.axis_index("Y"), x.shape[1], 0
    for hop in range(n):
        block = lax.dynamic_slice_in_dim(w, (me - hop) % n * D, D)
        arriving = lax.ppermute(x, "Y", [(i, (i + 1) % n) for i in range(n)]) if hop < n - 1 else x
        out, x = out + x @ block, arriving
    return out


SIZES = {"B": 4096, "D": 8192, "F": 8192}
OFF = {"xla_jf_spmd_threshold_for_windowed_einsum_mib": "1000000"}


def multiply(x, w):
    return x @ w


def test_the_compiler_overlaps_a_ring_written_by_hand(tpu):
    where = {"mesh": X2Y4, "topology": "v5e:2x4"}
    program = tpu(by_hand, "X[B, D_Y]", "W[D, F_Y]", out="Y[B, F_Y]", local=True, **where, **SIZES)
    assert len(program.schedule().hidden) == 3
    assert program.collectives.over_axes() == {"collective-permute Y": 3}


@pytest.mark.parametrize("by_itself", [True, False])
@pytest.mark.usefixtures("tpu")
def test_xla_makes_collective_matmuls_unless_they_are_disabled(by_itself):
    where = {"mesh": X2Y4, "topology": "v5e:2x4", "options": None if by_itself else OFF}
    program = aot.compile(multiply, "X[B_X, D_Y]", "W[D, F_Y]", out="Y[B_X, F_Y]", **where, **SIZES)
    kinds = set(program.collectives.counts())
    assert kinds == ({"collective-permute"} if by_itself else {"all-gather"})
    assert bool(program.schedule().hidden) == by_itself
    ring = {c.shift for c in program.collectives}
    assert ring == ({1, -1} if by_itself else {None})


def test_a_program_for_the_cpu_waits_for_every_transfer(cpu):
    program = cpu(by_hand, "X[B, D_Y]", "W[D, F_Y]", out="Y[B, F_Y]", local=True, mesh=X2Y4, B=64, D=64, F=64)
    assert len(program.schedule().exposed) == 3
    assert sum(s.kind == "compute" for s in program.schedule()) == 4
