"""However the model is spread over eight devices, it learns the same."""

import functools

import jax
import numpy as np
import pytest

from scalingbook_lib.lab import mixing, training
from scalingbook_lib.lab.training import SMALL, SMALL_MOE, Trainer

STEPS = 10
TOLERANCE = 1e-5  # of the loss: sums in another order, amplified over the steps

MESHES = {
    "DP": {"R": 8},
    "FSDP": {"X": 8},
    "TP with sequence parallelism": {"Y": 8},
    "FSDP x TP": {"X": 4, "Y": 2},
    "PP": {"P": 4, "R": 2},
    "CP": {"C": 4, "R": 2},
    "3-D": {"P": 2, "X": 2, "Y": 2},
}
MOE = {"EP": {"Z": 4, "R": 2}, "EP x FSDP x TP": {"Z": 2, "X": 2, "Y": 2}}


@functools.cache
def alone(model):
    return Trainer(model, {"X": 1}).train(STEPS).losses


@pytest.mark.parametrize("ways", MESHES)
def test_the_loss_curve_is_that_of_one_device(ways):
    mesh = MESHES[ways]
    trained = Trainer(SMALL, mesh, microbatches=4 if "P" in mesh else 1).train(STEPS)
    assert trained.losses == pytest.approx(alone(SMALL), rel=TOLERANCE)


@pytest.mark.parametrize("ways", MOE)
def test_with_experts_the_loss_curve_is_that_of_one_device(ways):
    assert Trainer(SMALL_MOE, MOE[ways]).train(STEPS).losses == pytest.approx(alone(SMALL_MOE), rel=TOLERANCE)


def test_it_learns_the_book():
    first, last = alone(SMALL)[0], alone(SMALL)[-1]
    assert first > np.log(256) > 4 > 3.3 > last  # from worse than chance to better than single letters


def test_every_parameter_of_the_model_is_there():
    for model in (SMALL, SMALL_MOE):
        weights = training.initial(model, seed=0)["weights"]
        assert sum(w.size for w in weights.values()) == model.params


def test_what_does_not_divide_is_refused_with_its_numbers():
    with pytest.raises(ValueError, match=r"K = 8 does not divide over Y = 16"):
        Trainer(SMALL, {"Y": 16})
    with pytest.raises(ValueError, match="axis Q is none of"):
        Trainer(SMALL, {"Q": 2})


def test_attention_over_blocks_of_keys_is_plain_attention():
    key = jax.random.key(0)
    q, k, v = (jax.random.normal(key, (2, 12, n, 8)) for n in (4, 2, 2))
    blocks = [(jax.numpy.stack([k, v])[:, :, s : s + 4], -s) for s in (0, 4, 8)]
    plain = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    assert mixing.attend(q, blocks) == pytest.approx(np.array(plain), abs=1e-5)
