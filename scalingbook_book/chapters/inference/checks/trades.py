"""Checks of harder exercises on inference: latency limit, draft length, DP attention, 2D sharding."""

from math import floor

from scalingbook_book.chapters.inference.checks.sizes import DEEPSEEK, LLAMA, V5E
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP8, INT8, DType

_CRITICAL = rules.critical_batch(V5E, weights=INT8).tokens


def _within(limit_s: float, compute: DType = BF16) -> float:
    cache = 8192 * 100e3
    found = rules.batch_within(limit_s, 30e9, V5E, 16, cache_bytes=cache, weights=INT8, compute=compute)
    return floor(found)


def _each_s() -> float:
    """Seconds to read the cache of one sequence."""
    return 8192 * 100e3 / (16 * V5E.hbm_bytes_per_s)


def _longest_draft(B: float) -> float:
    return inference.best_draft(0.8, cost=0.1, verify=lambda n: max(1.0, B * n / _CRITICAL)).draft


def _owners(weights: float = FP8.bytes, cache: float = BF16.bytes, S: int = 4096) -> float:
    attention = sum(w.params for w in DEEPSEEK.weights() if w.part == "attention")
    return attention * weights / (S * DEEPSEEK.kv_elements_per_token * cache)


def _rows(arrays: float = 3, axes: int = 2) -> float:
    """Fewest chips at which two dimensions win, with `arrays` of width F moved per MLP instead of two."""
    width = arrays / 2 * LLAMA.F
    return rules.two_dimensional_layout(LLAMA.D, width, 128, chips.V5P, columns_axes=axes).least


TRADES = (
    Check(
        key="inference.largest-batch",
        title="The largest batch within a latency limit",
        answer=lambda: _within(20e-3),
        unit="sequences",
        difficulty=3,
        rel_tol=0,
        hints=(
            "The function is one line: the cache, plus the longer of computing and reading the weights.",
            "Try batch sizes one after the other until a step takes too long.",
            "At 200 sequences, does computing or reading the weights take "
            "longer? And does the cache still fit?",
        ),
        mistakes=(
            Mistake(
                lambda: floor((20e-3 - 30e9 / (16 * V5E.hbm_bytes_per_s)) / _each_s()),
                "Above the critical batch size, computing takes longer than reading the weights.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: floor(20e-3 / _each_s()),
                "The weight matmuls take time as well, after the cache has been read.",
            ),
            Mistake(
                lambda: _within(20e-3, INT8),
                "The matmuls run in bf16, at half the rate of int8.",
                slip="wrong-rate",
            ),
            Mistake(
                lambda: _within(20e-3) + 1,
                "The answer is one less: with that many sequences the step exceeds the limit.",
                slip="rounding",
            ),
        ),
    ),
    Check(
        key="inference.best-drafts",
        title="The best draft length for 32 sequences",
        answer=lambda: _longest_draft(32),
        unit="tokens",
        difficulty=3,
        rel_tol=0,
        hints=(
            "How many tokens does a verification of K drafts for 32 "
            "sequences have? Up to how many is it free?",
            "A round yields (1 − p^(K+1)) / (1 − p) tokens, and takes K draft steps and the verification.",
            "Compute the speedup for every K from 0 to 8.",
        ),
        mistakes=(
            Mistake(
                lambda: _longest_draft(1),
                "That is best if verification is free. With 32 sequences, it is free only for short drafts.",
            ),
            Mistake(
                lambda: _longest_draft(32) - 1,
                "Almost: one more draft token lengthens the verification a little, but still pays off.",
            ),
        ),
    ),
    Check(
        key="inference.shared-latents",
        title="Tensor-parallel or data-parallel attention?",
        answer=_owners,
        unit="sequences",
        difficulty=3,
        hints=(
            "With tensor parallelism, a chip reads a share of the weights. "
            "Whose latent vectors does it read?",
            "With data parallelism, it reads all attention weights. Whose latent vectors does it read?",
            "Set both sums of bytes equal: the number of chips cancels.",
        ),
        mistakes=(
            Mistake(2.0, "Here an element of the weights takes one byte, and one of the cache takes two."),
            Mistake(1 / 16, "Each chip has a sixteenth of the sequences, but B counts all of them."),
            Mistake(16.0, "That counts all sixteen replicas of the weights, but only one of the cache."),
        ),
        right="Right: above that number of sequences, use data-parallel attention.",
    ),
    Check(
        key="inference.two-dimensions",
        title="Two-dimensional sharding of a gated MLP",
        answer=_rows,
        unit="chips",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "In one dimension, D is gathered and later scattered on all "
            "three axes. The gate changes nothing here.",
            "In two, arrays of width F are partial sums over X. Two of "
            "them are scattered, and one is gathered.",
            "Choose the X that takes the least time, and then compare.",
        ),
        mistakes=(
            Mistake(
                lambda: _rows(2),
                "With a gate, there are two hidden arrays to sum and one to gather.",
                slip="term-left-out",
            ),
            Mistake(lambda: _rows(4), "After the gate, only one hidden array remains to be gathered."),
            Mistake(lambda: _rows(axes=1), "That is for a torus of two axes, but there are three."),
            Mistake(
                lambda: _rows(2) * 81 / 72,
                "That follows from 81 instead of 72, a number that appears in some texts.",
            ),
        ),
    ),
)
