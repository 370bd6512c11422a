"""The exercises on smaller numbers: answers worked out by hand, and named slips."""

import pytest
from judged import right, wrong

P405, K2, K2_ACTIVE = 405.854e9, 4.8497e16, 32.861e9


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("bytes-with-scales", 4.25 / 8 * P405),
        ("nearest-mark", 144),
        ("rate-that-moves", 2**-5 / 128 / 2 / 0.2),
        ("sum-that-stops", "6.25%"),
        ("two-types", 0.5625 * 4.5e15 / 16e12),
        ("chip-that-breaks", "GB300"),
        ("fsdp-tokens", 3703),
        ("tensor-ways", 2.5),
        ("whole-step", 1.238),
        ("state-of-muon", 12 * P405 / 512),
        ("one-expert", 5 * (4 * 2048**2 * 7168 + 2 * 2048**3)),
        ("share-of-step", K2 / (6 * K2_ACTIVE * 16e6)),
        ("owner-sends", 2 * 15 / 16 * 2 * 4096 * 16_384 / 16),
        ("long-and-thin", 10),
        ("batch-for-int4", 989e12 / (2 * 4.8e12)),
        ("smoothed-channel", 20),
        ("two-level-scale", 1.375),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(f"lowprecision.{key}", given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("bytes-with-scales", "203 GB", "scales take bytes"),
        ("nearest-mark", 160, "another representable value is nearer"),
        ("rate-that-moves", 0.00122, "Half the spacing"),
        ("sum-that-stops", 0.9375, "what is left"),
        ("two-types", 316, "matmuls are in fp8"),
        ("chip-that-breaks", "B200", "farther off"),
        ("fsdp-tokens", 4938, "one byte each"),
        ("fsdp-tokens", 2468, "gradients have two bytes"),
        ("tensor-ways", 1.5, "is in fp32"),
        ("whole-step", 0.808, "over the old"),
        ("state-of-muon", "12.7 GB", "Muon has one"),
        ("one-expert", 20 * 2048**2 * 7168, "A with itself"),
        ("share-of-step", 0.000492, "only the active ones"),
        ("owner-sends", 7.86e6, "sent back"),
        ("long-and-thin", 5, "ReduceScatter and an AllGather"),
    ],
)
def test_slips_are_named(key, given, says):
    wrong(f"lowprecision.{key}", given, says)
