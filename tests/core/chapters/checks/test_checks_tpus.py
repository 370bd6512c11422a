"""The TPU exercises: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks

CHECKS = checks.catalog("tpus")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("tpus.decoding-floor", "11 chips"),
        ("tpus.pod-peak", 8960 * 459e12),
        ("tpus.mxu-over-vpu", 10 * 459 / 14.336),
        ("tpus.all-rings", "v4 4x4x4"),
        ("tpus.one-column-over", 2 * 4096 * 256),
        ("tpus.rows-to-fill", 3 * 510),
        ("tpus.half-heads", 2 * 4096 * 256 * 4096 / 918e12),
        (
            "tpus.chunked-product",
            2 * 512 * 256 / 819e9 + 32 * 2 * 512 * 256 * 8192 / 197e12 + 2 * 512 * 8192 / 819e9,
        ),
        ("tpus.weights-in-vmem", 11),
        ("tpus.corner-to-corner", "126.8 µs"),
        ("tpus.mean-hops", 21 / 8 + 4),
        ("tpus.checkpoint-time", 512e9 / 32 / 25e9),
        ("tpus.pcie-width", 918e12 / 32e9 / 0.8),
        ("tpus.to-one-chip", 63 * 2**28 / 200e9),
        ("tpus.work-to-data", 10.08),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("tpus.decoding-floor", 22, "one byte"),
        ("tpus.pod-peak", 459e12, "chip"),
        ("tpus.mxu-over-vpu", 640, "Both cores"),
        ("tpus.all-rings", "v5e 8x16", "axis of 8"),
        ("tpus.one-column-over", "1.06 MB", "without padding"),
        ("tpus.rows-to-fill", 765, "drain"),
        ("tpus.rows-to-fill", 2298, "loading"),
        ("tpus.half-heads", "4.68 µs", "useful"),
        ("tpus.chunked-product", "687 µs", "without overlap"),
        ("tpus.chunked-product", 32 * 2 * 512 * 256 * 8192 / 197e12, "alone"),
        ("tpus.weights-in-vmem", 259.6, "HBM"),
        ("tpus.corner-to-corner", "182.8 µs", "two paths"),
        ("tpus.corner-to-corner", 16_777_216 / 1.5e11, "hops are missing"),
        ("tpus.mean-hops", 6, "does not wrap"),
        ("tpus.mean-hops", 6.625 * 128 / 127, "with itself"),
        ("tpus.checkpoint-time", 0.125, "PCIe"),
        ("tpus.checkpoint-time", 20.48, "32 hosts"),
        ("tpus.pcie-width", 28_687, "Activations"),
        ("tpus.pcie-width", 57_375, "square"),
        ("tpus.to-one-chip", "8.39 ms", "Another stage"),
        ("tpus.to-one-chip", "94 ms", "90%"),
        ("tpus.to-one-chip", "85.9 ms", "crosses no link"),
        ("tpus.work-to-data", 1 / 10.08, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)
