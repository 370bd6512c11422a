"""The memory of an RL step's models, and the algorithms that hold them."""

import pytest

from scalingbook_lib import models, planner
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.units import FP8

approx = pytest.approx
LLAMA, MACHINE, ENGINE = models.find("Llama 3 70B"), Cluster.of(chips.H100, 256), Layout(tp=8)


@pytest.mark.parametrize(
    ("algorithm", "bytes_per_param"),
    [(planner.GRPO_WITHOUT_KL, 16), (planner.GRPO, 18), (planner.PPO, 36)],
)
def test_state_and_frozen_models_in_bytes_per_parameter(algorithm, bytes_per_param):
    found = planner.rl_memory(LLAMA, MACHINE, ENGINE, algorithm)
    assert 256 * (found.trained_bytes + found.frozen_bytes) == approx(bytes_per_param * LLAMA.params)


def test_a_colocated_chip_holds_everything_and_a_pool_holds_its_half():
    together = planner.rl_memory(LLAMA, MACHINE, ENGINE)
    apart = planner.rl_memory(LLAMA, MACHINE, ENGINE, training_chips=128)
    assert together.rollout_bytes == apart.rollout_bytes == 2 * LLAMA.params / 8
    assert apart.trained_bytes == 2 * together.trained_bytes
    assert apart.cache_bytes == chips.H100.hbm_bytes - apart.rollout_bytes > together.cache_bytes
    assert together.cache_bytes == together.activation_bytes
    assert "per chip that generates: rollout weights 17.6 GB" in str(apart)


def test_narrow_rollout_weights_leave_more_for_caches():
    wide, narrow = (planner.rl_memory(LLAMA, MACHINE, e) for e in (ENGINE, Layout(tp=8, weights=FP8)))
    assert narrow.cache_bytes - wide.cache_bytes == approx(LLAMA.params / 8)


def test_too_few_chips_have_a_negative_remainder():
    short = planner.rl_memory(LLAMA, Cluster.of(chips.H100, 16), ENGINE)
    assert short.cache_bytes < 0
    assert str(short).endswith("; 11.1 GB too much")


def test_more_training_chips_than_there_are_say_what_to_write():
    with pytest.raises(ValueError, match=r"training_chips=257: .* write 1 to that"):
        planner.rl_memory(LLAMA, MACHINE, ENGINE, training_chips=257)


@pytest.mark.parametrize(("algorithm", "flops"), [(planner.GRPO, 12), (planner.PPO, 22)])
def test_flops_per_token_and_parameter(algorithm, flops):
    assert algorithm.flops_per_token(1.0) == flops
