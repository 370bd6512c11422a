"""Checks of the exercises on attention (MLA, prefill, windows, kernels), and on any einsum."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic

_DEEPSEEK, _GEMMA = models.find("DeepSeek-V3"), models.find("Gemma-2 27B")

GQA_LAYER = (  # norm, queries, keys, values, scores, weighted values, output; norm, gate, up, gating, down
    *("BTD,D->BTD", "BTD,DKGH->BTKGH", "BSD,DKH->BSKH", "BSD,DKH->BSKH"),
    *("BTKGH,BSKH->BTKGS", "BTKGS,BSKH->BTKGH", "BTKGH,KGHD->BTD"),
    *("BTD,D->BTD", "BTD,DF->BTF", "BTD,DF->BTF", "BTF,BTF->BTF", "BTF,FD->BTD"),
)
SMALL = {"B": 2, "T": 5, "S": 5, "D": 12, "K": 2, "G": 3, "H": 2, "F": 7}


def _products() -> list[arithmetic.Einsum]:
    return [arithmetic.einsum(text, **{i: n for i, n in SMALL.items() if i in text}) for text in GQA_LAYER]


def _plain_over_latent(**widths: int) -> float:
    """Elements of the keys and values of 128 heads of 128, over those that DeepSeek-V3 keeps per token."""
    plain = replace(_DEEPSEEK, latent=None, H=128)
    kept = sum(widths.values()) or _DEEPSEEK.kv_elements_per_token / _DEEPSEEK.L
    return plain.kv_elements_per_token / plain.L / kept


def _prompt(G: int = 4) -> float:
    return arithmetic.prefill_tokens(rules.ridge(chips.V6E), G)


def _block(rows: int = 1024, *, buffers: int = 2) -> float:
    return arithmetic.block_bytes(rows, 1024, 1, buffers=buffers)


def _decoding() -> arithmetic.Intensity:
    latent = _DEEPSEEK.latent
    assert latent
    return arithmetic.latent_intensity(latent, 128, 32768)


ATTENTION = (
    Check(
        key="transformers.latent-cache",
        title="KV-cache saving of latent attention (MLA)",
        answer=_plain_over_latent,
        difficulty=2,
        hints=(
            "How many elements does a layer keep per token, with a key and a value for each head?",
            "The latent vector serves as key and as value. The rotary part exists once for all heads.",
        ),
        mistakes=(
            Mistake(lambda: _plain_over_latent(latent=512), "The rotary part of the key is kept as well."),
            Mistake(
                lambda: _plain_over_latent(key=512 + 64, value=512),
                "One vector serves as both key and value, so it is kept once.",
            ),
            Mistake(0.5, "Each of the 128 heads would keep a key and a value."),
            Mistake(lambda: 1 / _plain_over_latent(), "That is the inverse."),
        ),
        right="Right. Eight key-value heads would make the cache only sixteen times smaller.",
    ),
    Check(
        key="transformers.prompt-length",
        title="Shortest compute-bound prompt",
        answer=_prompt,
        unit="tokens",
        difficulty=2,
        hints=(
            "For one key-value head: 4T²GH FLOPs, and the bytes of queries, outputs, keys and "
            "values, each once.",
            "The intensity is T · G / (G + 1). Set it equal to the ridge point.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.V6E),
                "That is the ridge point. Keys and values have to be read as well.",
            ),
            Mistake(lambda: _prompt(1), "That is for one query head per key-value head."),
            Mistake(
                lambda: rules.ridge(chips.V6E) / 4,
                "Queries are read and outputs are written for all four heads.",
            ),
            Mistake(
                16 / 25,
                "That multiplies the ridge point by G/(G + 1), a factor that the intensity already contains.",
            ),
        ),
        right="Right. In decode the intensity is only G, however long the context is.",
    ),
    Check(
        key="transformers.window-layers",
        title="Attention crossover with sliding windows",
        answer=lambda: arithmetic.crossover(_GEMMA),
        unit="tokens",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "First assume that every layer attends to everything. At which T do the two sides meet?",
            "There are T keys in half of the layers and 4,096 in the others. Their mean has to be that T.",
        ),
        mistakes=(
            Mistake(
                lambda: arithmetic.crossover(_GEMMA, windows=False),
                "That is the crossover if every layer attends to everything.",
            ),
            Mistake(lambda: 8 * _GEMMA.D, "That rule assumes F = 4D and NH = D, and this model has neither."),
            Mistake(
                lambda: 2 * arithmetic.crossover(_GEMMA, windows=False),
                "A window makes attention cheaper, but not free.",
            ),
            Mistake(2, "That is for a kernel that skips masked pairs. Here, every pair is computed."),
        ),
        right="Right: the windows almost double it.",
    ),
    Check(
        key="transformers.kernel-vmem",
        title="VMEM of a FlashAttention kernel",
        answer=_block,
        unit="B",
        difficulty=3,
        hints=(
            "Keys and values are read once per block of queries. With G = 1, "
            "the intensity is the number of queries in a block.",
            "Count queries, two buffers of keys and values, and in fp32 the scores, the weighted "
            "sum and two numbers per row.",
        ),
        mistakes=(
            Mistake(
                lambda: _block(512),
                "The ridge point of a v6e is above 512, so this block would wait for its keys.",
            ),
            Mistake(
                lambda: _block(buffers=1), "With one buffer, no keys could arrive while others are in use."
            ),
            Mistake(lambda: _block() - 2 * 1024 * 1024, "Scores are kept in fp32, with four bytes each."),
            Mistake(lambda: _block() - 4 * 1024 * 1024, "The block of scores takes memory as well."),
        ),
        right="Right: a twentieth of VMEM, so there is a comfortable margin.",
    ),
    Check(
        key="transformers.absorbed-decoding",
        title="Arithmetic intensity of absorbed MLA decode",
        answer=lambda: _decoding().flops_per_byte,
        unit="FLOP/B",
        difficulty=3,
        hints=(
            "A score multiplies everything that is kept. The weighted sum uses only the latent part.",
            "All 128 heads use the same vector, which is read once.",
        ),
        mistakes=(
            Mistake(2, "That is for one byte per element. The cache is bf16.", slip="wrong-dtype-size"),
            Mistake(0.5, "Each term is a multiply and an add.", slip="factor-two-flops"),
            Mistake(
                1 / 128,
                "That is for a single head. All heads use the bytes that are read.",
                slip="one-for-total",
            ),
            Mistake(
                lambda: 2 * 128 * (576 + 512) / (2 * (576 + 512)),
                "Key and value are the same vector, which is read once.",
            ),
            Mistake(
                lambda: 2 * 128 * (512 + 512) / (2 * 576),
                "The scores need the rotary part of the key as well.",
                slip="term-left-out",
            ),
        ),
        right="Right: at the ridge point of a v5e. Eight query heads per key-value head would only reach 8.",
    ),
    Check(
        key="transformers.any-product",
        title="Count the FLOPs of any einsum",
        answer=lambda: sum(product.training_flops for product in _products()),
        unit="FLOP",
        rel_tol=1e-9,
        difficulty=3,
        hints=(
            "Without a sum, there is no add. Which of the einsums, and which of their gradients, have a sum?",
            "The gradients of a,b->c are c,b->a and a,c->b. Count all three with the same function.",
            "The norm's scale has no sum in the forward pass, but its gradient sums over B and T.",
        ),
        mistakes=(
            # six FLOPs for every pair of numbers that meet, summed over or not
            Mistake(
                lambda: sum(6 * product.multiplies for product in _products()),
                "If no index is summed over, there is a multiply but no add.",
            ),
            Mistake(
                lambda: sum(p.flops for p in _products()),
                "That is the forward pass. Count both gradients as well.",
                slip="forward-only",
            ),
            Mistake(
                lambda: sum(p.backward_flops for p in _products()),
                "That is only the backward pass.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 3 * sum(p.flops for p in _products()),
                "Training takes three times the forward pass only if both inputs have a free index. "
                "Count each gradient separately.",
                slip="wrong-formula-thrice",
            ),
            # as if one loop ran over each index of each input
            Mistake(
                lambda: sum(6 * p.elements(p.left) * p.elements(p.right) for p in _products()),
                "An index that both inputs have is one loop, not two.",
            ),
            Mistake(
                lambda: sum(3 * p.multiplies for p in _products()),
                "Whatever is summed over is also added, which makes two FLOPs per term.",
                slip="factor-two-flops",
            ),
        ),
        right="Right. Your function counts everything that a Transformer is made of.",
    ),
)
