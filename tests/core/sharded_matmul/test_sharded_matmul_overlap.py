"""A collective matmul: chunks on the way while others are multiplied."""

import itertools

import pytest

from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import Overlap, solve

approx = pytest.approx

CASE = {
    1: "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    2: "A[I, J_X] · B[J, K] -> C[I, K]",
    3: "A[I, J_X] · B[J_X, K] -> C[I, K]",
    4: "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
}

V5P = Rings(chips.V5P, X=4)

BIG = {"I": 8192, "J": 8192, "K": 8192}


def test_a_collective_matmul_takes_the_longer_term_and_a_chunk_of_the_shorter():
    for chip_s, comms_s in [(729e-6 * 4, 373e-6 * 3), (1e-3, 5e-3), (2e-3, 2e-3)]:
        for chunks in (1, 2, 4, 16):
            run = Overlap(chunks, chip_s, comms_s)
            assert run.total_s == approx(max(chip_s, comms_s) + min(chip_s, comms_s) / chunks)
            assert max(end for _, _, end in run.spans) == approx(run.total_s)


def test_spans_of_a_lane_never_overlap_and_no_chunk_is_used_before_it_has_come():
    spans = Overlap(8, 3e-3, 2e-3).spans
    for lane in ("network", "chip"):
        own = [(start, end) for name, start, end in spans if name == lane]
        assert all(a[1] <= b[0] + 1e-15 for a, b in itertools.pairwise(own))
    arrived = [end for name, _, end in spans if name == "network"]
    used = [start for name, start, _ in spans if name == "chip"]
    assert all(u >= a - 1e-15 for u, a in zip(used, arrived, strict=True))


def test_overlap_saves_at_most_a_half():
    assert Overlap(1000, 1e-3, 1e-3).saved == approx(0.5, abs=1e-3)
    assert Overlap(1, 1e-3, 1e-3).saved == 0
    assert Overlap(4, 0.0, 0.0).saved == 0


def test_a_strategy_overlaps_in_chunks():
    best = solve(CASE[3], V5P, BIG).best
    run = best.overlapped(4)
    assert best.lower_s < run.total_s < best.upper_s
    assert str(run) == "4 chunks: 1.16 ms, where one after the other takes 1.61 ms"
