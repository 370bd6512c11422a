"""Speculative decoding changes neither greedy tokens nor the distribution of sampled ones."""

import functools
import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scalingbook_lab.serve import decode, speculative
from scalingbook_lab.serve.layout import Config
from scalingbook_lab.serve.speculative import Pair, accepted, plain
from scalingbook_lab.train import trainer, transformer
from scalingbook_lib import inference, models

WORDS = 16
TARGET = models.Transformer(name="target", D=32, L=2, V=WORDS, N=4, K=2, H=8, F=64)
DRAFT = replace(TARGET, name="draft", L=1)
PROMPTS = np.random.default_rng(0).integers(0, WORDS, (8, 5))
G = 24


@functools.cache
def config(model, tokens=64, sequences=8, **mesh):
    return Config(model, mesh or {"Y": 1}, sequences=sequences, tokens=tokens)


@functools.cache
def weights(model):
    """Random weights; the draft has the target's first layer, so that its proposals are good."""
    drawn, layered = trainer.initial(TARGET, seed=0)["weights"], transformer.SPLIT
    return {name: w[: model.L] if layered[name].startswith("W[L") else w for name, w in drawn.items()}


def written(pair, **how):
    target, draft = (c.params(weights(c.model)) for c in (pair.target, pair.draft))
    return pair.generate(target, draft, PROMPTS, G, **how)


@functools.cache
def one_by_one():
    return plain(config(TARGET), config(TARGET).params(weights(TARGET)), PROMPTS, G)


@pytest.mark.parametrize("K", [1, 4])
def test_greedy_speculative_output_equals_the_targets(K):
    told = written(Pair(config(TARGET), config(DRAFT), K=K))
    assert np.array_equal(told.tokens, one_by_one())
    assert 1 < told.per_round < K + 1  # it was helped, and it was not always agreed with


def test_target_and_draft_may_have_different_meshes():
    pair = Pair(config(TARGET, Y=2, Z=2), config(DRAFT, A=4), K=3)
    assert np.array_equal(written(pair).tokens, one_by_one())


def test_a_draft_equal_to_the_target_is_always_accepted():
    told = written(Pair(config(TARGET), config(TARGET), K=5, temperature=1.0))
    assert told.per_round == 6
    assert told.acceptance == 1
    assert told.rounds == 8 * G / 6


# --- the law ---------------------------------------------------------------------------------------------


def chi_square(seen, law):
    """How many standard deviations the chi-square statistic lies above its mean; rare outcomes are merged."""
    expected = law / law.sum() * seen.sum()
    rare = expected < 5
    seen, expected = (np.append(x[~rare], x[rare].sum()) for x in (seen, expected))
    statistic = ((seen - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    freedom = len(seen) - 1
    return (statistic - freedom) / np.sqrt(2 * freedom)


def drawn(K, n=200_000, seed=0):
    """Drafts of n sequences from fixed distributions r, verified by fixed
    distributions q: acceptances and tokens.
    """
    rng = np.random.default_rng(seed)
    q, r = rng.dirichlet(np.ones(8), (K + 1)), rng.dirichlet(np.ones(8), K)
    draft, judge = jax.random.split(jax.random.key(seed))
    each = jax.random.split(draft, K)
    drafted = jnp.stack(
        [jax.random.categorical(k, jnp.log(row), shape=(n,)) for k, row in zip(each, r, strict=True)], 1
    )
    whole = lambda x: jnp.broadcast_to(x, (n, *x.shape))  # noqa: E731
    kept, own = accepted(judge, whole(jnp.asarray(q)), whole(jnp.asarray(r)), drafted)
    tokens = jnp.where(jnp.arange(K + 1) == kept[:, None], own[:, None], jnp.pad(drafted, ((0, 0), (0, 1))))
    return q, r, np.asarray(kept), np.asarray(tokens)


@pytest.mark.parametrize("K", [1, 3])
def test_every_token_has_the_targets_distribution(K):
    q, r, kept, tokens = drawn(K)
    for i in range(K + 1):
        reached = tokens[kept >= i, i]
        assert len(reached) > 1000
        assert abs(chi_square(np.bincount(reached, minlength=8), q[i])) < 4
    assert chi_square(np.bincount(tokens[:, 0], minlength=8), r[0]) > 100  # the test can tell the two apart


@pytest.mark.parametrize("K", [1, 3, 7])
def test_the_acceptance_rate_is_that_of_the_formula(K):
    rng = np.random.default_rng(5)
    q, r = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    n = 100_000
    drafted = jax.random.categorical(jax.random.key(1), jnp.log(r), shape=(n, K))
    laws = [jnp.broadcast_to(jnp.asarray(x), (n, K + extra, 8)) for x, extra in ((q, 1), (r, 0))]
    kept, _ = accepted(jax.random.key(2), *laws, drafted)
    p = np.minimum(q, r).sum()  # the chance that a draft is kept, with the same laws everywhere
    kept = np.asarray(kept)
    error = kept.std() / np.sqrt(n)
    assert inference.speculative(p, K, cost=0).tokens == pytest.approx(kept.mean() + 1, abs=4 * error)


def laws(pairs=2):
    """The exact distribution of the first two tokens after a prompt, without a cache and a draft."""
    prompt = PROMPTS[:1]
    every = np.array(list(itertools.product(range(WORDS), repeat=pairs - 1)))
    longer = np.concatenate([np.repeat(prompt, len(every), 0), every], 1)
    p = jax.nn.softmax(decode.logits_without_cache(TARGET, weights(TARGET), longer).astype(jnp.float32))
    first, second = p[0, prompt.shape[1] - 1], p[:, prompt.shape[1]]
    return np.asarray(first[:, None] * second)


def test_speculative_output_has_the_targets_distribution():
    B, seeds = 2048, 4
    target, draft = config(TARGET, 16, B), config(DRAFT, 16, B)
    pair = Pair(target, draft, K=2, temperature=1.0)
    params = [c.params(weights(c.model)) for c in (target, draft)]
    tokens = np.concatenate(
        [pair.generate(*params, np.repeat(PROMPTS[:1], B, 0), 2, seed=s).tokens for s in range(seeds)]
    )
    seen = np.bincount(tokens @ [WORDS, 1], minlength=WORDS**2)
    assert abs(chi_square(seen, laws().ravel())) < 4
    wrong = plain(draft, params[1], np.repeat(PROMPTS[:1], B, 0), 2, temperature=1.0)
    assert chi_square(np.bincount(wrong @ [WORDS, 1], minlength=WORDS**2), laws().ravel()) > 10


# --- refusals --------------------------------------------------------------------------------------------


def test_impossible_configurations_are_refused():
    with pytest.raises(ValueError, match="vocabulary has 16 tokens and the draft"):
        Pair(config(TARGET), config(replace(DRAFT, V=8)))
    with pytest.raises(ValueError, match="K=0"):
        Pair(config(TARGET), config(DRAFT), K=0)
    with pytest.raises(ValueError, match="room for 16 tokens of a sequence, and 33 are needed"):
        written(Pair(config(TARGET, 16), config(DRAFT), K=4))


def test_results_print_as_text():
    told = speculative.Generation(np.zeros((2, 4), int), np.array([[2, 0], [0, -1], [-1, 2]]), 2)
    assert (
        str(told)
        == "8 tokens in 4 steps of the target, 2.00 each; 67% of the verified drafts accepted (K = 2)"
    )
