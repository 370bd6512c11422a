"""How many bytes, chips, tokens and dollars? The first exercises on serving Llama 3."""

from math import ceil

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT4, INT8

_70B, _405B = models.find("LLaMA-3 70B"), models.find("LLaMA-3 405B")
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
        title="One long context",
        answer=lambda: arithmetic.kv_cache(_405B, 32_768, BF16).nbytes,
        unit="B",
        rel_tol=0.01,
        hints=(
            "A key and a value, in each layer, for each key-value head.",
            "2 · L · K · H elements a token, two bytes each.",
        ),
        mistakes=(
            Mistake(0.5, "Keys and values, of two bytes an element: one factor of two is missing."),
            Mistake(16.0, "Eight heads are kept; the 128 query heads share them."),
            Mistake(1 / 126, "That is one layer."),
        ),
    ),
    Check(
        key="inference_llama3.smallest-slice",
        title="Slices come whole",
        answer=lambda: _slice(_held(24)),
        unit="chips",
        hints=(
            "Weights and caches in bytes, over 16 GiB.",
            "Which slices of v5e are there? 1, 4, 8, 16, and so on to 256.",
        ),
        mistakes=(
            Mistake(lambda: ceil(_held(24) / _V5E.hbm_bytes), "There is no slice of v5e with so many chips."),
            Mistake(lambda: _slice(_held(0)), "That holds the weights, and not the caches beside them."),
        ),
    ),
    Check(
        key="inference_llama3.latency-floor",
        title="The last floor",
        answer=lambda: _alone().total_s,
        unit="s",
        rel_tol=0.01,
        chips=64,
        hints=(
            "With one sequence, does the step wait for arithmetic or for the weights?",
            "One byte for each parameter, read by 64 chips at once.",
        ),
        mistakes=(
            Mistake(lambda: _alone().matmul_s, "That is arithmetic. The weights take longer."),
            Mistake(2.0, "int8 weights are one byte each."),
        ),
    ),
    Check(
        key="inference_llama3.int4-batch",
        title="Four bits on an H100",
        answer=lambda: _critical(chips.H100),
        unit="sequences",
        hints=(
            "Reading takes w · P / W, arithmetic 2 · B · P / C.",
            "Half a byte a weight; C is that of bf16, without sparsity.",
        ),
        mistakes=(
            Mistake(4.0, "A weight of four bits is half a byte, not two bytes."),
            Mistake(lambda: _critical(_V5E), "That is a v5e."),
        ),
    ),
    Check(
        key="inference_llama3.tokens-freed",
        title="What a step frees",
        answer=lambda: rules.evicted(48, 4096, 1024)[1],
        unit="tokens",
        rel_tol=0.01,
        hints=(
            "How many of 48 sequences end in a step, if each stays for 1,024?",
            "What does one leave behind: its answer, or more?",
        ),
        mistakes=(
            Mistake(lambda: 48 * 4096 / 1024, "Answers are in the cache too, and are freed."),
            Mistake(lambda: 48.0, "A step generates so many. Prompts come in, and go, besides."),
            Mistake(
                lambda: 4096 + 1024, "That is what one sequence leaves; far less than one ends in a step."
            ),
        ),
        right="Right, and as many come in: one token for each sequence, and the prompts of the new ones.",
    ),
    Check(
        key="inference_llama3.price-of-memory",
        title="The better of two GPUs",
        answer=lambda: _even(chips.H200.hbm_bytes_per_s / chips.H100.hbm_bytes_per_s),
        unit="USD",
        rel_tol=0.01,
        hints=(
            "What does decoding with long contexts wait for?",
            "At the price you look for, a dollar reads as many bytes with either.",
        ),
        mistakes=(
            Mistake(lambda: _even(1.0), "They multiply equally fast. Here reading counts."),
            Mistake(
                lambda: _even(chips.H200.hbm_bytes / chips.H100.hbm_bytes),
                "That is for what they hold. A step waits for what it reads.",
            ),
        ),
    ),
)
