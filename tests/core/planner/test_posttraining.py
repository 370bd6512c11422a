"""Reinforcement learning's step: laws of the tail, of the split, of the weight sync, and a simulator."""

from dataclasses import replace
from functools import cache

import pytest

from scalingbook_book.chapters.posttraining import case
from scalingbook_lib import inference, models, planner, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.planner.loops import ASYNCHRONOUS, COLOCATED, ONE_STEP_OFF
from scalingbook_lib.planner.posttraining import weight_sync_s

approx = pytest.approx
LLAMA, FEW = models.find("Llama 3 70B"), Cluster.of(chips.H100, 64)
ENGINE = Layout(tp=8)
COSTS = inference.case(LLAMA, FEW, ENGINE)


@cache
def found(spread=0.8, staleness=1, n=64):
    asked = planner.loop(512, P=512, G=4096, spread=spread, most=32_768)
    return planner.posttraining(LLAMA, Cluster.of(chips.H100, n), ENGINE, asked, staleness=staleness)


def test_answers_of_one_length_take_their_steps_and_prompts():
    steps_s = sum(COSTS.step_s(32, 32 * (512 + k)) for k in range(1, 1000))
    known = serving.rollout(COSTS, [1000] * 32, P=512)
    assert known.seconds - steps_s == approx(COSTS.step_s(0, 0, 32 * 512, prompts=32), rel=0.1)
    assert known.tokens_per_s == approx(32_000 / known.seconds)
    assert known.alive(known.seconds / 2) == 32


def test_a_longer_tail_is_waited_for_with_fewer_slots():
    samples = [serving.sample_lengths(256, 4096, s, max_tokens=32_768) for s in (0, 0.3, 0.8)]
    runs = [serving.rollout(COSTS, lengths, P=512) for lengths in samples]
    assert sorted(run.seconds for run in runs) == [run.seconds for run in runs]
    halves = [run.alive(run.seconds / 2) for run in runs]
    assert halves[0] == 256
    assert halves == sorted(halves, reverse=True)


@pytest.mark.parametrize(("spread", "slots"), [(0.0, 16), (0.4, 64), (0.8, 64)])
def test_refilled_slots_are_as_fast_as_the_simulator_says(spread, slots):
    lengths = serving.sample_lengths(40 * slots, 2000, spread, max_tokens=16_000)
    run = serving.rollout(COSTS, lengths, P=256, slots=slots)
    last = sorted(run.run.requests, key=lambda served: served.end_s)[: 30 * slots]  # all slots still taken
    rate = serving.refilled_tokens_per_s(COSTS, lengths, P=256, slots=slots)
    assert sum(served.tokens for served in last) / last[-1].end_s == approx(rate, rel=0.06)


def test_the_mean_context_of_equal_answers_is_half_of_one_and_of_unequal_ones_more():
    assert serving.mean_context([1000] * 5, 200) == 700
    assert serving.mean_context([1000, 15_000], 0) == approx(7062.5)


def test_together_is_a_sum_and_apart_is_the_longer_side():
    one = found().best(COLOCATED)
    assert one.total_s == approx(one.generate_s + one.score_s + one.train_s + one.weight_sync_s)
    for split in found():
        if split.way != COLOCATED:
            longer = max(split.generate_s, split.score_s + split.train_s)
            assert split.total_s == longer + split.weight_sync_s
            assert split.rollout_chips + split.training_chips == 64
            assert split.bottleneck == (
                "rollouts" if longer == split.generate_s else "log-probs and training"
            )
    assert one.score_s == approx(2 / 3 * one.train_s)
    assert one.staleness == 0


def test_chip_seconds_of_training_do_not_depend_on_the_split():
    work = {round(split.train_s * split.training_chips, 6) for split in found()}
    assert len(work) == 1
    assert found().learner.total_s * 64 == approx(work.pop())


def test_no_other_number_of_engines_is_faster():
    apart = [split for split in found() if split.way == ASYNCHRONOUS]
    assert found().best(ASYNCHRONOUS).total_s == min(split.total_s for split in apart)
    assert len({split.engines for split in apart}) == len(apart) >= 3


def test_older_answers_are_allowed_before_they_are_chosen():
    assert [found(staleness=s).winner.staleness for s in (0, 1)] == [0, 1]
    times = [found(staleness=s).winner.total_s for s in (0, 1, 9)]
    assert times == sorted(times, reverse=True)
    assert {split.staleness for split in found() if split.way == ONE_STEP_OFF} == {1}
    assert "too stale" in found(staleness=0).why
    assert "slower" in found(staleness=9).why


def test_every_answer_is_trained_on_with_its_prompt():
    asked = planner.loop(100, P=50, G=200)
    assert asked.tokens == approx(sum(50 + length for length in asked.lengths))


def test_chips_that_cannot_hold_the_state_do_not_train():
    refused = found().rejected
    assert any("8 chips cannot hold the training state" in why for why in refused)
    assert min(split.training_chips for split in found()) * chips.H100.hbm_bytes > 16 * LLAMA.params
    with pytest.raises(ValueError, match="no split is 'x'; ask for one of colocated"):
        found().best("x")


def test_new_weights_take_as_long_for_one_engine_as_for_many():
    times = {weight_sync_s(LLAMA, Cluster.of(chips.H100, n), ENGINE) for n in (8, 64, 1024)}
    assert times == {2 * LLAMA.params / (8 * 50e9)}
    alone = replace(chips.H100, name="H100 alone", dcn_bytes_per_s=None)
    with pytest.raises(ValueError, match="network bandwidth of H100 alone is unknown"):
        weight_sync_s(LLAMA, Cluster.of(alone, 8), ENGINE)


def test_a_torus_is_shared_as_a_cluster_is():
    asked = planner.loop(256, P=512, G=2048, spread=0.5)
    on = planner.posttraining(models.find("Llama 3 8B"), Slice.of(chips.V5P, "2x4x4"), Layout(tp=4), asked)
    assert on.winner.staleness <= 1
    assert str(on).startswith("Llama 3 8B, 256 responses")


def test_ppo_trains_a_second_model_and_runs_two_more_forward_passes():
    asked = [
        planner.loop(512, P=512, G=4096, spread=0.8, most=32_768, algorithm=a)
        for a in (planner.GRPO, planner.PPO)
    ]
    grpo, ppo = (planner.posttraining(LLAMA, FEW, ENGINE, one).best(COLOCATED) for one in asked)
    assert ppo.train_s == approx(2 * grpo.train_s)
    assert ppo.score_s == approx(2 * grpo.score_s)


def test_a_critic_leaves_less_memory_for_caches():
    long = [planner.loop(2048, P=512, G=8192, spread=0, algorithm=a) for a in (planner.GRPO, planner.PPO)]
    grpo, ppo = (planner.posttraining(LLAMA, FEW, ENGINE, one).best(COLOCATED) for one in long)
    assert ppo.slots < grpo.slots


def test_tools_delay_a_colocated_step_more_than_an_asynchronous_one():
    asked = planner.loop(512, P=512, G=4096, spread=0.8, most=32_768, environment_s=60)
    waits = planner.posttraining(LLAMA, FEW, ENGINE, asked, staleness=9)
    longer = {way: waits.best(way).total_s - found().best(way).total_s for way in (COLOCATED, ASYNCHRONOUS)}
    assert longer[COLOCATED] > longer[ASYNCHRONOUS] > 0
    assert "each waiting 60 s for tools" in str(waits)


def test_what_cannot_be_asked_says_what_to_write():
    with pytest.raises(ValueError, match="at least one response"):
        planner.loop(0, P=1, G=1)
    with pytest.raises(ValueError, match="environment_s=-1"):
        planner.loop(1, P=1, G=1, environment_s=-1)


def test_without_a_limit_answers_are_as_long_as_they_are_drawn():
    long = planner.loop(500, P=512, G=8192)
    assert pytest.approx(8192, rel=0.15) == long.G
    assert max(long.lengths) > 32_768
    assert long.answers == len(long.lengths) == 500


def test_the_chapter_asks_for_answers_as_long_as_it_says():
    asked = case.asked()
    assert (asked.answers, asked.P) == (len(asked.lengths), case.P)
    assert pytest.approx(case.G, rel=0.1) == asked.G
    assert max(asked.lengths) == case.MOST  # of so many some are cut
