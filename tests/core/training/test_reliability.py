"""What stops cost: Daly's law against stops that are drawn, Young's as its limit, spares by counting."""

from math import exp, factorial

import pytest

from scalingbook_lib import inference, models, rules, training
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.machines.energy import BOUNDARIES, CHIPS, SITE, Energy, energy
from scalingbook_lib.training import reliability
from scalingbook_lib.training.reliability import CheckpointTier

approx = pytest.approx


@pytest.mark.parametrize(("save", "between", "restart"), [(60, 11_000, 600), (60, 1800, 600), (30, 900, 120)])
def test_the_exact_law_is_what_drawn_stops_leave(save, between, restart):
    known = reliability.exact(save, between, restart)
    assert reliability.simulated(known, save, between, restart) == approx(known.share, rel=0.02)


def test_the_best_interval_is_the_best():
    best = reliability.exact(60, 1800, 600)
    near = [reliability.exact(60, 1800, 600, best.every_s * f).share for f in (0.9, 0.99, 1.01, 1.1)]
    assert max(near) < best.share
    assert best.every_s == best.best_s


def test_young_is_the_limit_of_rare_stops():
    rare, exact = rules.goodput(1, 1e7, 10), reliability.exact(1, 1e7, 10)
    assert (exact.best_s, exact.share) == (approx(rare.best_s, rel=1e-3), approx(rare.share, rel=1e-6))
    often = rules.goodput(60, 600, 600), reliability.exact(60, 600, 600)
    assert often[0].share == 0 < often[1].share


def test_no_store_beats_what_restarts_leave():
    left = reliability.restart_bound(1800, 600)
    assert left == exp(-600 / 1800)
    assert [reliability.exact(s, 1800, 600).share < left for s in (1e-15, 1e-6, 1, 1e5)] == [True] * 4
    assert reliability.exact(1e-15, 1800, 600).share == approx(left, rel=1e-6)
    with pytest.raises(ValueError, match="write positive seconds"):
        reliability.exact(0, 1800, 600)


def test_a_ladder_of_one_is_young_s_rule():
    one = CheckpointTier("disk", 60, 600)
    assert reliability.multi_tier([one], 11_000) == approx(rules.goodput(60, 11_000, 600).share)
    peers = [CheckpointTier("peers", 0.05, 30, 0.9), CheckpointTier("disk", 60, 600, 0.1)]
    assert reliability.multi_tier(peers, 11_000) > reliability.multi_tier([one], 11_000)
    assert reliability.multi_tier([one], 100) == 0


@pytest.mark.parametrize(("a_day", "days", "enough"), [(7.8, 2, 0.99), (0.1, 1, 0.9), (12, 1.5, 0.999)])
def test_so_many_spares_are_enough_and_one_fewer_is_not(a_day, days, enough):
    found = reliability.spares(a_day, days, enough)

    def below(k):
        return sum(exp(-found.out) * found.out**i / factorial(i) for i in range(k + 1))

    assert below(found.spares) >= enough
    assert found.spares == 0 or below(found.spares - 1) < enough


def test_replicas_that_go_on_lose_their_pause_and_a_share_of_the_repair():
    assert reliability.elastic(1, 0, 600, 1800) == approx(1 - 600 / 1800)
    assert reliability.elastic(32, 30, 600, 1824) == approx(0.973, abs=5e-4)


@pytest.mark.parametrize(("out", "enough"), [(0, 0.9), (700, 0.9), (1, 0), (1, 1)])
def test_spares_of_what_never_stops_or_for_every_case_are_refused(out, enough):
    with pytest.raises(ValueError, match="write 0 to 700"):
        reliability.spares(out, 1, enough)


# Energy


def test_the_card_of_llama_counts_the_chips_alone():
    run = energy(chips.H100, 30.84e6 * 3600)
    assert run.mwh == approx(21_588)
    assert 8930e6 / (run.mwh * 1e3) == approx(414, abs=1)
    by_boundary = [energy(chips.H100, 3600, b).joules for b in BOUNDARIES]
    assert by_boundary == sorted(by_boundary)
    assert by_boundary[-1] == approx(3600 * 1275 * 1.09)
    assert Energy(3.6e6).usd(0.08) == approx(0.08)
    assert SITE.node > CHIPS.node


def test_a_chip_whose_watts_nobody_publishes_says_so():
    with pytest.raises(ValueError, match="TPU v5p has no published power"):
        energy(chips.V5P, 1)


def test_large_runs_stop_as_llama_s_did_by_the_chips():
    chip_s = LLAMA3_INTERRUPTIONS.mtbf_s * LLAMA3_INTERRUPTIONS.chips
    assert chip_s / 31_557_600 == approx(5.78, abs=0.01)
    assert chip_s / 100_000 / 60 == approx(30.4, abs=0.1)


def test_a_run_and_a_token_take_the_chips_watts_for_their_time():
    run = training.run_at(8e9, Cluster.of(chips.H100, 64), 1e12, mfu=0.4)
    assert run.energy == energy(chips.H100, 64 * run.seconds)
    assert training.run_at(8e9, Slice.of(chips.V5P, "2x2x1"), 1e12, mfu=0.4).energy is None
    m, on = models.find("Llama 3 8B"), Cluster.of(chips.H100, 8)
    served = inference.serve(m, on, Layout(tp=4), P=1024, G=256, batch=16)
    assert served.joules_per_token == approx(4 * 700 / served.tokens_per_s)
    assert (
        inference.decode(m, Slice.of(chips.V5E, "2x2"), Layout(tp=4), batch=1, S=1024).joules_per_token
        is None
    )
