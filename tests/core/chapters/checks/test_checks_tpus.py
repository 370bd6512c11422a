"""The TPU exercises: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks

CHECKS = checks.catalogue("tpus")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("tpus.1", "10.4 ms"),
        ("tpus.2", 8960 * 459e12),
        ("tpus.3", 459 / 14.336),
        ("tpus.4", "v4 4x4x4"),
        ("tpus.5", 2 * 4096 * 256),
        ("tpus.6", 9 * 254),
        ("tpus.7", 2 * 4096 * 256 * 4096 / 918e12),
        ("tpus.8", 2 * 512 * 256 / 819e9 + 32 * 2 * 512 * 256 * 8192 / 197e12 + 2 * 512 * 8192 / 819e9),
        ("tpus.9", 11),
        ("tpus.10", "173.8 µs"),
        ("tpus.11", 21 / 8 + 4),
        ("tpus.12", 512e9 / 32 / 25e9),
        ("tpus.13", 918e12 / 32e9 / 0.8),
        ("tpus.14", 15 * 2**30 / 100e9),
        ("tpus.15", 2.4),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("tpus.1", "5.2 ms", "two bytes"),
        ("tpus.2", 459e12, "chip"),
        ("tpus.3", 64, "of one"),
        ("tpus.4", "v5e 8x16", "axis of 8"),
        ("tpus.5", "1.06 MB", "without padding"),
        ("tpus.6", 1143, "drain"),
        ("tpus.6", 3438, "loading"),
        ("tpus.7", "4.68 µs", "useful"),
        ("tpus.8", "687 µs", "without overlap"),
        ("tpus.8", 32 * 2 * 512 * 256 * 8192 / 197e12, "alone"),
        ("tpus.9", 259.6, "HBM"),
        ("tpus.10", "192.4 µs", "90 %"),  # the reference
        ("tpus.10", 16_777_216 / 1e11, "hops are missing"),
        ("tpus.11", 6, "does not wrap"),
        ("tpus.11", 6.625 * 128 / 127, "with itself"),
        ("tpus.12", 0.125, "PCIe"),
        ("tpus.12", 20.48, "32 hosts"),
        ("tpus.13", 28_687, "Activations"),
        ("tpus.13", 57_375, "square"),
        ("tpus.14", "67 ms", "Another stage"),
        ("tpus.14", 0.179, "90 %"),
        ("tpus.14", "172 ms", "crosses no link"),
        ("tpus.15", 1 / 2.4, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
