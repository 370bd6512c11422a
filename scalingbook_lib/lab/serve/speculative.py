"""How does a small model make a large one write faster, and write exactly what it would have written?

A draft model proposes K tokens one after the other; the target reads them all in one step and keeps as many
as `accepted` lets it, then adds one of its own. With `temperature=0` every token is the target's most likely
one; with another, every token has exactly the target's law (Leviathan et al., arXiv 2211.17192, algorithm 1).
Chapter: Inference.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from scalingbook_lib.lab.serve import decode
from scalingbook_lib.lab.serve.decoder import Where
from scalingbook_lib.lab.serve.layout import Config
from scalingbook_lib.units import Result, percent

type State = dict[str, Any]  # two caches, their length, the last two tokens, the key


@dataclass(frozen=True, slots=True)
class Written(Result):
    """tokens[B, G] as they were written, and of each round how many drafted tokens each sequence kept.

    A round in which a sequence had nothing left to write counts -1.
    """

    tokens: np.ndarray = field(repr=False)
    kept: np.ndarray = field(repr=False)
    K: int

    @property
    def rounds(self) -> int:
        """Steps of the target for all sequences."""
        return int((self.kept >= 0).sum())

    @property
    def per_round(self) -> float:
        """Tokens that one step of the target writes: what it kept, and one of its own."""
        return float(self.kept[self.kept >= 0].mean() + 1)

    @property
    def acceptance(self) -> float:
        """Of the drafted tokens that were judged (all up to the first refused one), the share kept."""
        kept = self.kept[self.kept >= 0]
        return float(kept.sum() / np.minimum(kept + 1, self.K).sum())

    def __str__(self) -> str:
        return (
            f"{self.tokens.size:,} tokens in {self.rounds:,} steps of the target, {self.per_round:.2f} each; "
            f"{percent(self.acceptance)} of the judged drafts kept (K = {self.K})"
        )


def accepted(key: jax.Array, q: jax.Array, r: jax.Array, drafted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How many of drafted[B, K] are kept, and the token after them, distributed as q[B, K+1, V] says.

    Token i, drawn from r[B, K, V], is kept with probability min(1, q/r). The first that is not is replaced by
    a draw from what q has more than r, max(0, q - r); after K kept ones comes a draw from q itself.
    """
    # Leviathan et al., algorithm 1. cumprod: a token behind a refused one is refused too. What is drawn after
    # them is max(0, q - r), which `categorical` normalises by itself; log 0 = -inf is never drawn.
    keys = jax.random.split(key)
    each = drafted[..., None]
    ratio = (jnp.take_along_axis(q[:, :-1], each, 2) / jnp.take_along_axis(r, each, 2))[..., 0]
    kept = jnp.cumprod(jax.random.uniform(keys[0], ratio.shape) < ratio, -1).sum(-1)
    rest = jnp.concatenate([jnp.maximum(q[:, :-1] - r, 0), q[:, -1:]], 1)
    law = jnp.take_along_axis(rest, kept[:, None, None], 1)[:, 0]
    return kept, jax.random.categorical(keys[1], jnp.log(law))


def matched(logits: jax.Array, drafted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same at temperature 0: drafts are kept while they are the target's most likely token."""
    best = logits.argmax(-1)
    kept = jnp.cumprod(best[:, :-1] == drafted, -1).sum(-1)
    return kept, jnp.take_along_axis(best, kept[:, None], 1)[:, 0]


@dataclass(frozen=True)
class Pair(Result):
    """A target and a draft model, each on its mesh with its cache, K tokens a round, and a temperature."""

    target: Config
    draft: Config
    K: int = 4
    temperature: float = 0.0

    def __post_init__(self) -> None:
        mine, its = self.target.model.V, self.draft.model.V
        if mine != its:
            raise ValueError(f"the target has {mine} words and the draft {its}; give both the same")
        if self.K < 1:
            raise ValueError(f"K={self.K}: write how many tokens are drafted in a round, at least 1")

    def write(self, target: Any, draft: Any, prompts: Any, G: int, *, seed: int = 0) -> Written:
        """G tokens after each of prompts[B, P], with the weights of both (`Config.params`)."""
        prompts = jnp.asarray(prompts, jnp.int32)
        longest = prompts.shape[1] + G + self.K
        for config in (self.target, self.draft):
            if config.tokens < longest:
                room = (
                    f"the cache has room for {config.tokens} tokens of a sequence, and {longest} are needed"
                )
                raise ValueError(f"{room}, a round past the end included; give Config more tokens")
        state = self._begin(target, draft, prompts, seed)
        lines: list[list[int]] = [[] for _ in prompts]
        told = []
        # sequences get ahead of each other: who is done waits, written as -1, until the slowest is done
        while (open_ := np.array([len(line) < G for line in lines])).any():
            state, tokens, kept = self._round(target, draft, state, jnp.asarray(open_))
            told.append(np.where(open_, kept, -1))
            for line, row, n, on in zip(lines, np.asarray(tokens), np.asarray(kept), open_, strict=True):
                line.extend(row[: n + 1] if on else ())
        return Written(np.array([line[:G] for line in lines]), np.array(told), self.K)

    def _begin(self, target: Any, draft: Any, prompts: jax.Array, seed: int) -> State:
        """Both caches have all of the prompt but its last token."""
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
        self, target: Any, draft: Any, state: State, on: jax.Array
    ) -> tuple[State, jax.Array, jax.Array]:
        """A round of the sequences that are `on`: the next state, tokens[B, K+1], how many drafts count."""
        key, guess, judge = jax.random.split(state["key"], 3)
        drafted, r, cache = self._drafted(draft, state, on, guess)
        fed = jnp.concatenate([state["last"][:, None], drafted], 1)
        count = jnp.where(on, self.K + 1, 0)
        logits, kept_cache = decode.extend(
            target, self.target, fed, state["target"], Where(state["length"], count), every=True
        )
        kept, own = self._judged(judge, logits, r, drafted)
        places = jnp.arange(
            self.K + 1
        )  # the first draft that is not kept gives way to the target's own token
        tokens = jnp.where(places == kept[:, None], own[:, None], jnp.pad(drafted, ((0, 0), (0, 1))))
        all_kept = kept == self.K  # then the draft has not read its own last token
        step = jnp.where(on, kept + 1, 0)
        after = {
            "target": kept_cache,
            "draft": cache,
            "length": state["length"] + step,
            "key": key,
            "behind": jnp.where(on, all_kept, state["behind"]).astype(jnp.int32),
            "last": jnp.where(on, own, state["last"]),
            "before": jnp.where(on, drafted[:, -1], state["before"]),
        }
        return after, tokens, kept

    def _drafted(
        self, params: Any, state: State, on: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        """K tokens of the draft with its logits: first it reads the one or two that it has not read yet."""
        behind = state["behind"]
        earlier = jnp.where(behind == 1, state["before"], state["last"])
        pair = jnp.stack([earlier, state["last"]], 1)
        read = jnp.where(on, behind + 1, 0)
        keys = jax.random.split(key, self.K)
        start = state["length"] - behind
        logits, cache = decode.extend(params, self.draft, pair, state["draft"], Where(start, read))
        first = self._drawn(keys[0], logits)

        def one(carry: tuple, key: jax.Array) -> tuple[tuple, tuple]:
            token, cache, length = carry
            where = Where(length, on.astype(jnp.int32))
            logits, cache = decode.extend(params, self.draft, token[:, None], cache, where)
            drawn = self._drawn(key, logits)
            return (drawn, cache, length + 1), (drawn, logits)

        (_, cache, _), (tokens, rest) = lax.scan(one, (first, cache, state["length"] + 1), keys[1:])
        drafted = jnp.concatenate([first[None], tokens]).swapaxes(0, 1)
        return drafted, jnp.concatenate([logits[None], rest]).swapaxes(0, 1), cache

    def _drawn(self, key: jax.Array, logits: jax.Array) -> jax.Array:
        if self.temperature == 0:
            return logits.argmax(-1).astype(jnp.int32)
        return jax.random.categorical(key, logits / self.temperature).astype(jnp.int32)

    def _judged(
        self, key: jax.Array, logits: jax.Array, r: jax.Array, drafted: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        if self.temperature == 0:
            kept, own = matched(logits, drafted)
        else:
            q, r = (jax.nn.softmax(x / self.temperature) for x in (logits, r))
            kept, own = accepted(key, q, r, drafted)
        return kept, own.astype(jnp.int32)

    def __str__(self) -> str:
        law = f"temperature {self.temperature:g}" if self.temperature else "greedy"
        return f"{self.draft.model.name} drafts {self.K} tokens for {self.target.model.name}, {law}"


def plain(
    config: Config,
    params: Mapping[str, Any],
    prompts: Any,
    G: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """G tokens after each of prompts[B, P], one a step: what a pair must write too."""
    prompts = jnp.asarray(prompts, jnp.int32)
    B, P = prompts.shape

    @jax.jit
    def run(params: Any, cache: Any) -> jax.Array:
        logits, cache = decode.prefill(params, config, prompts, cache)

        def one(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
            logits, cache, lengths = carry
            drawn = (
                logits.argmax(-1) if temperature == 0 else jax.random.categorical(key, logits / temperature)
            )
            logits, cache = decode.decode(params, config, drawn.astype(jnp.int32), cache, lengths)
            return (logits, cache, lengths + 1), drawn

        keys = jax.random.split(jax.random.key(seed), G)
        return lax.scan(one, (logits, cache, jnp.full(B, P, jnp.int32)), keys)[1].T

    return np.asarray(run(params, config.cache()))
