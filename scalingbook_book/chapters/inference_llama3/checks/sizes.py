"""Checks of the first exercises on serving Llama 3: bytes, chips, tokens and dollars."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT4, INT8

_70B, _405B = models.find("Llama 3 70B"), models.find("Llama 3.1 405B")
_V5E = chips.V5E
_LEGAL = (1, 4, 8, 16, 32, 64, 128, 256)


def _held(sequences: int) -> float:
    return _405B.params + sequences * arithmetic.kv_cache(_405B, 32_768, INT8).nbytes


def _slice(nbytes: float) -> int:
    return next(n for n in _LEGAL if n * _V5E.hbm_bytes >= nbytes)


def _alone() -> rules.DecodeStep:
    return rules.decode_step(_405B.params, _V5E, 64, batch=1, cache_bytes=0, weights=INT8)


def _critical(chip: Chip) -> float:
    return rules.critical_batch(chip, weights=INT4, compute=BF16).tokens


def _even(gained: float) -> float:
    """The price of an H200 at which a dollar buys no more of it than of an H100."""
    return (chips.H100.usd_per_hour or 0) * gained


SIZES = (
    Check(
        key="inference_llama3.long-context-cache",
        title="The KV cache of one long context",
        answer=lambda: arithmetic.kv_cache(_405B, 32_768, BF16).nbytes,
        unit="B",
        rel_tol=0.01,
        hints=(
            "Each token has a key and a value in each layer, for each key-value head.",
            "That is 2 · L · K · H elements per token, of two bytes each.",
        ),
        mistakes=(
            Mistake(
                0.5,
                "There are keys and values, and an element takes two bytes: one factor of two is missing.",
            ),
            Mistake(16.0, "Eight heads are cached; the 128 query heads share them."),
            Mistake(1 / 126, "That is the cache of a single layer."),
        ),
    ),
    Check(
        key="inference_llama3.smallest-slice",
        title="The smallest slice for Llama 3.1 405B",
        answer=lambda: _slice(_held(24)),
        unit="chips",
        hints=(
            "Add up the bytes of the weights and the caches, and divide by 16 GiB.",
            "A slice of v5e has 1, 4, 8, 16, ... or 256 chips.",
        ),
        mistakes=(
            Mistake(
                lambda: ceil(_held(24) / _V5E.hbm_bytes),
                "There is no slice of v5e with this number of chips.",
            ),
            Mistake(
                lambda: _slice(_held(0)), "That slice holds the weights, but not the caches in addition."
            ),
        ),
    ),
    Check(
        key="inference_llama3.latency-floor",
        title="The latency floor of a single user",
        answer=lambda: _alone().total_s,
        unit="s",
        rel_tol=0.01,
        chips=64,
        hints=(
            "With one sequence, which takes longer: computing or reading the weights?",
            "Each parameter is one byte, and 64 chips read at the same time.",
        ),
        mistakes=(
            Mistake(lambda: _alone().matmul_s, "That is the compute time. Reading the weights takes longer."),
            Mistake(2.0, "An int8 weight takes one byte."),
        ),
    ),
    Check(
        key="inference_llama3.int4-batch",
        title="The critical batch of int4 weights on an H100",
        answer=lambda: _critical(chips.H100),
        unit="sequences",
        hints=(
            "Reading the weights takes w · P / W, and computing takes 2 · B · P / C.",
            "A weight takes half a byte; C is the rate in bf16, without sparsity.",
        ),
        mistakes=(
            Mistake(4.0, "A four-bit weight takes half a byte, not two bytes."),
            Mistake(lambda: _critical(_V5E), "That is the critical batch of a v5e."),
        ),
    ),
    Check(
        key="inference_llama3.tokens-freed",
        title="Cache freed per decode step",
        answer=lambda: rules.evicted(48, 4096, 1024)[1],
        unit="tokens",
        rel_tol=0.01,
        hints=(
            "How many of the 48 sequences end per step, if each of them stays for 1,024 steps?",
            "Does a sequence that ends free only the cache of its answer, or more?",
        ),
        mistakes=(
            Mistake(lambda: 48 * 4096 / 1024, "Answers are in the cache too, and they are freed as well."),
            Mistake(
                lambda: 48.0,
                (
                    "That is how many tokens a step generates. The tokens of prompts enter and "
                    "leave the cache as well."
                ),
            ),
            Mistake(
                lambda: 4096 + 1024,
                "That is what one sequence frees; far less than one sequence ends per step.",
            ),
        ),
        right=(
            "Right, and the same number of tokens is written: one for each sequence, and the prompts of "
            "the new sequences."
        ),
    ),
    Check(
        key="inference_llama3.price-of-memory",
        title="H100 or H200?",
        answer=lambda: _even(chips.H200.hbm_bytes_per_s / chips.H100.hbm_bytes_per_s),
        unit="USD",
        rel_tol=0.01,
        hints=(
            "What is the bottleneck of decoding with long contexts?",
            "At the price you are looking for, a dollar reads the same number of bytes on either GPU.",
        ),
        mistakes=(
            Mistake(
                lambda: _even(1.0),
                "The two GPUs have the same compute rate, but here all the time goes to reading caches.",
            ),
            Mistake(
                lambda: _even(chips.H200.hbm_bytes / chips.H100.hbm_bytes),
                "That compares their memory capacity. A decode step is limited by memory bandwidth.",
            ),
        ),
    ),
)
