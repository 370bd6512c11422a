"""Training-inference mismatch: log-probabilities of the same tokens from an engine and from a trainer.

`generate` samples responses as an inference engine does, one token at a time with a KV cache, and with the
rounding of `ENGINE_SHARDS` chips that share heads and experts. `score`
computes the log-probabilities of the same tokens as a trainer does, in one pass over all of them, and can
replay the routes of an engine. `Mismatch` compares the two. The weights are those of the laboratory's
trainer, on one device. Chapter: RL post-training systems.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from scalingbook_lab import attention
from scalingbook_lab.train import transformer
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Result, percent

type Weights = Mapping[str, Any]

ENGINE_SHARDS = 2  # degree of tensor and expert parallelism whose partial sums the engine rounds


class ScoredTokens(NamedTuple):
    """The log-probability of each token of the responses, and the experts of each token and layer."""

    tokens: jax.Array  # [B, P + G], prompts included
    logprobs: jax.Array  # [B, G], of the response tokens
    routes: jax.Array | None  # [L, B, P + G - 1, k]; None for a dense model


class _Cache(NamedTuple):
    k: jax.Array  # [L, B, S, K, H]
    v: jax.Array


def cast(w: Weights, dtype: Any, *, stored: Any = None) -> dict[str, jax.Array]:
    """Return the weights in `dtype`, after rounding them to the values of the narrower type `stored`, if any.

    The fp8 types get one scale per matrix, so that the largest weight is the largest value of the type.
    """

    def one(a: Any) -> jax.Array:
        a = jnp.asarray(a, jnp.float32)
        if stored is None:
            return a.astype(dtype)
        scale = jnp.abs(a).max(tuple(range(a.ndim - 2, a.ndim)), keepdims=True) / float(jnp.finfo(stored).max)
        return ((a / scale).astype(stored).astype(jnp.float32) * scale).astype(dtype)

    return {
        name: one(a) if name in transformer.SPLIT and np.ndim(a) > 1 else jnp.asarray(a, dtype)
        for name, a in w.items()
    }


def generate(
    m: Transformer, w: Weights, prompts: jax.Array | np.ndarray, G: int, *, seed: int = 0
) -> ScoredTokens:
    """Sample G tokens after each of prompts[B, P] at temperature 1, one token per step with a KV cache.

    Attention and experts add `ENGINE_SHARDS` partial sums, each rounded to the dtype of the weights.
    """
    return _generate(m, dict(w), jnp.asarray(prompts), jax.random.key(seed), G=G)


def score(m: Transformer, w: Weights, of: ScoredTokens, *, replay: bool = False) -> ScoredTokens:
    """Compute the log-probabilities of the response tokens of `of` in one pass over all tokens.

    With `replay` every token is routed to the experts that `of` records; only their weights are recomputed.
    """
    if replay and of.routes is None:
        raise ValueError(f"{m.name} has no experts, so there are no routes to replay; leave out replay=True")
    return _score(m, dict(w), of.tokens, of.routes if replay else None, G=of.logprobs.shape[1])


@partial(jax.jit, static_argnums=0, static_argnames="G")
def _generate(m: Transformer, w: dict, prompts: jax.Array, key: jax.Array, *, G: int) -> ScoredTokens:
    B, P = prompts.shape
    S = P + G - 1
    empty = jnp.zeros((m.L, B, S, m.K, m.H), w["embed"].dtype)

    def step(carry: tuple, at: jax.Array) -> tuple:
        token, cache = carry
        logits, cache, routes = _forward(m, w, token[:, None], at[None], cache, None, ENGINE_SHARDS)
        logprobs = jax.nn.log_softmax(logits[:, 0])
        drawn = jax.random.categorical(jax.random.fold_in(key, at), logprobs)
        # within the prompt the next token is given
        following = jnp.where(at + 1 < P, prompts[:, jnp.minimum(at + 1, P - 1)], drawn)
        chosen = jnp.take_along_axis(logprobs, following[:, None], -1)[:, 0]
        return (following, cache), (following, chosen, routes)

    _, (tokens, logprobs, routes) = lax.scan(step, (prompts[:, 0], _Cache(empty, empty)), jnp.arange(S))
    routes = None if routes is None else jnp.moveaxis(routes[:, :, :, 0], 0, 2)
    return ScoredTokens(jnp.concatenate([prompts[:, :1], tokens.T], 1), logprobs.T[:, P - 1 :], routes)


@partial(jax.jit, static_argnums=0, static_argnames="G")
def _score(m: Transformer, w: dict, tokens: jax.Array, routes: jax.Array | None, *, G: int) -> ScoredTokens:
    B, S = tokens.shape[0], tokens.shape[1] - 1
    empty = jnp.zeros((m.L, B, S, m.K, m.H), w["embed"].dtype)
    logits, _, found = _forward(m, w, tokens[:, :-1], jnp.arange(S), _Cache(empty, empty), routes, 1)
    logprobs = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)[..., 0]
    return ScoredTokens(tokens, logprobs[:, -G:], found)


def _forward(
    m: Transformer,
    w: Weights,
    tokens: jax.Array,
    at: jax.Array,
    cache: _Cache,
    routes: jax.Array | None,
    shards: int,
) -> tuple[jax.Array, _Cache, jax.Array | None]:
    """Return the logits [B, T, V] in fp32 of tokens[B, T] at positions `at`, the cache, and the routes."""

    def layer(x: jax.Array, of: tuple) -> tuple:
        one, k, v, given = of
        out, k, v = _heads(one, transformer.norm(x, one["attention norm"]), at, k, v, shards)
        x += out
        h = transformer.norm(x, one["mlp norm"])
        if not m.experts:
            return x + transformer.mlp(one, h), (k, v, None)
        out, chosen = _routed(m, one, h, given, shards)
        return x + out, (k, v, chosen)

    layers = transformer.layer_weights(w)
    x, (k, v, chosen) = lax.scan(layer, w["embed"][tokens], (layers, *cache, routes))
    logits = transformer.norm(x, w["final norm"]) @ w["unembed"]
    return logits.astype(jnp.float32), _Cache(k, v), chosen


def _summed(parts: Sequence[jax.Array]) -> jax.Array:
    """Return the sum of partial sums that are each rounded to their dtype, as an AllReduce adds them."""
    info = jnp.finfo(parts[0].dtype)
    # XLA may keep a bf16 value in fp32, but it never drops reduce_precision
    return sum((lax.reduce_precision(one, info.nexp, info.nmant) for one in parts), jnp.zeros_like(parts[0]))


def _heads(w: Weights, h: jax.Array, at: jax.Array, k: jax.Array, v: jax.Array, shards: int) -> tuple:
    """Return the attention of h[B, T, D] to the cache and itself, and the cache with the new tokens."""
    q, new_k, new_v = (jnp.einsum("btd,dnh->btnh", h, w[name]) for name in "qkv")
    q, new_k = (attention.rotary(x, at) for x in (q, new_k))
    k, v = (lax.dynamic_update_slice_in_dim(old, new, at[0], 1) for old, new in ((k, new_k), (v, new_v)))
    groups = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    scores = jnp.einsum("btkgh,bskh->bkgts", groups, k).astype(jnp.float32) / q.shape[-1] ** 0.5
    causal = jnp.arange(k.shape[1]) <= at[:, None]
    share = jax.nn.softmax(jnp.where(causal, scores, attention.MASKED)).astype(h.dtype)
    out = jnp.einsum("bkgts,bskh->btkgh", share, v).reshape(q.shape)
    parts = zip(jnp.split(out, shards, 2), jnp.split(w["o"], shards), strict=True)
    return _summed([jnp.einsum("btnh,nhd->btd", heads, o) for heads, o in parts]), k, v


def _routed(m: Transformer, w: Weights, h: jax.Array, given: jax.Array | None, shards: int) -> tuple:
    """Return the weighted outputs of each token's experts, and these: `given`[B, T, k] or the best k."""
    assert m.experts
    probabilities = jax.nn.softmax((h @ w["router"]).astype(jnp.float32))
    chosen = lax.top_k(probabilities, m.experts.k)[1] if given is None else given
    share = jnp.take_along_axis(probabilities, chosen, -1)
    weight = jax.nn.one_hot(chosen, m.experts.E) * (share / share.sum(-1, keepdims=True))[..., None]
    experts = {name: w[f"expert {name}"] for name in ("gate", "up", "down")}
    outputs = jax.vmap(transformer.mlp, (0, None))(experts, h)
    shares = jnp.split(weight.sum(-2).astype(h.dtype), shards, -1)
    parts = zip(jnp.split(outputs, shards), shares, strict=True)
    return _summed([jnp.einsum("ebtd,bte->btd", out, share) for out, share in parts]), chosen


@dataclass(frozen=True)
class Mismatch(Result):
    """The responses of an engine, scored by the engine itself and by a trainer."""

    engine: ScoredTokens
    trainer: ScoredTokens

    @property
    def log_ratios(self) -> np.ndarray:
        """log π_trainer - log π_engine of each token [B, G]: the logarithm of its importance weight."""
        return np.asarray(self.trainer.logprobs, np.float64) - np.asarray(self.engine.logprobs, np.float64)

    @property
    def std(self) -> float:
        """The standard deviation of a token's log ratio."""
        return float(self.log_ratios.std())

    @property
    def sequence_std(self) -> float:
        """The standard deviation of the log ratio of a whole response, the sum over its tokens."""
        return float(self.log_ratios.sum(1).std())

    @property
    def rerouted(self) -> float:
        """The share of (token, layer) pairs whose set of experts differs; 0 for a dense model."""
        return float(self._differs().mean())

    @property
    def rerouted_tokens(self) -> float:
        """The share of tokens whose set of experts differs in at least one layer."""
        return float(self._differs().any(0).mean())

    def weights(self, cap: float = 2.0) -> np.ndarray:
        """Truncated importance weights of the tokens [B, G]: min(π_trainer / π_engine, cap)."""
        return np.minimum(np.exp(self.log_ratios), cap)

    def _differs(self) -> np.ndarray:
        if self.engine.routes is None or self.trainer.routes is None:
            return np.zeros((1, 1))
        one, other = (np.sort(np.asarray(of.routes), -1) for of in (self.engine, self.trainer))
        return (one != other).any(-1)

    def __str__(self) -> str:
        return (
            f"log ratio per token ±{self.std:.2g}, per response ±{self.sequence_std:.2g}; "
            f"{percent(self.rerouted)} of expert choices differ"
        )
