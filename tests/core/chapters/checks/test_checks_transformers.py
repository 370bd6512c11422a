"""The Transformer exercises: answers worked out by hand, and the slips that people make are named."""

import itertools

import pytest
from judged import right, wrong

from scalingbook_lib.chapters import checks
from scalingbook_lib.chapters.transformers.checks.attention import GQA_LAYER, SMALL

CHECKS = checks.catalogue("transformers")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("transformers.1", 2**24),
        ("transformers.1", "16.8 MFLOPs"),
        ("transformers.2", 4 * 4096 * 4096 * 14336),
        ("transformers.3", 2 * 4096 * 8192 * 32768 / 32),
        ("transformers.4", 64 * (3 * 4096 * 16384 + 4 * 4096**2 + 4096) + 2 * 4096 * 32000),  # the sheet's
        ("transformers.4", "17.44 billion"),
        ("transformers.5", "10 GiB"),
        ("transformers.6", 5120),
        ("transformers.7", "86,016 tokens"),
        ("transformers.8", 1.0612),
        ("transformers.9", 1 + 256 * 2.304 / 2614),
        ("transformers.10", "39.2e9"),
        ("transformers.11", "16.5 %"),
        ("transformers.12", 2 * 13 * 4e6 * 8192 * 64),
        ("transformers.13", 1 / 17),
        ("transformers.14", 2 / 3 + 64 * 2 / 8192),
        ("transformers.15", 3840),  # the reference, with 120 tokens for a dense layer
        ("transformers.16", 32768 / 576),
        ("transformers.17", 270),
        ("transformers.18", 134_000),
        ("transformers.19", "6.04 MB"),
        ("transformers.20", 278_528 / 1152),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("transformers.1", 2 * (4 + 8 + 16 + 32 + 64 + 2 + 4), "adds the sizes"),
        ("transformers.2", 2 * 4096 * 4096 * 14336, "one gradient"),
        ("transformers.3", 2 * 4096 * 8192 * 32768 / 128, "Z splits nothing"),
        ("transformers.4", 16e9, "rounded"),
        ("transformers.4", 17.31e9, "second matrix"),
        ("transformers.5", "80 GiB", "8 key-value heads"),
        ("transformers.5", "10 GB", "prefixes"),
        ("transformers.6", 8192, "N = K"),
        ("transformers.7", 43_008, "half"),
        ("transformers.7", 65_536, "rule for a whole layer"),
        ("transformers.8", 1.137, "mask"),
        ("transformers.8", 1.0761, "embedding"),
        ("transformers.8", 1 / 1.0612, "upside down"),
        ("transformers.9", 1, "tied model"),
        ("transformers.10", 140.6e9, "stored"),
        ("transformers.10", "44 billion", "two attentions"),
        ("transformers.11", "21.6 %", "PCIe"),  # the reference's
        ("transformers.11", "33 %", "against bf16"),
        ("transformers.12", "29.4 TB", "counts arrays"),
        ("transformers.12", "84 TB", "twenty"),  # the reference's
        ("transformers.13", 1 / 51, "training FLOPs"),
        ("transformers.13", 1 / 16, "as well"),
        ("transformers.14", 0.349, "pass through"),
        ("transformers.15", 7697, "two bytes"),
        ("transformers.16", 64, "rotary"),
        ("transformers.17", 240, "ridge"),  # the reference's
        ("transformers.17", 481, "one query head"),
        ("transformers.18", 69_120, "every layer"),
        ("transformers.18", 36_864, "F = 4D"),
        ("transformers.19", "3.54 MB", "ridge of a v6e"),
        ("transformers.20", 484, "one byte"),
        ("transformers.20", 128, "read once"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def loops(left, right, out):
    """Walk through every pair of numbers that meet; an add for each where something is summed over."""
    indices = sorted(set(left + right))
    pairs = sum(1 for _ in itertools.product(*(range(SMALL[i]) for i in indices)))
    return pairs * (2 if set(indices) - set(out) else 1)


def test_any_product_is_counted_as_its_loops_are():
    total = 0
    for text in GQA_LAYER:
        left, right, out = text.replace("->", ",").split(",")
        total += loops(left, right, out) + loops(out, right, left) + loops(left, out, right)
    assert CHECKS["transformers.21"](total).ok
    assert not CHECKS["transformers.21"](total + 1).ok


def test_the_easy_ones_come_first():
    difficulties = [check.difficulty for check in CHECKS.values()]
    assert difficulties == sorted(difficulties)
