"""Speculative decoding: a draft model proposes tokens, and the target model verifies them in one step.

The draft proposes K tokens one after the other. The target computes their logits in one step, accepts as many
as `accepted` allows, and adds one token of its own. With `temperature=0` every token is the target's most
likely one; with another temperature, every token has exactly the target's distribution (Leviathan et al.,
arXiv 2211.17192, algorithm 1). Chapter: Inference.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from scalingbook_lab.serve import decode
from scalingbook_lab.serve.decoder import DecoderPlacement
from scalingbook_lab.serve.layout import Config
from scalingbook_lib.units import Result, percent

type State = dict[str, Any]  # two caches, their length, the last two tokens, the random key


@dataclass(frozen=True, slots=True)
class Generation(Result):
    """The generated tokens[B, G], and the number of draft tokens that each sequence accepted in each round.

    A round in which a sequence had nothing left to generate counts as -1.
    """

    tokens: np.ndarray = field(repr=False)
    accepted: np.ndarray = field(repr=False)
    K: int

    @property
    def rounds(self) -> int:
        """The number of target steps, summed over sequences."""
        return int((self.accepted >= 0).sum())

    @property
    def per_round(self) -> float:
        """Tokens per target step: the accepted draft tokens plus one of the target's own."""
        return float(self.accepted[self.accepted >= 0].mean() + 1)

    @property
    def acceptance(self) -> float:
        """The acceptance rate: accepted tokens divided by verified tokens (up to the first rejected one)."""
        accepted = self.accepted[self.accepted >= 0]
        return float(accepted.sum() / np.minimum(accepted + 1, self.K).sum())

    def __str__(self) -> str:
        return (
            f"{self.tokens.size:,} tokens in {self.rounds:,} steps of the target, {self.per_round:.2f} each; "
            f"{percent(self.acceptance)} of the verified drafts accepted (K = {self.K})"
        )


def accepted(key: jax.Array, q: jax.Array, r: jax.Array, drafted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the number of accepted tokens of drafted[B, K], and the next token, distributed as in q[B, K+1,
    V].

    Token i, drawn from r[B, K, V], is accepted with probability min(1, q/r). The first rejected one is
    replaced by a draw from max(0, q - r), normalized; if all K are accepted, the next token is drawn from q
    itself.
    """
    # Leviathan et al., algorithm 1. cumprod: every token after a rejected one is rejected too. `categorical`
    # normalizes max(0, q - r) itself, and never draws a token with log 0 = -inf.
    keys = jax.random.split(key)
    each = drafted[..., None]
    ratio = (jnp.take_along_axis(q[:, :-1], each, 2) / jnp.take_along_axis(r, each, 2))[..., 0]
    counts = jnp.cumprod(jax.random.uniform(keys[0], ratio.shape) < ratio, -1).sum(-1)
    residual = jnp.concatenate([jnp.maximum(q[:, :-1] - r, 0), q[:, -1:]], 1)
    distribution = jnp.take_along_axis(residual, counts[:, None, None], 1)[:, 0]
    return counts, jax.random.categorical(keys[1], jnp.log(distribution))


def matched(logits: jax.Array, drafted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Accept drafts as long as they are the target's most likely token (temperature 0)."""
    best = logits.argmax(-1)
    counts = jnp.cumprod(best[:, :-1] == drafted, -1).sum(-1)
    return counts, jnp.take_along_axis(best, counts[:, None], 1)[:, 0]


@dataclass(frozen=True)
class Pair(Result):
    """A target and a draft model, each on its mesh with its cache, K tokens per round, and a temperature.

    Raises ValueError if their vocabularies differ, or if K is less than 1.
    """

    target: Config
    draft: Config
    K: int = 4
    temperature: float = 0.0

    def __post_init__(self) -> None:
        target_vocabulary, draft_vocabulary = self.target.model.V, self.draft.model.V
        if target_vocabulary != draft_vocabulary:
            sizes = f"{target_vocabulary} tokens and the draft's {draft_vocabulary}"
            raise ValueError(f"the target's vocabulary has {sizes}; give both the same")
        if self.K < 1:
            raise ValueError(f"K={self.K}: give the number of tokens drafted per round, at least 1")

    def generate(self, target: Any, draft: Any, prompts: Any, G: int, *, seed: int = 0) -> Generation:
        """Generate G tokens after each of prompts[B, P], with the weights of both models (`Config.params`).

        Raises ValueError if a cache is too short.
        """
        prompts = jnp.asarray(prompts, jnp.int32)
        needed = prompts.shape[1] + G + self.K
        for config in (self.target, self.draft):
            if config.tokens < needed:
                capacity_note = (
                    f"the cache has room for {config.tokens} tokens of a sequence, and {needed} are needed"
                )
                raise ValueError(f"{capacity_note}, a round past the end included; give Config more tokens")
        state = self._begin(target, draft, prompts, seed)
        outputs: list[list[int]] = [[] for _ in prompts]
        rounds = []
        # sequences advance at different rates: a finished one waits, counted as -1, until the slowest is done
        while (unfinished := np.array([len(output) < G for output in outputs])).any():
            state, tokens, counts = self._round(target, draft, state, jnp.asarray(unfinished))
            rounds.append(np.where(unfinished, counts, -1))
            for output, row, n, active in zip(
                outputs, np.asarray(tokens), np.asarray(counts), unfinished, strict=True
            ):
                output.extend(row[: n + 1] if active else ())
        return Generation(np.array([output[:G] for output in outputs]), np.array(rounds), self.K)

    def _begin(self, target: Any, draft: Any, prompts: jax.Array, seed: int) -> State:
        """Prefill both caches with all of the prompt except its last token."""
        B, P = prompts.shape
        caches = {}
        for name, config, params in (("target", self.target, target), ("draft", self.draft, draft)):
            cache = config.cache()
            read = jax.jit(lambda w, tokens, cache, c=config: decode.prefill(w, c, tokens, cache)[1])
            caches[name] = read(params, prompts[:, :-1], cache) if P > 1 else cache
        length, none = jnp.full(B, P - 1, jnp.int32), jnp.zeros((2, B), jnp.int32)
        last = {"behind": none[0], "last": prompts[:, -1], "before": none[1]}
        return caches | last | {"length": length, "key": jax.random.key(seed)}

    @functools.cached_property
    def _round(self) -> Any:
        return jax.jit(self.round, donate_argnums=2)

    def round(
        self, target: Any, draft: Any, state: State, active: jax.Array
    ) -> tuple[State, jax.Array, jax.Array]:
        """Run a round for the `active` sequences.

        Returns the next state, tokens[B, K+1], and the number of accepted drafts.
        """
        key, draft_key, verify_key = jax.random.split(state["key"], 3)
        drafted, r, cache = self._draft(draft, state, active, draft_key)
        fed = jnp.concatenate([state["last"][:, None], drafted], 1)
        count = jnp.where(active, self.K + 1, 0)
        logits, target_cache = decode.extend(
            target, self.target, fed, state["target"], DecoderPlacement(state["length"], count), every=True
        )
        counts, own = self._verify(verify_key, logits, r, drafted)
        positions = jnp.arange(
            self.K + 1
        )  # the target's own token replaces the first draft token that is not accepted
        tokens = jnp.where(positions == counts[:, None], own[:, None], jnp.pad(drafted, ((0, 0), (0, 1))))
        all_accepted = counts == self.K  # in that case the draft has not cached its own last token
        step = jnp.where(active, counts + 1, 0)
        after = {
            "target": target_cache,
            "draft": cache,
            "length": state["length"] + step,
            "key": key,
            "behind": jnp.where(active, all_accepted, state["behind"]).astype(jnp.int32),
            "last": jnp.where(active, own, state["last"]),
            "before": jnp.where(active, drafted[:, -1], state["before"]),
        }
        return after, tokens, counts

    def _draft(
        self, params: Any, state: State, active: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        """Draft K tokens and return them with their logits.

        The draft first processes the one or two tokens that it has not cached yet.
        """
        behind = state["behind"]
        earlier = jnp.where(behind == 1, state["before"], state["last"])
        pair = jnp.stack([earlier, state["last"]], 1)
        read = jnp.where(active, behind + 1, 0)
        keys = jax.random.split(key, self.K)
        start = state["length"] - behind
        logits, cache = decode.extend(params, self.draft, pair, state["draft"], DecoderPlacement(start, read))
        first = self._sample(keys[0], logits)

        def one(carry: tuple, key: jax.Array) -> tuple[tuple, tuple]:
            token, cache, length = carry
            where = DecoderPlacement(length, active.astype(jnp.int32))
            logits, cache = decode.extend(params, self.draft, token[:, None], cache, where)
            sampled = self._sample(key, logits)
            return (sampled, cache, length + 1), (sampled, logits)

        (_, cache, _), (tokens, residual) = lax.scan(one, (first, cache, state["length"] + 1), keys[1:])
        drafted = jnp.concatenate([first[None], tokens]).swapaxes(0, 1)
        return drafted, jnp.concatenate([logits[None], residual]).swapaxes(0, 1), cache

    def _sample(self, key: jax.Array, logits: jax.Array) -> jax.Array:
        """Sample a token for each row of logits."""
        if self.temperature == 0:
            return logits.argmax(-1).astype(jnp.int32)
        return jax.random.categorical(key, logits / self.temperature).astype(jnp.int32)

    def _verify(
        self, key: jax.Array, logits: jax.Array, r: jax.Array, drafted: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the number of accepted drafts and the target's own token, for each sequence."""
        if self.temperature == 0:
            counts, own = matched(logits, drafted)
        else:
            q, r = (jax.nn.softmax(x / self.temperature) for x in (logits, r))
            counts, own = accepted(key, q, r, drafted)
        return counts, own.astype(jnp.int32)

    def __str__(self) -> str:
        distribution = f"temperature {self.temperature:g}" if self.temperature else "greedy"
        return f"{self.draft.model.name} drafts {self.K} tokens for {self.target.model.name}, {distribution}"


def plain(
    config: Config,
    params: Mapping[str, Any],
    prompts: Any,
    G: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Generate G tokens after each of prompts[B, P], one per step, as the reference for a pair."""
    prompts = jnp.asarray(prompts, jnp.int32)
    B, P = prompts.shape

    @jax.jit
    def run(params: Any, cache: Any) -> jax.Array:
        logits, cache = decode.prefill(params, config, prompts, cache)

        def one(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
            logits, cache, lengths = carry
            sampled = (
                logits.argmax(-1) if temperature == 0 else jax.random.categorical(key, logits / temperature)
            )
            logits, cache = decode.decode(params, config, sampled.astype(jnp.int32), cache, lengths)
            return (logits, cache, lengths + 1), sampled

        keys = jax.random.split(jax.random.key(seed), G)
        return lax.scan(one, (logits, cache, jnp.full(B, P, jnp.int32)), keys)[1].T

    return np.asarray(run(params, config.cache()))
