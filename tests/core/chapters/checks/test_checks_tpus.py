"""The TPU exercises: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("tpus")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("tpus.decoding-floor", "10.4 ms"),
        ("tpus.pod-peak", 8960 * 459e12),
        ("tpus.mxu-over-vpu", 459 / 14.336),
        ("tpus.all-rings", "v4 4x4x4"),
        ("tpus.one-column-over", 2 * 4096 * 256),
        ("tpus.rows-to-fill", 9 * 254),
        ("tpus.half-heads", 2 * 4096 * 256 * 4096 / 918e12),
        (
            "tpus.chunked-product",
            2 * 512 * 256 / 819e9 + 32 * 2 * 512 * 256 * 8192 / 197e12 + 2 * 512 * 8192 / 819e9,
        ),
        ("tpus.weights-in-vmem", 11),
        ("tpus.corner-to-corner", "173.8 µs"),
        ("tpus.mean-hops", 21 / 8 + 4),
        ("tpus.checkpoint-time", 512e9 / 32 / 25e9),
        ("tpus.pcie-width", 918e12 / 32e9 / 0.8),
        ("tpus.to-one-chip", 15 * 2**30 / 100e9),
        ("tpus.work-to-data", 2.4),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("tpus.decoding-floor", "5.2 ms", "two bytes"),
        ("tpus.pod-peak", 459e12, "chip"),
        ("tpus.mxu-over-vpu", 64, "of one"),
        ("tpus.all-rings", "v5e 8x16", "axis of 8"),
        ("tpus.one-column-over", "1.06 MB", "without padding"),
        ("tpus.rows-to-fill", 1143, "drain"),
        ("tpus.rows-to-fill", 3438, "loading"),
        ("tpus.half-heads", "4.68 µs", "useful"),
        ("tpus.chunked-product", "687 µs", "without overlap"),
        ("tpus.chunked-product", 32 * 2 * 512 * 256 * 8192 / 197e12, "alone"),
        ("tpus.weights-in-vmem", 259.6, "HBM"),
        ("tpus.corner-to-corner", "192.4 µs", "90%"),  # the reference
        ("tpus.corner-to-corner", 16_777_216 / 1e11, "hops are missing"),
        ("tpus.mean-hops", 6, "does not wrap"),
        ("tpus.mean-hops", 6.625 * 128 / 127, "with itself"),
        ("tpus.checkpoint-time", 0.125, "PCIe"),
        ("tpus.checkpoint-time", 20.48, "32 hosts"),
        ("tpus.pcie-width", 28_687, "Activations"),
        ("tpus.pcie-width", 57_375, "square"),
        ("tpus.to-one-chip", "67 ms", "Another stage"),
        ("tpus.to-one-chip", 0.179, "90%"),
        ("tpus.to-one-chip", "172 ms", "crosses no link"),
        ("tpus.work-to-data", 1 / 2.4, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)
