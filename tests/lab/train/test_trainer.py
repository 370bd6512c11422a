"""However the model is spread over eight devices, it learns the same and has the planned collectives."""

import jax
import numpy as np
import pytest
from ways import STEPS, TOLERANCE, WAYS, alone, trainer

from scalingbook_lab import attention
from scalingbook_lab.train import agreement, text
from scalingbook_lab.train import trainer as training
from scalingbook_lab.train.trainer import SMALL, SMALL_MOE, Trainer

DENSE = [ways for ways in WAYS if "EP" not in ways]


@pytest.mark.parametrize("ways", DENSE)
def test_the_loss_curve_is_that_of_one_device(ways):
    spread = trainer(ways)
    assert spread.train(STEPS).losses == pytest.approx(alone(spread.model), rel=TOLERANCE)


@pytest.mark.parametrize("ways", DENSE)
def test_every_collective_is_predicted_in_kind_axes_count_and_bytes(ways):
    told = agreement.of(trainer(ways))
    assert told.lines
    assert not told.differences, str(told)


def test_one_device_has_no_collectives():
    assert not agreement.of(Trainer(SMALL, {"X": 1})).lines


def test_the_trainer_learns_the_book():
    first, last = alone(SMALL)[0], alone(SMALL)[-1]
    assert first > np.log(text.BYTES) > 4 > 3.3 > last  # from worse than chance to common letters


def test_every_parameter_of_the_model_is_there():
    for model in (SMALL, SMALL_MOE):
        weights = training.initial(model, seed=0)["weights"]
        assert sum(w.size for w in weights.values()) == model.params


def test_sizes_that_do_not_divide_are_refused_with_their_numbers():
    with pytest.raises(ValueError, match=r"K = 8 is not divisible by Y = 16"):
        Trainer(SMALL, {"Y": 16})
    with pytest.raises(ValueError, match="axis Q is none of"):
        Trainer(SMALL, {"Q": 2})


def test_attention_over_blocks_of_keys_is_plain_attention():
    key = jax.random.key(0)
    q, k, v = (jax.random.normal(key, (2, 12, n, 8)) for n in (4, 2, 2))
    blocks = [(jax.numpy.stack([k, v])[:, :, s : s + 4], -s) for s in (0, 4, 8)]
    plain = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    assert attention.attend(q, blocks) == pytest.approx(np.array(plain), abs=1e-5)


def test_the_data_of_a_step_depend_on_the_step_alone():
    every = text.batch(3, batch=16, T=64)
    assert np.array_equal(every[4:6], text.batch(3, batch=16, T=64, rows=slice(4, 6)))
    assert not np.array_equal(every, text.batch(4, batch=16, T=64))
    assert "Alice" in bytes(text.book().astype("uint8")).decode()
