"""The exercises on other architectures: answers worked out by hand, and named slips."""

import pytest
from judged import right, wrong


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("kept-state", 48 * 128 * 128 * 64 * 4),
        ("even-length", 1024),
        ("chunk-flops", 98_304),
        ("index-keeps", "bytes kept"),
        ("search-pass", "40 ms"),
        ("step-intensity", 1.5),
        ("relay-bytes", "6.29 MB"),
        ("relay-even", 5461),
        ("index-even", 34_816),
        ("sparse-read", 4.61),
        ("compressed", 20 * 2**20 * (160 + 4.5)),
        ("block-batch", 918e12 / 1.638e12 / 32),
        ("video-share", "48.9 %"),
        ("eye-share", 0.24),
        ("hybrid-cap", 7.585),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(f"architectures.{key}", given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("kept-state", "4.19 MB", "one layer"),
        ("even-length", 2048, "key and a value"),
        ("chunk-flops", 163_840, "erases"),
        ("search-pass", "4 s", "all hundred"),
        ("step-intensity", 96, "of its own"),
        ("relay-bytes", "3.15 MB", "it is sent, too"),
        ("relay-even", 43_691, "whole sequence"),
        ("index-even", 2048, "stops growing"),
        ("sparse-read", 64, "index has to be read"),
        ("sparse-read", 13.4, "FLOPs"),
        ("compressed", "3.11 GB", "key of 64 bytes"),
        ("block-batch", 8, "gain"),
        ("video-share", 0.324, "causal"),
        ("eye-share", 0.2085, "encoder's attention"),
        ("hybrid-cap", 8, "cap"),
    ],
)
def test_slips_are_named(key, given, says):
    wrong(f"architectures.{key}", given, says)
