"""The exercises on RL, fault tolerance and energy: answers worked out by hand, and named slips."""

import math

import pytest
from judged import right, wrong

P70, P405, P8 = 70.554e9, 405.854e9, 8.030e9
HBM = 3.35e12


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("one-answer", 20_000 * 2 * P70 / (8 * HBM)),
        ("new-weights", 2 * P405 / (16 * 50e9)),
        ("mean-context", (1 + 225) / 16 * 500),
        ("stops-a-day", 32_768 / 4 / 365.25),
        ("run-energy", 1.46e6 * 1275 * 1.09 / 1e6),
        ("pools", 192),
        ("adapter-state", 2 * P8 + 16 * 32 * 32 * (3 * 18_432 + 2 * 8192 + 2 * 5120)),
        ("save-interval", math.sqrt(2 * 14 * P70 / 25e9 * 21_600)),
        ("restarts-leave", "60.7%"),
        ("better-half", "halve the restart"),
        ("spares", 29),
        ("joules-a-token", 0.0821),
        ("best-split", 28),
        ("site-line", 8 * 2 * 30e9 / 1600),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(f"posttraining.{key}", given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("one-answer", 842, "own shard"),
        ("new-weights", 32.5, "at the same time"),
        ("mean-context", 4000, "more likely"),
        ("pools", 320, "train"),
        ("adapter-state", "1.34 GB", "frozen model"),
        ("save-interval", "40 s", "one checkpoint"),
        ("restarts-leave", 0.5, "first-order"),
        ("spares", 18, "on average"),
        ("run-energy", 1022, "chips alone"),
        ("joules-a-token", 5.25, "64 tokens"),
        ("site-line", 60e9, "until the next"),
    ],
)
def test_slips_are_named(key, given, says):
    wrong(f"posttraining.{key}", given, says)
