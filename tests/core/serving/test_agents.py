"""Rollouts that wait for tools: against the serving simulator, the steady state, and laws of waiting."""

import pytest

from scalingbook_lib import inference, models, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips

approx = pytest.approx
COSTS = inference.case(models.find("Llama 3 70B"), Cluster.of(chips.H100, 8), Layout(tp=8))
LENGTHS = serving.sample_lengths(64, 2000, 0.8, max_tokens=16_000)


@pytest.mark.parametrize("slots", [None, 40])
@pytest.mark.parametrize("calls", [1, 8])
def test_without_tools_a_rollout_takes_as_long_as_in_the_serving_simulator(slots, calls):
    known = serving.rollout(COSTS, LENGTHS, P=512, slots=slots).seconds
    assert serving.agent_rollout_s(COSTS, LENGTHS, P=512, slots=slots, calls=calls) == approx(known, rel=2e-3)


def test_one_response_decodes_and_waits_in_series():
    alone = serving.agent_rollout_s(COSTS, [1000], P=512)
    assert serving.agent_rollout_s(COSTS, [1000], P=512, environment_s=30) == approx(alone + 30)


def test_a_rollout_takes_at_most_the_waits_of_its_slots_longer():
    alone = serving.agent_rollout_s(COSTS, LENGTHS, P=512)
    waiting = serving.agent_rollout_s(COSTS, LENGTHS, P=512, environment_s=60)
    assert alone < waiting < alone + 60 + 1e-6  # faster steps while others wait


@pytest.mark.parametrize("environment_s", [0, 20, 200])
def test_refilled_slots_are_as_fast_as_the_simulator_says(environment_s):
    lengths = serving.sample_lengths(60 * 64, 2000, 0.5, max_tokens=16_000)
    steady = serving.refilled(COSTS, lengths, P=256, slots=64, environment_s=environment_s)
    lasts_s = serving.agent_rollout_s(COSTS, lengths, P=256, slots=64, environment_s=environment_s)
    assert sum(lengths) / lasts_s == approx(steady.tokens_per_s, rel=0.05)


def test_decoding_slots_obey_littles_law():
    filled = serving.refilled(COSTS, LENGTHS, P=512, slots=32, environment_s=60)
    responses_per_s = filled.tokens_per_s * len(LENGTHS) / sum(LENGTHS)
    assert filled.slots - filled.decoding == approx(responses_per_s * 60)
    assert str(filled).startswith(f"{filled.decoding:.3g} of 32 slots decode")


def test_without_tools_every_slot_decodes():
    assert serving.refilled(COSTS, LENGTHS, P=512, slots=32).decoding == 32


def test_bad_waits_say_what_to_write():
    with pytest.raises(ValueError, match="environment_s=-1: write the seconds"):
        serving.refilled(COSTS, LENGTHS, P=512, slots=8, environment_s=-1)
    with pytest.raises(ValueError, match="in at least one call"):
        serving.agent_rollout_s(COSTS, LENGTHS, P=512, environment_s=1, calls=0)
