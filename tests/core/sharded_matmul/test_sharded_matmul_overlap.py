"""Collective matmuls, in which chunks are in transit while others are multiplied."""

import itertools

import pytest

from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.sharded_matmul.overlap import RingMatmul

approx = pytest.approx

CASE = {
    1: "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    2: "A[I, J_X] · B[J, K] -> C[I, K]",
    3: "A[I, J_X] · B[J_X, K] -> C[I, K]",
    4: "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
}

V5P = Rings(chips.V5P, X=4)

BIG = {"I": 8192, "J": 8192, "K": 8192}


@pytest.mark.parametrize("chunks", [1, 2, 4, 16])
def test_a_collective_matmul_takes_the_longer_term_and_a_chunk_of_the_shorter(chunks):
    best = solve(CASE[3], V5P, BIG).best
    run = best.overlapped(chunks)
    shorter, longer = sorted((best.chip_s, best.comms_s))
    assert run.total_s == approx(longer + shorter / chunks)
    assert max(turn.end_s for turn in run.turns) == approx(run.total_s)


def test_on_a_ring_steps_take_as_long_as_chunks_that_are_multiplied_when_they_come():
    for n, F in itertools.product((2, 3, 4, 8), (256, 4096, 16384)):
        layer = RingMatmul(B=8192, D=8192, F=F, axis=chips.V5E.axis(n, wrapped=True), chip=chips.V5E)
        assert layer.lockstep().total_s == approx(layer.total_s)
        assert layer.on_arrival(1).total_s == approx(layer.total_s)
        assert layer.gather_first().math_s == approx(layer.on_arrival(2).math_s)


def test_a_strategy_overlaps_in_chunks():
    best = solve(CASE[3], V5P, BIG).best
    run = best.overlapped(4)
    assert best.lower_s < run.total_s < best.upper_s
    assert str(run).startswith("4 chunks through network, chip: 1.16 ms")
