"""The exercises on other machines: answers worked out by hand, and named slips."""

import pytest
from judged import right, wrong


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("rack", 362e15 / 144),
        ("sweep", "18.54 ms"),
        ("largest-batch", "TPU 8t"),
        ("chips-for-k3", 4),
        ("tokens-across", 347.2),
        ("desk", "144 ms"),
        ("wafer-layer", "5.93 µs"),
        ("planes", 131_072),
        ("unseen-sheet", 4600 / 1.64),
        ("unseen-width", 2300 / 1.64),
        ("hides", "Trainium3"),
        ("expert-in-bf16", 1311),
        ("combine-rate", "40.8 GB/s"),
        ("turns-total", "1.92 ms"),
        ("cores-break-even", 13.2),
        ("three-waves", 15 / 11),
        ("dual-bubble", 4.5),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(f"machines.{key}", given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("sweep", "19.9 ms", "used GiB"),
        ("chips-for-k3", 3.42, "only whole chips"),
        ("tokens-across", 25_000, "All 72 NICs"),
        ("desk", "128 ms", "scales"),
        ("planes", 32_768, "their square"),
        ("unseen-sheet", 371, "ridge"),
        ("hides", "Rubin", "9,722"),
        ("turns-total", "1.6 ms", "some of the cores"),
        ("cores-break-even", 14.67, "that are left"),
        ("dual-bubble", 6, "Here it takes 2.5"),
    ],
)
def test_slips_are_named(key, given, says):
    wrong(f"machines.{key}", given, says)
