"""However cache and weights are spread, a model writes what it writes with no cache on one device."""

import functools

import numpy as np
import pytest
from writing import CLOSE, TINY, TINY_MOE, weights, written

from scalingbook_lib.lab import decode, text
from scalingbook_lib.lab.layout import Config

B, T, LIMIT = 8, 20, 8

SPREAD = {
    "one device": {},
    "heads": {"Y": 8},
    "sequences": {"Z": 8},
    "tokens": {"C": 8},
    "rows": {"X": 8},
    "attention groups": {"A": 8},
    "sequences, tokens and heads": {"Z": 2, "C": 2, "Y": 2},
    "groups, rows and sequences": {"A": 2, "X": 2, "Z": 2},
    "rows, tokens and heads": {"X": 2, "C": 2, "Y": 2},
}
PAGED = {"blocks": 64, "block": 8}


@functools.cache
def prompts():
    return text.batch(0, batch=B, T=T)[:, :T]


@functools.cache
def plain(model):
    return written(model, prompts(), LIMIT)


def tables(config):
    """Blocks from the back of every group's pool, so that none has the place it would have without paging."""
    if not config.blocks:
        return []
    groups = config.ways("AXZ")
    here = np.arange(config.blocks // groups, dtype=np.int32)[::-1].reshape(-1, config.width)
    return [np.tile(here, (groups, 1))]


def step(config, params, tokens, cache, start, count, **how):
    program = decode.program(config, tokens.shape[1], greedy=True, **how)
    given = (params, tokens, cache, start.astype(np.int32), count.astype(np.int32), *tables(config))
    return program.run(*given)


def writes(config):
    params, cache, done = config.params(weights(config.model)), config.cache(), np.zeros(B)
    last, cache = step(config, params, prompts(), cache, done, done + T)
    words = [np.array(last)]
    for i in range(LIMIT - 1):
        last, cache = step(config, params, words[-1][:, None], cache, done + T + i, done + 1)
        words.append(np.array(last))
    return np.stack(words, 1)


def test_no_choice_of_the_plain_model_is_close():
    assert min(*plain(TINY)[1], *plain(TINY_MOE)[1]) > CLOSE


@pytest.mark.parametrize("paged", [{}, PAGED], ids=["whole", "paged"])
@pytest.mark.parametrize("spread", SPREAD)
def test_it_writes_what_it_writes_without_a_cache(spread, paged):
    config = Config(TINY, {"A": 1} | SPREAD[spread], sequences=B, tokens=64, **paged)
    assert np.array_equal(writes(config), plain(TINY)[0])


def test_scanned_layers_write_the_same():
    config = Config(TINY, {"Z": 2, "C": 2, "Y": 2}, sequences=B, tokens=64, scanned=True)
    assert np.array_equal(writes(config), plain(TINY)[0])


@pytest.mark.parametrize(
    ("spread", "experts"),
    [("heads", "Y"), ("attention groups", "A"), ("attention groups", ""), ("rows, tokens and heads", "CY")],
)
def test_with_experts_it_writes_the_same_wherever_they_lie(spread, experts):
    config = Config(TINY_MOE, SPREAD[spread], sequences=B, tokens=64, experts=experts)
    assert np.array_equal(writes(config), plain(TINY_MOE)[0])


def test_what_does_not_divide_is_refused_with_its_numbers():
    with pytest.raises(ValueError, match=r"K = 8 does not divide over Y = 16"):
        Config(TINY, {"Y": 16})
    with pytest.raises(ValueError, match="axis P is none of A, X, Z, C, Y"):
        Config(TINY, {"P": 2})
    with pytest.raises(ValueError, match="sequences = 6 does not divide over AXZ = 4"):
        Config(TINY, {"Z": 4}, sequences=6)
