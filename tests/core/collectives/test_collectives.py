"""The formulas of `collectives` are the times of an exact link simulator, and match published numbers."""

import itertools
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction as F

import pytest
from link_simulator import execute

from scalingbook_lib import collectives
from scalingbook_lib.collectives import schedules
from scalingbook_lib.machines.torus import Axis

approx = pytest.approx
M, W1, HOP = F(5040), F(7, 3), F(11, 13)  # any array, link and hop: the equalities are exact
PAIRS = [
    (collectives.all_gather, schedules.all_gather),
    (collectives.reduce_scatter, schedules.reduce_scatter),
    (collectives.all_reduce, schedules.all_reduce),
    (collectives.all_to_all, schedules.all_to_all),
]
NAMED = pytest.mark.parametrize(("formula", "plan"), PAIRS, ids=[plan.__name__ for _, plan in PAIRS])


def axes(sizes, wrapped=True, link=W1, hop=HOP):
    wraps = [wrapped] * len(sizes) if isinstance(wrapped, bool) else wrapped
    return [Axis(n, w, link, hop) for n, w in zip(sizes, wraps, strict=True)]


def simulated(plan, torus, **how):
    schedule = plan([a.size for a in torus], [a.wrapped for a in torus], **how)
    return execute(schedule, torus, M).seconds


@NAMED
@pytest.mark.parametrize("n", range(1, 17))
class TestTheFormulaIsTheSimulatedTime:
    def test_on_a_ring_the_formula_is_the_simulated_time(self, formula, plan, n):
        assert formula(M, *axes([n])).total_s == simulated(plan, axes([n]))

    def test_in_one_direction_of_a_ring_the_formula_is_the_simulated_time(self, formula, plan, n):
        assert formula(M, *axes([n]), bidirectional=False).total_s == simulated(
            plan, axes([n]), bidirectional=False
        )

    def test_on_a_line_the_formula_is_the_simulated_time(self, formula, plan, n):
        assert formula(M, *axes([n], False)).total_s == simulated(plan, axes([n], False))


@NAMED
@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (2, 2, 2), (3, 3, 3)])
@pytest.mark.parametrize("wrapped", [True, False], ids=["torus", "mesh"])
def test_on_several_axes_of_one_size_the_formula_is_the_simulated_time(formula, plan, sizes, wrapped):
    assert formula(M, *axes(sizes, wrapped)).total_s == simulated(plan, axes(sizes, wrapped))


@pytest.mark.parametrize("sizes", [(2, 4), (3, 4), (4, 8), (5, 2), (1, 6), (2, 2, 4), (2, 3, 4), (4, 2, 2)])
def test_all_to_all_on_unequal_axes_is_the_simulated_time_whichever_axes_wrap(sizes):
    for wraps in itertools.product((True, False), repeat=len(sizes)):
        torus = axes(sizes, wraps)
        assert collectives.all_to_all(M, *torus).total_s == simulated(schedules.all_to_all, torus), wraps


@pytest.mark.parametrize("n", [2, 3, 6, 7])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_permute_is_the_simulated_time(n, wrapped):
    for shift in range(-n, n + 1):
        schedule, (axis,) = schedules.permute(n, shift, wrapped), axes([n], wrapped)
        assert collectives.permute(M, axis, shift).total_s == execute(schedule, [axis], n * M).seconds, shift


# In an AllGather over unequal axes the parts finish at different times, so the schedule of equal parts is
# slower than the formula. Its links are not: weigh the parts, and all of them carry what the formula says.
@pytest.mark.parametrize("sizes", [(4, 8), (2, 16), (3, 5), (4, 16), (2, 4)])
@pytest.mark.parametrize("wraps", [(True, True), (False, True), (False, False)])
def test_all_gather_on_unequal_axes_loads_the_busiest_link_of_each_axis_as_the_formula_says(sizes, wraps):
    torus = axes(sizes, wraps, link=F(1), hop=F(0))
    schedule = schedules.all_gather(sizes, wraps)
    (a0, a1), (b0, b1) = (busiest(schedule, part) for part in (0, 1))  # per axis, for part 0 and part 1
    weight = (b1 - b0) / (a0 - a1 + b1 - b0)  # of part 0, so that both axes carry the same
    assert 0 < weight < 1
    loads = [weight * a + (1 - weight) * b for a, b in ((a0, b0), (a1, b1))]
    if wraps[0] == wraps[1]:
        bound = collectives.all_gather(1, *torus).bandwidth_s
        assert loads == [bound, bound]
    else:  # the line's two links end in one chip: it needs half the ring's share
        weight = (b1 - b0) / (a0 - a1 + b1 - b0)
        assert loads[0] == loads[1] == collectives.all_gather(1, *torus).bandwidth_s


def busiest(schedule, part):
    """What share of its own bytes one part puts on the busiest link of each axis."""
    halves = 2 if any(w and n % 2 == 0 for n, w in zip(schedule.sizes, schedule.wrapped, strict=True)) else 1
    loads = defaultdict(int)
    for step in schedule.steps:
        for send in step.sends:
            loads[send.link] += sum(piece.part // halves == part for piece in send.pieces)
    share = F(len(schedule.sizes), schedule.pieces)
    return [share * max(v for link, v in loads.items() if link.axis == axis) for axis in (0, 1)]


@pytest.mark.parametrize("sizes", [(4, 8), (2, 16), (2, 2, 4)])
def test_equal_parts_on_unequal_axes_are_never_faster_than_the_formula(sizes):
    ideal = collectives.all_gather(M, *axes(sizes)).total_s
    assert ideal < simulated(schedules.all_gather, axes(sizes)) < F(8, 5) * ideal


# --- laws ---------------------------------------------------------------------------------------------------


@NAMED
@pytest.mark.parametrize("n", range(2, 17))
def test_a_line_takes_exactly_twice_the_bytes_time_of_a_ring(formula, plan, n):
    assert formula(M, *axes([n], False)).bandwidth_s == 2 * formula(M, *axes([n])).bandwidth_s


@pytest.mark.parametrize("n", range(2, 17, 2))
def test_an_all_to_all_takes_a_quarter_of_the_textbook_all_gather(n):
    gather, exchange = collectives.all_gather(M, *axes([n])), collectives.all_to_all(M, *axes([n]))
    assert exchange.bandwidth_s == gather.textbook_s / 4
    assert exchange.bandwidth_s / gather.bandwidth_s == F(1, 4) * F(n, n - 1)


@pytest.mark.parametrize("n", range(2, 17))
def test_in_one_direction_an_all_to_all_takes_half_an_all_gather(n):
    one_way = {"bidirectional": False}
    gather = collectives.all_gather(M, *axes([n]), **one_way)
    assert collectives.all_to_all(M, *axes([n]), **one_way).bandwidth_s == gather.bandwidth_s / 2


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([8], 4), ([16], 4), ([4, 4], 16), ([4, 8], 16), ([4, 4, 4], 64), ([8, 16], 32)],
)
def test_all_to_all_on_a_torus_is_set_by_its_longest_axis(sizes, expected):
    torus = axes(sizes, link=F(1, 2), hop=F(0))  # W = 1
    n = collectives.chips(*torus)
    assert collectives.all_to_all(1, *torus).bandwidth_s == F(1, expected) == F(max(sizes), 4 * n)
    assert collectives.all_to_all(1, *axes(sizes, False, F(1, 2), F(0))).bandwidth_s == F(2, expected)


def test_8x16_with_only_the_long_axis_wrapped_is_no_slower_than_the_torus():
    mixed, full = axes((8, 16), (False, True), hop=F(0)), axes((8, 16), hop=F(0))
    assert collectives.all_to_all(M, *mixed) == collectives.all_to_all(M, *full)


def test_a_square_exchanges_faster_than_an_oblong_of_as_many_chips():
    square, oblong = axes((16, 16), hop=F(0)), axes((8, 32), hop=F(0))
    assert collectives.all_to_all(M, *oblong).total_s == 2 * collectives.all_to_all(M, *square).total_s


@pytest.mark.parametrize("n", range(2, 17))
def test_no_collective_beats_the_bytes_that_must_arrive(n):
    (ring,) = axes([n])
    for formula, _ in PAIRS:
        least = collectives.bytes_received(formula.__name__.replace("_", "-"), M, n)
        assert formula(M, ring).bandwidth_s >= least / ring.bytes_per_s


def test_all_reduce_over_two_axes_at_once_beats_one_after_the_other():
    x, y = axes((4, 4))
    at_once = collectives.all_reduce(M, x, y)
    in_turn = collectives.all_reduce(M, x) + collectives.all_reduce(M, y)
    assert in_turn.bandwidth_s == F(16, 5) * at_once.bandwidth_s  # (3/4 + 3/4) / W against (15/16) / 2W
    assert in_turn.latency_s == at_once.latency_s


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    torus = axes((4, 8))
    parts = collectives.reduce_scatter(M, *torus) + collectives.all_gather(M, *torus)
    assert collectives.all_reduce(M, *torus) == replace(parts, name="AllReduce")


def test_times_do_not_depend_on_the_number_of_chips_once_it_is_large():
    few, many = (collectives.all_gather(M, Axis(n, True, W1, F(0))).total_s for n in (64, 4096))
    assert many / few < F(64, 63)
