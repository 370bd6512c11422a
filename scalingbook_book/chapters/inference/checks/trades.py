"""Can a reader weigh one way of serving against another? Checks of harder exercises on inference."""

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
    """The cache of one sequence."""
    return 8192 * 100e3 / (16 * V5E.hbm_bytes_per_s)


def _longest_draft(B: float) -> float:
    return inference.best_draft(0.8, cost=0.1, verify=lambda n: max(1.0, B * n / _CRITICAL)).draft


def _owners(weights: float = FP8.bytes, cache: float = BF16.bytes, S: int = 4096) -> float:
    attention = sum(w.params for w in DEEPSEEK.weights() if w.part == "attention")
    return attention * weights / (S * DEEPSEEK.kv_elements_per_token * cache)


def _rows(arrays: float = 3, axes: int = 2) -> float:
    """Where two dimensions win, with `arrays` of width F moved in each MLP instead of two."""
    width = arrays / 2 * LLAMA.F
    return rules.two_dimensional_layout(LLAMA.D, width, 128, chips.V5P, columns_axes=axes).least


TRADES = (
    Check(
        key="inference.largest-batch",
        title="The step, as a function",
        answer=lambda: _within(20e-3),
        unit="sequences",
        difficulty=3,
        rel_tol=0,
        hints=(
            "The function is one line: the cache, then the longer of arithmetic and weights.",
            "Try batches one after the other until a step is too long.",
            "Which side of the products is longer at 200 sequences? And does the cache still fit?",
        ),
        mistakes=(
            Mistake(
                lambda: floor((20e-3 - 30e9 / (16 * V5E.hbm_bytes_per_s)) / _each_s()),
                "Beyond the critical batch the arithmetic is longer than the weights' reading.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: floor(20e-3 / _each_s()), "The products take time, too, after the cache is read."
            ),
            Mistake(
                lambda: _within(20e-3, INT8),
                "The multiplication runs in bf16, at half the rate of int8.",
                slip="wrong-rate",
            ),
            Mistake(
                lambda: _within(20e-3) + 1,
                "One less: with that many the step is over the limit.",
                slip="rounding",
            ),
        ),
    ),
    Check(
        key="inference.best-drafts",
        title="Drafts for 32 at once",
        answer=lambda: _longest_draft(32),
        unit="tokens",
        difficulty=3,
        rel_tol=0,
        hints=(
            "How many tokens has a check of K drafts for all 32 sequences? Up to which number is it free?",
            "Tokens of a round are (1 − p^(K+1)) / (1 − p); a round takes K drafts and the check.",
            "Compute the speed-up for every K from 0 to 8.",
        ),
        mistakes=(
            Mistake(
                lambda: _longest_draft(1),
                "That is best while checking is free. With 32 sequences it soon is not.",
            ),
            Mistake(
                lambda: _longest_draft(32) - 1,
                "Near. One more draft makes the check a little longer, and pays for it.",
            ),
        ),
    ),
    Check(
        key="inference.shared-latents",
        title="Copies of weights or copies of the cache",
        answer=_owners,
        unit="sequences",
        difficulty=3,
        hints=(
            "With tensor ways a chip reads a share of the weights. And the latent vectors of whom?",
            "With attention data parallelism: all of attention's weights, and whose latent vectors?",
            "Set both equal: the number of chips drops out.",
        ),
        mistakes=(
            Mistake(2.0, "An element of the weights is one byte here, one of the cache two."),
            Mistake(1 / 16, "A chip of sixteen owns a sixteenth of the sequences, but B counts all."),
            Mistake(16.0, "That counts all sixteen copies of the weights, and one of the cache."),
        ),
        right="Right: beyond it, let each chip own its sequences.",
    ),
    Check(
        key="inference.two-dimensions",
        title="Two dimensions, with a gate",
        answer=_rows,
        unit="chips",
        difficulty=3,
        rel_tol=0.01,
        hints=(
            "In one dimension: gather D, later scatter D, on all three axes. A gate changes nothing here.",
            "In two: what has width F is a partial sum over X. Two arrays are scattered, one is gathered.",
            "Choose X for the least time, then compare.",
        ),
        mistakes=(
            Mistake(
                lambda: _rows(2),
                "With a gate there are two hidden arrays to sum, and one to gather.",
                slip="term-left-out",
            ),
            Mistake(lambda: _rows(4), "After the gate only one hidden array is left to be gathered."),
            Mistake(lambda: _rows(axes=1), "That is a torus of two axes; there are three."),
            Mistake(
                lambda: _rows(2) * 81 / 72,
                "That is from 81 in place of 72, a figure that is printed in places.",
            ),
        ),
    ),
)
