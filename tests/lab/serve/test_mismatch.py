"""Engine and trainer score the same tokens: alike in fp32, not in bf16, and closer with replayed routes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scalingbook_lab.serve import decode, mismatch
from scalingbook_lab.serve.mismatch import Mismatch
from scalingbook_lab.train import text
from scalingbook_lab.train.trainer import SMALL, SMALL_MOE, Trainer, initial

PROMPTS, G = text.batch(5000, batch=16, T=16)[:, :16], 48
MODELS = {"dense": SMALL, "experts": SMALL_MOE}


@functools.cache
def weights(which):
    """Weights of a model that has learned common pairs of letters."""
    return jax.tree.map(np.asarray, Trainer(MODELS[which], {"X": 1}).train(60).state["weights"])


@functools.cache
def compared(which, engine=jnp.bfloat16, trainer=jnp.bfloat16, stored=None, replay=False):
    m = MODELS[which]
    rollout = mismatch.generate(m, mismatch.cast(weights(which), engine, stored=stored), PROMPTS, G)
    return Mismatch(
        rollout, mismatch.score(m, mismatch.cast(weights(which), trainer), rollout, replay=replay)
    )


@pytest.mark.parametrize("which", MODELS)
def test_in_fp32_both_agree_with_each_other_and_with_the_laboratorys_trainer(which):
    both = compared(which, jnp.float32, jnp.float32)
    assert abs(both.log_ratios).max() < 1e-4
    tokens = both.engine.tokens
    known = jax.nn.log_softmax(decode.logits_without_cache(MODELS[which], weights(which), tokens[:, :-1]))
    known = np.take_along_axis(np.asarray(known), np.asarray(tokens)[:, 1:, None], -1)[:, -G:, 0]
    np.testing.assert_allclose(known, both.trainer.logprobs, atol=1e-3)


def test_prompts_are_kept_and_responses_have_g_tokens():
    rollout = compared("experts").engine
    assert (np.asarray(rollout.tokens)[:, :16] == PROMPTS).all()
    assert rollout.tokens.shape == (16, 16 + G)
    assert rollout.routes is not None
    assert rollout.routes.shape == (SMALL_MOE.L, 16, 16 + G - 1, 2)


def test_bf16_differs_and_a_narrower_engine_differs_more():
    one, narrow = compared("experts"), compared("experts", stored=jnp.float8_e4m3fn)
    assert 1e-3 < one.std < 0.1
    assert narrow.std > 2 * one.std
    assert 0 < one.rerouted < narrow.rerouted < 0.2
    assert one.rerouted < one.rerouted_tokens


def test_replayed_routes_leave_rounding_alone():
    free, replayed = (compared("experts", replay=r) for r in (False, True))
    assert replayed.rerouted == 0
    assert replayed.std < free.std
    assert (np.asarray(replayed.trainer.routes) == np.asarray(free.engine.routes)).all()


def test_errors_of_tokens_add_up_like_a_random_walk():
    narrow = compared("experts", stored=jnp.float8_e4m3fn)
    assert 0.5 < narrow.sequence_std / (narrow.std * G**0.5) < 2


def test_importance_weights_average_to_one_and_are_capped():
    narrow = compared("experts", stored=jnp.float8_e4m3fn)
    assert abs(np.exp(narrow.log_ratios).mean() - 1) < 0.03
    assert narrow.weights(cap=1.1).max() == 1.1


def test_dense_models_have_no_routes():
    assert compared("dense").rerouted == compared("dense").rerouted_tokens == 0
    assert "0% of expert choices" in str(compared("dense"))
    with pytest.raises(ValueError, match="no experts"):
        mismatch.score(SMALL, initial(SMALL, 0)["weights"], compared("dense").engine, replay=True)
