"""Checks of the exercises on serving Llama 3 that search many layouts with a small program."""

import math
from functools import cache
from typing import Any

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models, rules, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, Slice, chips
from scalingbook_lib.units import BF16, FP8, INT8

_8B, _70B, _405B = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
_V3 = models.find("DeepSeek-V3")
_V5E = chips.V5E
_EIGHT = Cluster.of(chips.H100, 8)
_INT8: dict[str, Any] = {"weights": INT8, "kv": INT8}
_SERVER = Slice.of(_V5E, "4x4"), Layout(tp=16, kv_batch=2, **_INT8)


@cache
def _drafted(B: int = 8, free: bool = False) -> float:
    """The largest speedup over all draft lengths, at an acceptance rate of 80%."""
    whole = Layout(tp=8)

    def step_s(model: models.Transformer, T: int = 1) -> float:
        return inference.decode(model, _EIGHT, whole, batch=B, S=8192, T=T).total_s

    plain = step_s(_70B)
    cost = 0.0 if free else step_s(_8B) / plain
    return inference.best_draft(0.8, cost=cost, verify=lambda T: step_s(_70B, T) / plain).speed_up


def _slower(model: models.Transformer, B: int = 64) -> float:
    """The step of B sequences divided by the step of a single one, on eight H200s."""
    by_sequence = 8 if model.latent else 1
    layout = Layout(tp=8, kv_batch=by_sequence, weights=FP8, compute=FP8, kv=BF16)
    step_s = [
        inference.decode(model, Cluster.of(chips.H200, 8), layout, batch=n, S=4096).total_s for n in (B, 1)
    ]
    return step_s[0] / step_s[1]


@cache
def _with_links(ways: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)) -> float:
    """Lowest USD per million tokens within 15 ms on 8 x 16, over rows and heads."""
    machine, best = Slice.of(_V5E, "8x16"), math.inf
    for rows in ways:
        for heads in (1, 2, 4, 8):
            layout = Layout(tp=128, rows=rows, kv_batch=128 // heads, **_INT8)
            for B in range(1, 200):
                step = inference.decode(_405B, machine, layout, batch=B, S=8192)
                if step.total_s > 0.015:
                    break
                best = min(best, step.usd_per_million(1.2))
    return best


def _by_rule() -> float:
    cached = inference.crossover_batch(_405B, S=8192, kv=INT8).cache_bytes
    B = int(rules.batch_within(0.015, _405B.params, _V5E, 128, cache_bytes=cached, weights=INT8))
    step = rules.decode_step(_405B.params, _V5E, 128, batch=B, cache_bytes=cached, weights=INT8)
    return step.usd_per_million(1.2)


@cache
def _late_s(readers: int) -> float:
    """99th percentile of the time to the first token with this many prefill servers."""
    asked = serving.poisson(4, 1000, prompt=4096, output=serving.geometric(512), seed=8)
    policy = serving.Disaggregated(prefill=readers, decode=1, slots=48)
    return serving.simulate(asked, inference.case(_70B, *_SERVER), policy).ttft(99)


SEARCHES = (
    Check(
        key="inference_llama3.draft-speed-up",
        title="Speculative decoding for eight users",
        answer=_drafted,
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "You need three step times: the 70B model, the 8B model, and the 70B model with T = K + 1.",
            "`inference.best_draft(0.8, cost=..., verify=...)` tries every K; `verify` may be a function.",
        ),
        mistakes=(
            Mistake(lambda: _drafted(free=True), "The drafts take time too: K steps of the small model."),
            Mistake(
                lambda: _drafted(64),
                "That is the speedup for 64 users. Here there are eight.",
                slip="wrong-count",
            ),
            Mistake(lambda: _drafted(1), "That is the speedup for a single user."),
        ),
    ),
    Check(
        key="inference_llama3.experts-wake",
        title="A decode step of a mixture of experts",
        answer=lambda: _slower(_V3),
        difficulty=3,
        hints=(
            "Call `inference.decode` twice, with B = 64 and B = 1.",
            "How many of the 256 experts do 64 tokens activate, and how many does one token activate?",
        ),
        mistakes=(
            Mistake(lambda: _slower(_70B), "That is the factor for the dense 70B model."),
            Mistake(lambda: 64.0, "All of them share one step."),
            Mistake(lambda: 64 / _slower(_V3), "That is the factor by which the throughput grows."),
        ),
    ),
    Check(
        key="inference_llama3.cheapest-in-time",
        title="The cheapest layout within 15 ms, with communication",
        answer=_with_links,
        unit="USD",
        difficulty=3,
        hints=(
            "Try every sharding of the weights (rows) and of the cache (heads, and the rest by sequences).",
            (
                "For each of them, find the largest batch whose step is short enough, and its "
                "`usd_per_million(1.2)`."
            ),
        ),
        mistakes=(
            Mistake(_by_rule, "That is without the network. On 128 chips, it takes most of the step."),
            Mistake(
                lambda: _with_links((1,)), "Weights may be sharded in two dimensions: try more than one row."
            ),
        ),
    ),
    Check(
        key="inference_llama3.pools-simulated",
        title="Prefill and decode pools, simulated",
        answer=lambda: next(n for n in range(1, 20) if _late_s(n) < 1),
        unit="servers",
        difficulty=3,
        rel_tol=0.0,
        hints=(
            "By the rule, how many servers are busy all the time? With fewer, the queue grows without end.",
            (
                "Simulate a `Disaggregated` policy with one more server each time, and look at "
                "`ServingRun.ttft(99)`."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: math.ceil(4 * inference.prefill(_70B, *_SERVER, P=4096).total_s),
                "That many servers can keep up. More than one user in a hundred still waits longer than "
                "a second.",
            ),
            Mistake(
                lambda: 1.0, "One server completes fewer prompts than arrive, so its queue grows without end."
            ),
        ),
    ),
)
