"""However cache and weights are sharded, a model generates what it
generates on one device without a cache.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from writing import CLOSE, TINY, TINY_MOE, weights, written

from scalingbook_lab.compiler import aot, sharding
from scalingbook_lab.serve import decode, paged_attention
from scalingbook_lab.serve.decoder import DecoderPlacement
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.train import text
from tests.core import repeatable

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
    """Blocks from the end of every group's pool, so that none has its position without paging."""
    if not config.blocks:
        return []
    groups = config.degree("AXZ")
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
def test_decode_with_a_cache_equals_decode_without(spread, paged):
    config = Config(TINY, {"A": 1} | SPREAD[spread], sequences=B, tokens=64, **paged)
    assert np.array_equal(writes(config), plain(TINY)[0])


def test_scanned_layers_give_the_same_tokens():
    config = Config(TINY, {"Z": 2, "C": 2, "Y": 2}, sequences=B, tokens=64, scanned=True)
    assert np.array_equal(writes(config), plain(TINY)[0])


@pytest.mark.parametrize(
    ("spread", "experts"),
    [("heads", "Y"), ("attention groups", "A"), ("attention groups", ""), ("rows, tokens and heads", "CY")],
)
def test_experts_give_the_same_tokens_on_every_mesh(spread, experts):
    config = Config(TINY_MOE, SPREAD[spread], sequences=B, tokens=64, experts=experts)
    assert np.array_equal(writes(config), plain(TINY_MOE)[0])


def test_sizes_that_do_not_divide_are_refused_with_their_numbers():
    with pytest.raises(ValueError, match=r"K = 8 is not divisible by Y = 16"):
        Config(TINY, {"Y": 16})
    with pytest.raises(ValueError, match="axis P is none of A, X, Z, C, Y"):
        Config(TINY, {"P": 2})
    with pytest.raises(ValueError, match="sequences = 6 is not divisible by AXZ = 4"):
        Config(TINY, {"Z": 4}, sequences=6)


def matmul_weights(model):
    return sum(w.size for name, w in weights(model).items() if "norm" not in name and name != "embed")


def test_without_a_cache_each_token_recomputes_all_before_it():
    recompute = functools.partial(decode.logits_without_cache, TINY)
    shapes = {name: jax.ShapeDtypeStruct(w.shape, jnp.float32) for name, w in weights(TINY).items()}
    attention = 4 * TINY.N * TINY.H * TINY.L  # FLOPs of one query with one key and value
    for n in (16, 32):
        whole = aot.compile(recompute, shapes, jax.ShapeDtypeStruct((1, n), jnp.int32))
        assert whole.flops == 2 * matmul_weights(TINY) * n + attention * n * n
    config = Config(TINY, {"Y": 1}, sequences=B, tokens=64)
    assert decode.program(config).flops == B * (2 * matmul_weights(TINY) + attention * 64)


@pytest.mark.parametrize("spread", ["heads", "sequences", "tokens", "rows", "attention groups"])
def test_sharding_adds_no_flops(spread):
    one, spread = (Config(TINY, mesh, sequences=B, tokens=64) for mesh in ({"Y": 1}, SPREAD[spread]))
    copied = 2 * 2 * TINY.D * TINY.K * TINY.H * TINY.L * B * (spread.sizes["C"] - 1)  # K and V, on all of C
    assert decode.program(spread).flops * spread.device_mesh.size == decode.program(one).flops + copied


@pytest.mark.parametrize("paged", [{}, PAGED], ids=["whole", "paged"])
def test_the_donated_cache_is_updated_in_place(paged):
    config = Config(TINY, {"Y": 8}, sequences=B, tokens=64, **paged)
    params, cache = config.params(weights(TINY)), config.cache()
    nbytes = sum(a.nbytes for kept in cache for a in kept.values())
    assert nbytes == 2 * TINY.L * B * 64 * TINY.K * TINY.H * 4
    assert decode.program(config, greedy=True).memory.aliased == nbytes / 8
    step(config, params, prompts()[:, :1], cache, np.zeros(B), np.ones(B))
    assert all(a.is_deleted() for kept in cache for a in kept.values())


def test_prefill_and_decode_can_be_jitted():
    config = Config(TINY, {"Z": 2, "Y": 4}, sequences=B, tokens=64)
    params, asked = config.params(weights(TINY)), prompts()
    prefill = jax.jit(lambda w, t, c, *more: decode.prefill(w, config, t, c, *more), donate_argnums=2)
    one = jax.jit(lambda w, t, c, n: decode.decode(w, config, t, c, n), donate_argnums=2)
    whole, cache = prefill(params, asked, config.cache())
    _, parts = prefill(params, asked[:, :12], config.cache())
    ends, parts = prefill(params, asked[:, 12:], parts, DecoderPlacement(np.full(B, 12), np.full(B, T - 12)))
    assert ends == pytest.approx(np.array(whole), abs=CLOSE)
    assert whole.argmax(-1).tolist() == plain(TINY)[0][:, 0].tolist()
    after = [one(params, whole.argmax(-1), kept, np.full(B, T))[0] for kept in (cache, parts)]
    assert after[0] == pytest.approx(np.array(after[1]), abs=CLOSE)
    assert after[0].argmax(-1).tolist() == plain(TINY)[0][:, 1].tolist()


def test_logits_of_every_token_are_those_of_the_plain_model():
    config = Config(TINY, {"C": 4, "Y": 2}, sequences=B, tokens=32)
    every, _ = decode.program(config, T, every=True).run(
        config.params(weights(TINY)),
        prompts(),
        config.cache(),
        np.zeros(B, np.int32),
        np.full(B, T, np.int32),
    )
    assert every == pytest.approx(
        np.array(decode.logits_without_cache(TINY, weights(TINY), prompts())), abs=CLOSE
    )


def test_padding_tokens_change_nothing():
    config = Config(TINY, {"Y": 2, "C": 2}, sequences=B, tokens=32)
    params, count = config.params(weights(TINY)), np.arange(B) + 1
    start, real = np.zeros(B), np.where(np.arange(T) < count[:, None], prompts(), 0)
    some, cache = step(config, params, prompts(), config.cache(), start, count)
    same, other = step(config, params, real, config.cache(), start, count)
    assert np.array_equal(some, same)
    for a, b in zip(cache, other, strict=True):
        assert np.array_equal(a["k"], b["k"])
        assert all(not np.array(a["k"])[row, n:].any() for row, n in enumerate(count))


@given(
    lengths=st.lists(st.integers(1, 32), min_size=3, max_size=3),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
@repeatable.examples(20)
def test_merged_partial_attention_equals_attention(lengths, scale, seed):
    q, k, v = (
        scale * jax.random.normal(key, (3, n, h, 8))
        for key, n, h in zip(jax.random.split(jax.random.key(seed), 3), (1, 32, 32), (8, 2, 2), strict=True)
    )
    seen = np.arange(32) < np.array(lengths)[:, None]
    whole = jax.nn.dot_product_attention(q, k, v, mask=seen[:, None, None])
    assert merged()(q, k, v, seen[:, None]) == pytest.approx(np.array(whole), abs=1e-5 * scale, rel=1e-4)


@functools.cache
def merged():
    """Attention with the keys sharded over four devices, each of which ends with two heads."""
    over, last = jax.P(None, "C"), jax.P(None, None, "C")
    return jax.jit(jax.shard_map(
        lambda q, k, v, seen: paged_attention.merge(*paged_attention.attend(q, seen, k, v)),
        mesh=sharding.mesh(C=4),
        in_specs=(jax.P(), over, over, last), out_specs=last, check_vma=False,
    ))  # fmt: skip


@pytest.mark.parametrize(("mesh", "found"), [
    ({"Y": 8}, {"all-gather Y": 2 * 2 + 2, "reduce-scatter Y": 2 * 2}),
    ({"C": 8}, {"all-gather C": 3 * 2 + 2, "reduce-scatter C": 3 * 2, "all-reduce C": 2}),
    ({"Z": 8}, {"all-gather Z": 2 * 2 + 2, "reduce-scatter Z": 2 * 2, "all-to-all Z": 3 * 2}),
    ({"A": 8}, {"all-gather A": 2 + 2, "reduce-scatter A": 2}),
])  # fmt: skip
def test_the_collectives_of_two_layers(mesh, found):
    config = Config(TINY, mesh, sequences=B, tokens=64)
    assert decode.program(config, greedy=True).collectives.over_axes() == found
