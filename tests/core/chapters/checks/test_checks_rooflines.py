"""The rooflines exercises: answers worked out by hand, and the slips that people make are named."""

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks

CHECKS = checks.catalog("rooflines")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("rooflines.no-overlap", 74.86e-6 + 52.34e-6),
        ("rooflines.int8-everywhere", 394 / 0.819 / 2),
        ("rooflines.int8-everywhere", 243),  # the reference, with 810 GB/s
        ("rooflines.int8-weights", "120 tokens"),
        ("rooflines.ridge-h200", 989.5 / 4.8),
        ("rooflines.matrix-per-row", 2),
        ("rooflines.int8-exact", 129.6),  # the sheet's, from a ridge of 240.2
        ("rooflines.narrow-layer", 226.8 / 136.3),
        ("rooflines.never-enough", 1120),
        ("rooflines.tile-in-vmem", "9.62 MB"),
        ("rooflines.decoding-share", "5.7%"),
        ("rooflines.split-contraction", 459e12 / 100e9),
        ("rooflines.latency-size", "2.77 MB"),
        ("rooflines.host-weights", 197e12 / 16e9),
        ("rooflines.needed-bandwidth", "3.83 TB/s"),
        ("rooflines.split-sixteen", 2 * 15 * 2295),
        ("rooflines.fused-layers", 13 / 9),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("rooflines.no-overlap", "74.9 µs", "perfect overlap"),
        ("rooflines.int8-everywhere", 481, "That is the ridge"),
        ("rooflines.int8-weights", 240.5, "bf16 weights"),
        ("rooflines.ridge-h200", 412, "sparsity"),
        ("rooflines.matrix-per-row", 1.0, "two FLOPs"),
        ("rooflines.never-enough", 560, "D/2"),
        ("rooflines.tile-in-vmem", "4.6 MiB", ""),
        ("rooflines.split-contraction", 9180, "whole sum"),
        ("rooflines.host-weights", 240.5, "HBM"),
        ("rooflines.split-sixteen", 73_440, "1/16"),
        ("rooflines.split-sixteen", 34_425, "in bf16"),
        ("rooflines.fused-layers", 9 / 13, "inverse"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)
