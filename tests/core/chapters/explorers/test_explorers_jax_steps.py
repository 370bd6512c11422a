"""The JAX chapter's explorers of a ring's steps and of buckets obey the laws of what they show."""

import itertools
import math
from statistics import mean

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.chapters.jax.explorers import buckets
from scalingbook_book.chapters.jax.explorers.ring import GATHER, SCATTER
from scalingbook_book.reader.explorers.view import Grid
from scalingbook_lib.machines import chips
from scalingbook_lib.models.arithmetic.experts import Buckets, capacity, routing_probabilities, sample_routing
from scalingbook_lib.notation.types import rules
from scalingbook_lib.sharded_matmul.overlap import LINK, UNIT, RingMatmul

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("jax")}
CALCULATOR, TYPES, RING, BUCKETS = (ALL[name] for name in ("calculator", "types", "ring", "buckets"))
PRODUCT = rules.PRODUCT


# The ring

SIZES = {"B": 1024, "D": 2048, "F": 2048, "chip": chips.V5E}


def ring(kind, n, both, **sizes):
    axis = chips.V5E.axis(n, wrapped=True)
    return RingMatmul(scatter=kind == SCATTER, axis=axis, links=1 + both, **sizes)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("both", [False, True])
def test_gathered_chunks_come_from_the_neighbor_and_all_are_multiplied(n, both):
    r = ring(GATHER, n, both, **SIZES)
    for way, source in enumerate((-1, 1)[: 1 + both]):
        held = [[r.chunks(i, s)[way] for i in range(n)] for s in range(n)]
        assert held[0] == list(range(n))
        for before, after in itertools.pairwise(held):
            assert after == [before[(i + source) % n] for i in range(n)]
        assert all(sorted(step[i] for step in held) == list(range(n)) for i in range(n))


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("both", [False, True])
def test_sums_move_on_and_end_complete_where_they_belong(n, both):
    r = ring(SCATTER, n, both, **SIZES)
    for way, towards in enumerate((1, -1)[: 1 + both]):
        added: dict[int, list[int]] = {i: [] for i in range(n)}
        for s in range(n):
            whose = [r.chunks(i, s)[way] for i in range(n)]
            for i, owner in enumerate(whose):
                added[owner].append(i)
            if s:
                assert whose == [r.chunks(i - towards, s - 1)[way] for i in range(n)]
        assert whose == list(range(n))
        assert all(sorted(devices) == list(range(n)) for devices in added.values())


@pytest.mark.parametrize("kind", [GATHER, SCATTER])
@pytest.mark.parametrize("F", [256, 2048, 16384])
def test_no_unit_does_two_things_at_once_and_the_last_is_done_at_the_total(kind, F):
    r = ring(kind, 5, False, **{**SIZES, "F": F})
    for lane in (LINK, UNIT):
        work = sorted((t.start_s, t.end_s) for t in r.lockstep().turns if t.stage == lane)
        assert all(one[1] <= other[0] + 1e-15 for one, other in itertools.pairwise(work))
        assert len(work) == (4 if lane == LINK else 5)
    assert r.lockstep().total_s == pytest.approx(r.total_s)
    assert r.n * r.matmul_s <= r.total_s <= r.serial_s


def test_a_chunk_has_arrived_before_it_is_multiplied_and_a_sum_before_it_is_sent():
    for kind, F in itertools.product((GATHER, SCATTER), (256, 16384)):
        r = ring(kind, 4, False, **{**SIZES, "F": F})
        links = {t.chunk: (t.start_s, t.end_s) for t in r.lockstep().turns if t.stage == LINK}
        units = {t.chunk: (t.start_s, t.end_s) for t in r.lockstep().turns if t.stage == UNIT}
        for k, (start, end) in links.items():
            if kind == GATHER:  # chunk k + 1 arrives with move k
                assert end <= units[k + 1][0] + 1e-15
            else:  # a sum leaves when its product is added; the next one may come in meanwhile
                assert units[k][1] <= start + 1e-15


def test_all_moves_hide_from_C_over_W_on():
    one, both = (ring(GATHER, 4, ways, **SIZES) for ways in (False, True))
    assert (round(one.ratio), round(both.ratio)) == (3940, 1970)
    assert one.ratio < one.overlap_threshold_F < 1.05 * one.ratio
    for r in (one, both):
        wide = ring(GATHER, 4, r.links == 2, **{**SIZES, "F": int(r.overlap_threshold_F) + 1})
        assert wide.total_s == pytest.approx(wide.n * wide.matmul_s)
        narrow = ring(GATHER, 4, r.links == 2, **{**SIZES, "F": int(0.9 * r.overlap_threshold_F)})
        assert narrow.total_s > 1.05 * narrow.n * narrow.matmul_s
    assert "waits" in RING.evaluate().verdict
    assert "every transfer is hidden" in RING.evaluate(F=8192).verdict


# The buckets


@pytest.mark.parametrize(
    ("E", "k", "skew", "n", "S"),
    [(64, 2, 0.0, 8, 256), (8, 8, 2.0, 8, 32), (256, 8, 1.5, 4, 64), (16, 1, 0.3, 2, 1024)],
)
def test_every_token_pays_k_visits_as_often_as_the_chances_say(E, k, skew, n, S):
    draws = [sample_routing(E, k, skew, n=n, S=S, seed=seed) for seed in range(1, 21)]
    assert all(sum(row) == S * k for drawn in draws for row in drawn)
    chance = routing_probabilities(E, k, skew)
    for j in range(n):
        expected = S * sum(c for e, c in enumerate(chance) if e * n // E == j)
        assert mean(row[j] for drawn in draws for row in drawn) == pytest.approx(expected, rel=0.1)


def test_a_draw_is_always_the_same_and_another_is_another():
    assert sample_routing(64, 2, 0.5, n=8, S=256, seed=3) == sample_routing.__wrapped__(
        64, 2, 0.5, n=8, S=256, seed=3
    )
    assert sample_routing(64, 2, 0.5, n=8, S=256, seed=3) != sample_routing(64, 2, 0.5, n=8, S=256, seed=4)


def test_drops_are_those_of_the_binomial_distribution():
    S, n, room = 32, 8, 4  # top 1 of as many experts as one likes
    p = 1 / n
    tail = sum((x - room) * math.comb(S, x) * p**x * (1 - p) ** (S - x) for x in range(room + 1, S + 1))
    found = [
        Buckets(sample_routing(16, 1, 0.0, n=n, S=S, seed=seed), S, 1, room).dropped for seed in range(1, 61)
    ]
    assert mean(found) == pytest.approx(tail * n / S, rel=0.05)


def test_kept_dropped_and_empty_places_balance():
    for factor, skew in itertools.product((0.5, 1.0, 1.25, 4.0), (0.0, 1.0)):
        b = Buckets(sample_routing(64, 2, skew, n=8, S=256, seed=1), 256, 2, capacity(factor, 256, 2, 8))
        kept = sum(map(sum, b.accepted))
        assert (
            kept == pytest.approx((1 - b.dropped) * 8 * 512) == pytest.approx((1 - b.empty) * 64 * b.capacity)
        )
        assert b.padded_bytes(8192) / b.ragged_bytes(8192) == pytest.approx(factor)
        assert sum(b.arriving) == 8 * 512


def test_larger_buckets_drop_less_and_send_more_that_is_empty():
    views = [BUCKETS.evaluate(factor=f, skew=0.5) for f in (0.5, 1.0, 1.5, 2.0, 4.0)]
    dropped, empty = ([readout(v, label) for v in views] for label in ("dropped", "empty slots"))
    assert dropped == sorted(dropped, reverse=True)
    assert empty == sorted(empty)


def test_the_table_ends_with_what_comes_to_each_device_and_what_is_kept():
    grid = panel(BUCKETS.evaluate(skew=1.0), Grid)
    numbers = [[int(cell.text) for cell in row] for row in grid.cells]
    assert [sum(column) for column in zip(*numbers[:-2], strict=True)] == numbers[-2]
    assert [sum(min(x, 80) for x in column) for column in zip(*numbers[:-2], strict=True)] == numbers[-1]


def test_skew_drops_and_pads_at_once():
    even, skewed = BUCKETS.evaluate(), BUCKETS.evaluate(skew=1.0)
    for label in ("dropped", "empty slots"):
        assert readout(skewed, label) > 2 * readout(even, label)
    assert "busiest device" in skewed.verdict


def test_the_room_is_the_even_share_times_the_factor_rounded_up():
    assert [capacity(f, 32, 1, 8) for f in (1.0, 1.25, 1.3, 2.0)] == [4, 5, 6, 8]
    ten = Buckets(sample_routing(64, 2, 0.0, n=8, S=256, seed=1), 256, 2, 80)
    assert buckets.exchange_s(ten) == pytest.approx(109e-6, rel=0.01)
