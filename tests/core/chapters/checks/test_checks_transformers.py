"""The Transformer exercises: answers worked out by hand, and the slips that people make are named."""

import itertools

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.transformers.checks.attention import GQA_LAYER, SMALL

CHECKS = checks.catalog("transformers")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("transformers.contraction-flops", 2**24),
        ("transformers.contraction-flops", "16.8 MFLOPs"),
        ("transformers.backward-flops", 4 * 4096 * 4096 * 14336),
        ("transformers.flops-per-chip", 2 * 4096 * 8192 * 32768 / 32),
        (
            "transformers.count-parameters",
            64 * (3 * 4096 * 16384 + 4 * 4096**2 + 4096) + 2 * 4096 * 32000,
        ),  # the sheet's
        ("transformers.count-parameters", "17.44 billion"),
        ("transformers.cache-size", "10 GiB"),
        ("transformers.scores-and-projections", 5120),
        ("transformers.scores-and-mlp", "86,016 tokens"),
        ("transformers.beyond-6pt", 1.0612),
        ("transformers.tied-embedding", 1 + 256 * 2.304 / 2614),
        ("transformers.active-parameters", "39.2e9"),
        ("transformers.deepseek-mfu", "16.5%"),
        ("transformers.kept-activations", 2 * 13 * 4e6 * 8192 * 64),
        ("transformers.recomputed-share", 1 / 17),
        ("transformers.adapter-flops", 2 / 3 + 64 * 2 / 8192),
        ("transformers.expert-batch", 3840),  # the reference, with 120 tokens for a dense layer
        ("transformers.latent-cache", 32768 / 576),
        ("transformers.prompt-length", 700),
        ("transformers.window-layers", 134_000),
        ("transformers.kernel-vmem", "6.04 MB"),
        ("transformers.absorbed-decoding", 278_528 / 1152),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("transformers.contraction-flops", 2 * (4 + 8 + 16 + 32 + 64 + 2 + 4), "adds the sizes"),
        ("transformers.backward-flops", 2 * 4096 * 4096 * 14336, "one gradient"),
        ("transformers.flops-per-chip", 2 * 4096 * 8192 * 32768 / 128, "shards nothing"),
        ("transformers.count-parameters", 16e9, "rounded"),
        ("transformers.count-parameters", 17.31e9, "second matrix"),
        ("transformers.cache-size", "80 GiB", "8 key-value heads"),
        ("transformers.cache-size", "10 GB", "prefixes"),
        ("transformers.scores-and-projections", 8192, "N = K"),
        ("transformers.scores-and-mlp", 43_008, "half"),
        ("transformers.scores-and-mlp", 65_536, "rule for a whole layer"),
        ("transformers.beyond-6pt", 1.137, "mask"),
        ("transformers.beyond-6pt", 1.0761, "embedding"),
        ("transformers.beyond-6pt", 1 / 1.0612, "inverse"),
        ("transformers.tied-embedding", 1, "tied model"),
        ("transformers.active-parameters", 140.6e9, "stored"),
        ("transformers.active-parameters", "44 billion", "two sets of attention weights"),
        ("transformers.deepseek-mfu", "21.6%", "PCIe"),  # the reference's
        ("transformers.deepseek-mfu", "33%", "relative to the bf16 peak"),
        ("transformers.kept-activations", "29.4 TB", "counts arrays"),
        ("transformers.kept-activations", "84 TB", "twenty"),  # the reference's
        ("transformers.recomputed-share", 1 / 51, "training FLOPs"),
        ("transformers.recomputed-share", 1 / 16, "as well"),
        ("transformers.adapter-flops", 0.349, "pass through"),
        ("transformers.expert-batch", 7697, "two bytes"),
        ("transformers.latent-cache", 64, "rotary"),
        ("transformers.prompt-length", 560, "ridge"),
        ("transformers.prompt-length", 1121, "one query head"),
        ("transformers.window-layers", 69_120, "every layer"),
        ("transformers.window-layers", 36_864, "F = 4D"),
        ("transformers.kernel-vmem", "3.54 MB", "ridge point of a v6e"),
        ("transformers.absorbed-decoding", 484, "one byte"),
        ("transformers.absorbed-decoding", 128, "read once"),
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
    assert CHECKS["transformers.any-product"](total).ok
    assert not CHECKS["transformers.any-product"](total + 1).ok
