"""The exercises on serving Llama 3: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_lib import inference, models
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import INT8

CHECKS = checks.catalog("inference_llama3")
GIB, W, C = 2**30, 819e9, 197e12  # of v5e: bytes, bytes/s, FLOPs/s
P70, P405 = 70.554e9, 405.854e9
TOKEN70, TOKEN405 = 2 * 80 * 8 * 128, 2 * 126 * 8 * 128  # int8 bytes of cache


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("inference_llama3.long-context-cache", 2 * TOKEN405 * 32_768),
        ("inference_llama3.long-context-cache", "16.9 GB"),
        ("inference_llama3.smallest-slice", 64),
        ("inference_llama3.latency-floor", P405 / (64 * W)),
        ("inference_llama3.latency-floor", "7.74 ms"),
        ("inference_llama3.int4-batch", 0.5 * 989e12 / (2 * 3.35e12)),
        ("inference_llama3.tokens-freed", 240),
        ("inference_llama3.price-of-memory", 3.85 * 4.8 / 3.35),
        ("inference_llama3.small-model-step", 240 * 65_536 * 2048 / (4 * W) + 2 * 240 * 8.03e9 / (4 * C)),
        ("inference_llama3.int4-per-chip", (76 / 22.37) / (24 / 20.6) / 2),
        ("inference_llama3.batch-in-time", int(0.015 * 64 / (4096 * TOKEN405 / W + 2 * P405 / C))),
        ("inference_llama3.prefill-time", (2 * P70 * 2**15 + 2 * 80 * 64 * 128 * 2**30) / (16 * C * 0.4)),
        ("inference_llama3.tokens-per-user", 8 * 3.35e12 / (2 * P70 + 64 * 8192 * 2 * TOKEN70)),
        ("inference_llama3.slices-that-exist", 16 + 2 * 32 + 2 * 64 + 3 * 128 + 2 * 192 + 256),
        (
            "inference_llama3.largest-batches",
            sum(
                max(0, (n * 16 * GIB - P70) // (TOKEN70 * 2**k)) for n in (4, 8, 16, 32) for k in range(9, 18)
            ),
        ),
        ("inference_llama3.prefill-per-decode", 2.92),
        ("inference_llama3.cache-network", 131_072 * 989e12 / 2 / (2 * 8.03e9)),
        ("inference_llama3.agent-session", 3_360_000 / 84_000),
        ("inference_llama3.keep-or-recompute", 6.88 / (32.768 / (8 * 80 * GIB / 1e9 - 141.1))),
        ("inference_llama3.draft-speed-up", 1.98),
        ("inference_llama3.experts-wake", 10.7),
        ("inference_llama3.cheapest-in-time", 19.3),
        ("inference_llama3.pools-simulated", 3),
        ("inference_llama3.price-on-front", 7.06),
        ("inference_llama3.two-targets", 3.8),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("inference_llama3.long-context-cache", 16 * 2 * TOKEN405 * 32_768, "Eight heads"),
        ("inference_llama3.long-context-cache", TOKEN405 * 32_768, "two bytes"),
        ("inference_llama3.smallest-slice", 36, "no slice"),
        ("inference_llama3.smallest-slice", 32, "caches"),
        ("inference_llama3.latency-floor", 2 * P405 / (64 * C), "compute time"),
        ("inference_llama3.latency-floor", P405 / W, "number of chips"),
        ("inference_llama3.int4-batch", 295, "half a byte"),
        ("inference_llama3.tokens-freed", 192, "Answers are in the cache"),
        ("inference_llama3.tokens-freed", 5120, "one sequence"),
        ("inference_llama3.price-of-memory", 3.85, "reading caches"),
        ("inference_llama3.small-model-step", "12.3 ms", "critical batch"),
        ("inference_llama3.small-model-step", "19.6 ms", "no slice of three"),
        ("inference_llama3.int4-per-chip", 1.106, "int8 here"),  # the same types for both
        ("inference_llama3.int4-per-chip", 76 / 24 / 2, "step is longer"),  # the reference
        ("inference_llama3.batch-in-time", 360, "computing takes longer"),
        ("inference_llama3.prefill-time", 3.67, "without attention"),
        ("inference_llama3.prefill-time", 5.9, "half of the pairs"),
        ("inference_llama3.tokens-per-user", 64 * 85.65, "all users"),
        ("inference_llama3.slices-that-exist", 1360, "powers of two"),  # the reference
        ("inference_llama3.slices-that-exist", 977, "Which slices"),
        ("inference_llama3.largest-batches", 17797, "the batch is zero"),
        ("inference_llama3.largest-batches", 17799, "steps of four"),  # the reference
        ("inference_llama3.prefill-per-decode", 2.919 / 48, "48 sequences"),
        ("inference_llama3.cache-network", "8.07 GB/s", "half of its peak"),
        ("inference_llama3.agent-session", 33.6, "Answers"),
        ("inference_llama3.agent-session", 64, "grows with each turn"),
        ("inference_llama3.keep-or-recompute", 6.88, "only a share"),
        ("inference_llama3.keep-or-recompute", 59.4, "attention"),
        ("inference_llama3.draft-speed-up", 1.49, "64 users"),
        ("inference_llama3.draft-speed-up", 4.03, "drafts take time"),
        ("inference_llama3.experts-wake", 2.33, "dense"),
        ("inference_llama3.cheapest-in-time", 2.23, "without the network"),
        ("inference_llama3.cheapest-in-time", 127.7, "two dimensions"),
        ("inference_llama3.pools-simulated", 2, "one user in a hundred"),
        ("inference_llama3.pools-simulated", 1, "without end"),
        ("inference_llama3.price-on-front", 5.2, "by the rule"),
        ("inference_llama3.price-on-front", 8 * 7.055, "all eight"),
        ("inference_llama3.two-targets", 4.035, "leave gaps"),
        ("inference_llama3.two-targets", 4.17, "Chunked"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_a_decode_step_of_the_pools_is_one_amid_its_answer():
    big, square = models.find("Llama 3 70B"), Slice.of(V5E, "4x4")
    spread = inference.Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
    ends = [inference.decode(big, square, spread, batch=48, S=S).total_s for S in (4096, 4096 + 512)]
    prompt_s = inference.prefill(big, square, spread, P=4096).total_s
    ratio = 48 * prompt_s / (512 * sum(ends) / 2)
    assert CHECKS["inference_llama3.prefill-per-decode"].answer() == pytest.approx(ratio, rel=1e-6)
