"""The sharding chapter's explorers of products obey the laws of what they show."""

import itertools
import math
import random

import pytest
from looked import marks, panels, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.sharding.explorers.reshard import resharding
from scalingbook_book.chapters.sharding.explorers.strategies import product
from scalingbook_book.chapters.sharding.explorers.transpose import gather_matrix, transposed
from scalingbook_book.reader.explorers.view import (
    Bars,
    Curve,
    Grid,
    Regions,
    Timeline,
)
from scalingbook_lib.collectives.resharding import Rings
from scalingbook_lib.machines import chips
from scalingbook_lib.sharded_matmul import SplitWeight, solve

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("sharding")}
PLAYER, PAINTER, LATENCY, TORUS = (ALL[name] for name in ("player", "painter", "latency", "torus"))
CASES, RESHARD, STRATEGIES, OVERLAP = (ALL[name] for name in ("cases", "reshard", "strategies", "overlap"))
TRANSPOSE = ALL["transpose"]


# The four cases


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", 1),
        ("A[I, J_X] * B[J, K] -> C[I, K]", 2),
        ("A[I, J_X] @ B[J_X, K] → C[I, K]", 3),
        ("A[I_X, J] · B[J, K_X] -> C[I, K_X]", 4),
    ],
)
def test_every_case_is_recognized_and_its_bars_are_the_solver_s(text, case):
    view = CASES.evaluate(text=text)
    machine = Rings(chips.V5P, X=chips.V5P.axis(4), Y=chips.V5P.axis(4))
    solution = solve(text, machine, {"I": 2048, "J": 8192, "K": 2048})
    assert readout(view, "case") == case == solution.case
    (bars,) = panels(view, Bars)
    shown = solution.strategies[: len(bars.labels)]
    assert [label.partition(". ")[2] for label in bars.labels] == [s.name for s in shown]
    terms = [(s.math_s, s.hbm_s, s.comms_s) for s in shown]
    assert list(zip(*(series.values for series in bars.series), strict=True)) == terms
    assert readout(view, "fastest") == solution.best.lower_s
    assert solution.best.name in view.verdict


def test_a_larger_k_makes_another_strategy_win():
    assert "all-reduce C" in CASES.evaluate(K=2048).verdict
    assert "Fastest: all-to-all A over Y" in CASES.evaluate(K=8192).verdict
    assert "gather A over Y" in CASES.evaluate(J=64).verdict


def test_what_cannot_be_solved_is_said():
    refused = CASES.evaluate(text="A[I_X, J_Y] · B[J_Y, K_X] -> C[I_X, K_Y]", X=16, Y=16, I=64)
    assert "I = 64 does not divide evenly over XY" in panels(refused, Grid)[-1].cells[0][0].text
    assert "4 dimensions" in CASES.render({"text": "A[B, I, J] · B[B, J, K] -> C[B, I, K]"}).evaluated.error
    assert "no axis Z" in CASES.render({"text": "A[I_Z, J] · B[J, K] -> C[I, K]"}).evaluated.error
    assert (
        "does not divide evenly"
        in CASES.render({"text": "A[I_XY, J] · B[J, K] -> C[I, K]", "I": 6, "X": 4, "Y": 4}).evaluated.error
    )


# AllGather the weights or AllReduce the result


@pytest.mark.parametrize("n", [2, 4, 16])
@pytest.mark.parametrize("chip", [chips.V5P, chips.V5E])
def test_the_four_ways_take_what_the_solver_says(n, chip):
    dice = random.Random(n)
    axis = chip.axis(n)
    for _ in range(8):
        B, D, F = (2 ** dice.randint(4, 13) for _ in range(3))
        sizes = {"B": B, "D": D, "F": F}
        solution = solve("A[B, D] · W[D_X, F] -> Z[B, F]", Rings(chip, X=axis), sizes)
        split = SplitWeight(chip, axis, F)
        for way in split.ways(B, D):
            strategy = solution.named(way.name)
            assert (way.math_s, way.hbm_s) == pytest.approx((strategy.math_s, strategy.hbm_s))
            assert way.comms_s == pytest.approx(strategy.comms_s)
        best, bound = split.fastest_of_all([B], [D])[0][0]
        assert split.ways(B, D)[best].lower_s == pytest.approx(solution.best.lower_s)
        assert bound == split.ways(B, D)[best].bound


def test_the_map_of_all_four_is_the_solver_s_at_random_cells():
    regions = marks(STRATEGIES.evaluate(count_as="all four, exact", F=4096), Regions)[0]
    dice = random.Random(3)
    for _ in range(12):
        i, j = dice.randrange(len(regions.xs) - 1), dice.randrange(len(regions.ys) - 1)
        sizes = {"B": round(math.sqrt(regions.xs[i] * regions.xs[i + 1]) / 4) * 4,
                 "D": round(math.sqrt(regions.ys[j] * regions.ys[j + 1]) / 4) * 4, "F": 4096}  # fmt: skip
        ring = Rings(chips.V5P, X=chips.V5P.axis(4, wrapped=True))
        solution = solve("A[B, D] · W[D_X, F] -> Z[B, F]", ring, sizes)
        painted = product("TPU v5p", 4, 4096, True).ways(sizes["B"], sizes["D"])[regions.cells[j][i] or 0]
        assert solution.named(painted.name).lower_s == pytest.approx(solution.best.lower_s, rel=0.02)


def test_the_borders_of_the_textbook_are_the_analytic_ones():
    split = product("TPU v5p", 4, 16384, False)
    r = split.r
    assert r == chips.V5P.bf16_flops_per_s / (2 * chips.V5P.link_bytes_per_s) == 2295
    for B, D in ((100, 200), (1000, 2000), (8000, 2 * r), (60000, 2 * r)):
        assert split.fastest_of_all([B], [0.99 * D], 2)[0][0][0] == 0
        assert split.fastest_of_all([B], [1.01 * D], 2)[0][0][0] == 1
    assert split.fastest_of_all([r * 0.99], [r], 2)[0][0] == (0, "network")
    assert split.fastest_of_all([r * 1.01], [r], 2)[0][0] == (0, "compute")
    assert split.fastest_of_all([100], [2 * r * 4 * 0.99], 2)[0][0] == (1, "network")
    assert split.fastest_of_all([100], [2 * r * 4 * 1.01], 2)[0][0] == (1, "compute")


def test_the_map_is_painted_by_the_middle_of_each_cell_and_its_border_is_drawn():
    view = STRATEGIES.evaluate()
    regions, (border,) = marks(view, Regions)[0], marks(view, Curve)
    assert list(border.ys) == [32, 4590, 4590]
    for j, i in itertools.product(range(0, len(regions.ys) - 1), range(0, len(regions.xs) - 1, 5)):
        B, D = (math.sqrt(e[k] * e[k + 1]) for e, k in ((regions.xs, i), (regions.ys, j)))
        label = regions.labels[regions.cells[j][i] or 0]
        assert label.startswith("reduce" if 2 * min(B, 2295) < D else "gather")
        assert ("compute" in label) == (D > 2 * 2295 * 4 if label.startswith("reduce") else B > 2295)


def test_the_verdict_names_the_winner_on_both_sides_of_the_border():
    assert "strategy 1 wins" in STRATEGIES.evaluate(B=4096, D=2048).verdict
    assert "strategy 2 wins" in STRATEGIES.evaluate(B=1024, D=8192).verdict
    assert "strategy 3 wins" in STRATEGIES.evaluate(B=4096, D=8192, count_as="all four, exact").verdict


# Resharding


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A[I_X, J]", "A[I, J_Y]"),
        ("A[I_X, J]", "A[I, J_X]"),
        ("A[I, J]{U_XY}", "A[I_XY, J]"),
        ("A[I, J]", "A[I_X, J]"),
    ],
)
def test_the_cheapest_way_ends_where_it_should(before, after):
    found = resharding(before, after, chip="TPU v5p", X=4, Y=4, I=4096, J=8192, numbers="bf16", idle=False)
    assert found.best.moves[0].before.canonical() == before
    assert found.best.moves[-1].after.canonical() == after
    assert all(found.best.total_s <= way.total_s for way in found.rejected)
    (bars,) = panels(RESHARD.evaluate(before=before, after=after), Bars)
    assert bars.lengths()[0] == pytest.approx(found.best.total_s)


def test_free_and_idle_and_impossible_resharding():
    assert "is free" in RESHARD.evaluate(before="A[I, J]", after="A[I_X, J]").verdict
    assert "nothing to do" in RESHARD.evaluate(after="A[I_X, J]").verdict
    assert (
        "not a partial sum" in RESHARD.render({"before": "A[I, J]", "after": "A[I, J]{U_X}"}).evaluated.error
    )
    assert "different dimensions" in RESHARD.render({"after": "A[I, K]"}).evaluated.error
    cube = RESHARD.render({"before": "A[I, J, K]", "after": "A[I, J, K]"}).evaluated
    assert "sliders for only two" in cube.error
    plain, helped = (RESHARD.evaluate(after="A[I, J]", idle=idle) for idle in (False, True))
    assert readout(helped, "cheapest") < readout(plain, "cheapest")


# Copying and adding


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 3])
def test_the_matrix_gathers_and_its_transpose_reduces_and_scatters(p, n):
    gather = gather_matrix(p, n)
    x = list(range(1, p * n + 1))
    assert apply(gather, x) == x * p
    y = [k * k + 1 for k in range(p * p * n)]  # a vector of p · n numbers on each of p chips
    assert apply(transposed(gather), y) == [sum(y[k :: p * n]) for k in range(p * n)]
    inner = sum(a * b for a, b in zip(apply(gather, x), y, strict=True))
    assert inner == sum(a * b for a, b in zip(x, apply(transposed(gather), y), strict=True))


def apply(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def test_the_grids_are_transposes_of_each_other():
    down, over = panels(TRANSPOSE.evaluate(p=3, n=2), Grid)
    ones = [[cell.text for cell in row] for row in down.cells]
    assert [row[k % 6].color for k, row in enumerate(down.cells)] == [0, 0, 1, 1, 2, 2] * 3  # from whom
    assert [[c.color for c in row[k::6]] for k, row in enumerate(over.cells)] == [[0, 1, 2]] * 6
    assert [list(column) for column in zip(*ones, strict=True)] == [
        [c.text for c in row] for row in over.cells
    ]


# Overlap


def test_chunks_hide_the_shorter_lane_and_never_beat_the_longer():
    curve = marks(OVERLAP.evaluate(), Curve)[0]
    assert list(curve.ys) == sorted(curve.ys, reverse=True)
    view = OVERLAP.evaluate(chunks=1)
    longest = max(readout(view, "matrix unit"), readout(view, "network"))
    assert curve.ys[0] == pytest.approx(readout(view, "without overlap"))
    assert longest < curve.ys[-1] < 1.02 * longest


@pytest.mark.parametrize(("chunks", "K"), [(1, 32768), (4, 32768), (4, 256), (32, 256)])
def test_no_chunk_is_multiplied_before_it_arrives_and_no_lane_does_two_things(chunks, K):
    view = OVERLAP.evaluate(chunks=chunks, K=K)
    (gantt,) = panels(view, Timeline)
    lanes = {lane: [s for s in gantt.spans if s.lane == lane] for lane in gantt.lanes}
    for arrived, worked in zip(lanes["link"], lanes["matrix unit"], strict=True):
        assert worked.start >= arrived.end * (1 - 1e-12)
    for spans in lanes.values():
        assert all(a.end <= b.start * (1 + 1e-12) for a, b in itertools.pairwise(spans))
    for spans in lanes.values():
        assert [s.label for s in spans] == [str(k) for k in range(1, chunks + 1)]
    assert max(s.end for s in gantt.spans) == pytest.approx(readout(view, "in chunks"))


def test_the_chapter_s_product_in_four_chunks():
    assert "3.04 ms instead of 3.8 ms" in OVERLAP.evaluate().verdict
