"""Checks of the exercises on the decode step of Llama 3: its time, and the sequences that share it."""

from collections.abc import Callable
from functools import cache
from math import ceil, log2, prod

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT4, INT8

_8B, _70B, _405B = (models.find(f"Llama 3 {size}") for size in ("8B", "70B", "405B"))
_V5E, _V5P = chips.V5E, chips.V5P


def _small(n: int = 4) -> rules.DecodeStep:
    cached = arithmetic.kv_cache(_8B, 2048, INT8).nbytes
    return rules.decode_step(_8B.params, _V5E, n, batch=240, cache_bytes=cached, weights=INT8)


def _mixed(n: int, weights=INT4, kv=INT8) -> rules.DecodeStep:
    cached = arithmetic.kv_cache(_70B, 8192, kv).nbytes
    B = int((n * _V5E.hbm_bytes - _70B.params * weights.bytes) // cached)
    return rules.decode_step(_70B.params, _V5E, n, batch=B, cache_bytes=cached, weights=weights)


def _gain(**types) -> float:
    return _mixed(8, **types).tokens_per_s / _mixed(4, **types).tokens_per_s / 2


_CACHED = arithmetic.kv_cache(_405B, 4096, INT8).nbytes
_ONE = rules.decode_step(_405B.params, _V5E, 64, batch=1, cache_bytes=_CACHED, weights=INT8)


def _within() -> int:
    return int(rules.batch_within(0.015, _405B.params, _V5E, 64, cache_bytes=_CACHED, weights=INT8))


def _prompt_s(pairs: float = 0.5, mfu: float = 0.4) -> float:
    """32,768 tokens; `pairs` of all pairs of tokens are computed."""
    scores = 4 * _70B.L * _70B.N * _70B.H * 32_768**2 * pairs
    return (2 * _70B.params * 32_768 + scores) / (16 * _V5E.bf16_flops_per_s * mfu)


_NODE = rules.decode_step(
    _70B.params, chips.H100, 8, batch=64, cache_bytes=arithmetic.kv_cache(_70B, 8192, BF16).nbytes
)
_MEMORIES = tuple(n * 1e12 for n in (1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 20))


@cache
def _ordered(rounded: Callable[[int], int]) -> int:
    return sum(rounded(ceil(nbytes / _V5P.hbm_bytes)) for nbytes in _MEMORIES)


def _legal(n: int) -> int:
    return min(size for shape in _V5P.topology().shapes() if (size := prod(shape)) >= n)


def _sequences(n: int, S: int) -> int:
    """Sequences that fit on a slice; negative if not even the weights fit."""
    room = n * _V5E.hbm_bytes - _70B.params
    return int(room // arithmetic.kv_cache(_70B, S, INT8).nbytes)


def _all_batches(read: Callable[[int], int] = lambda B: max(B, 0)) -> int:
    return sum(read(_sequences(n, 2**k)) for n in (4, 8, 16, 32) for k in range(9, 18))


STEPS = (
    Check(
        key="inference_llama3.small-model-step",
        title="A decode step of the 8B model with 240 users",
        answer=lambda: _small().total_s,
        unit="s",
        difficulty=2,
        hints=(
            "Weights and cache together decide the slice. There is no slice of three chips.",
            (
                "Add the time to read the cache and the longer of computing and reading the weights. "
                "Which one is longer at 240 sequences?"
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _small().kv_s + _small().weights_s,
                "With int8 weights, 240 sequences are above the critical batch size: computing takes longer.",
            ),
            Mistake(
                lambda: _small().total_s + _small().weights_s,
                "Reading the weights and computing overlap: only the longer of the two counts.",
            ),
            Mistake(lambda: _small(3).total_s, "There is no slice of three v5e chips."),
            Mistake(lambda: _small().kv_s, "That is only the time to read the cache."),
        ),
    ),
    Check(
        key="inference_llama3.int4-per-chip",
        title="int4 weights with an int8 cache",
        answer=lambda: _gain(),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many whole sequences fit on each slice?",
            (
                "Each chip generates B / (T · n) tokens per second. Check for each slice which side "
                "of the maximum is longer."
            ),
        ),
        mistakes=(
            Mistake(lambda: _gain(kv=INT4), "The cache is int8 here, not int4."),
            Mistake(
                lambda: _mixed(8).batch / _mixed(4).batch / 2,
                "That is the ratio of the batch sizes per chip, but the step is longer too.",
            ),
            Mistake(
                lambda: 2 * _gain(), "That is the ratio for whole slices. The question is about each chip."
            ),
        ),
    ),
    Check(
        key="inference_llama3.batch-in-time",
        title="The largest batch within 15 ms, by the rule",
        answer=_within,
        unit="sequences",
        difficulty=2,
        rel_tol=0.005,
        hints=(
            (
                "Each sequence adds the time to read its cache. Above the critical batch size, it "
                "adds compute time too."
            ),
            "Assume that computing takes longer; then check whether the batch is above the critical one.",
        ),
        mistakes=(
            Mistake(
                lambda: (0.015 - _ONE.weights_s) / _ONE.kv_s,
                "At that batch size, computing takes longer than reading the weights.",
            ),
            Mistake(
                lambda: (0.015 - _ONE.weights_s) / (_ONE.kv_s + _ONE.matmul_s),
                "Computing and reading the weights overlap: only the longer one counts.",
            ),
            Mistake(lambda: 0.015 / _ONE.matmul_s, "The cache has to be read as well."),
        ),
    ),
    Check(
        key="inference_llama3.prefill-time",
        title="Prefill of a long prompt",
        answer=_prompt_s,
        unit="s",
        difficulty=2,
        hints=(
            "The weight matmuls take 2 · P FLOPs per token, and at this length attention matters too.",
            "QKᵀ and PV take 4 · L · N · H FLOPs per pair of tokens; a causal mask leaves half of the pairs.",
        ),
        mistakes=(
            Mistake(lambda: _prompt_s(0), "That is without attention, which is a quarter of the total here."),
            Mistake(lambda: _prompt_s(1), "A causal mask leaves only half of the pairs."),
            Mistake(0.4, "That is the time at the peak rate; the chips reach 40% of it."),
        ),
    ),
    Check(
        key="inference_llama3.tokens-per-user",
        title="Tokens per second per user on eight GPUs",
        answer=lambda: 1 / _NODE.total_s,
        unit="tokens/s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Every user gets one token per step. How long does a step take?",
            "Divide the bytes of the weights and of 64 caches by the bandwidth of eight GPUs.",
        ),
        mistakes=(
            Mistake(64.0, "That is the rate for all users together."),
            Mistake(lambda: 1 / _NODE.weights_s, "The caches have to be read too."),
            Mistake(lambda: 1 / _NODE.kv_s, "The weights have to be read too."),
            Mistake(
                lambda: 1 / (_NODE.kv_s + _NODE.weights_s + _NODE.matmul_s),
                "Computing overlaps with reading the weights, which takes longer.",
            ),
        ),
    ),
    Check(
        key="inference_llama3.slices-that-exist",
        title="The smallest slice that exists",
        answer=lambda: _ordered(_legal),
        unit="chips",
        difficulty=2,
        rel_tol=0.0,
        hints=(
            "`chips.V5P.topology().shapes()` yields every slice of v5p that exists.",
            (
                "For each size, find the fewest chips that hold it, then the smallest slice with at "
                "least as many."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _ordered(lambda n: 2 ** ceil(log2(n))),
                (
                    "Those are powers of two. Between 128 and 256 chips, v5p has a slice whose size "
                    "is not a power of two."
                ),
            ),
            Mistake(
                lambda: _ordered(lambda n: n),
                "That is the number of chips needed. Which slices have at least that many?",
            ),
            Mistake(lambda: _ordered(lambda n: -(-n // 4) * 4), "Rounding up to whole hosts is not enough."),
        ),
    ),
    Check(
        key="inference_llama3.largest-batches",
        title="The largest batch on every slice",
        answer=_all_batches,
        unit="sequences",
        difficulty=2,
        rel_tol=0.0,
        hints=(
            "Take the memory that the weights leave, divide by the cache of a sequence, and round down.",
            "Check the 2 × 2 separately.",
        ),
        mistakes=(
            Mistake(lambda: _all_batches(lambda B: B), "If the weights do not fit, the batch is zero."),
            Mistake(
                # the largest of 1, 5, 9, ... up to B
                lambda: _all_batches(lambda B: (B - 1) // 4 * 4 + 1 if B > 0 else 0),
                "A search in steps of four misses the largest batch.",
            ),
        ),
    ),
)
