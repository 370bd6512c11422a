"""The exercises on other architectures: answers worked out by hand, and named slips."""

import pytest
from judged import right, wrong


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("kept-state", 48 * 128 * 128 * 64 * 4),
        ("even-length", 768),
        ("chunk-flops", 6 * 64**2 + 8 * 16 * 64),
        ("index-keeps", "bytes kept"),
        ("search-pass", "20 ms"),
        ("step-intensity", 1.75),
        ("relay-bytes", "3.15 MB"),
        ("relay-even", 512),
        ("index-even", 73_728),
        ("sparse-read", 3.79),
        ("compressed", 20 * 2**20 * (160 + 4.5)),
        ("block-batch", 918e12 / 1.638e12 / 32),
        ("video-share", "48.9%"),
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
        ("even-length", 1536, "key and a value"),
        ("chunk-flops", 20_480, "erases before it writes"),
        ("search-pass", "2 s", "all hundred"),
        ("step-intensity", 112, "of its own"),
        ("relay-bytes", "1.57 MB", "sent as well"),
        ("relay-even", 1024, "one number"),
        ("index-even", 18_432, "four tokens"),
        ("sparse-read", 16, "keys of the index"),
        ("sparse-read", 8.24, "FLOPs"),
        ("compressed", "3.11 GB", "key of 64 bytes"),
        ("block-batch", 8, "gain"),
        ("video-share", 0.324, "causal"),
        ("eye-share", 0.2085, "encoder's attention"),
        ("hybrid-cap", 8, "cap"),
    ],
)
def test_slips_are_named(key, given, says):
    wrong(f"architectures.{key}", given, says)
