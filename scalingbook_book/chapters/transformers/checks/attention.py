"""What does attention keep, read and multiply? Latent vectors, prompts, windows, kernels; and any einsum."""

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
    """Keys and values of 128 heads of 128 each, over what DeepSeek-V3 keeps of one token."""
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
        title="A vector instead of 128 heads",
        answer=_plain_over_latent,
        difficulty=2,
        hints=(
            "How many numbers does a layer keep of one token, with a key and a value for each head?",
            "The latent vector serves as key and as value; the rotary part is there once for all heads.",
        ),
        mistakes=(
            Mistake(lambda: _plain_over_latent(latent=512), "The rotary part of the key is kept as well."),
            Mistake(
                lambda: _plain_over_latent(key=512 + 64, value=512),
                "One vector is key and value at once; it is kept once.",
            ),
            Mistake(0.5, "Each of the 128 heads would keep a key and a value."),
            Mistake(lambda: 1 / _plain_over_latent(), "That is the inverse."),
        ),
        right="Right. Eight key-value heads would make the cache sixteen times smaller, and no more.",
    ),
    Check(
        key="transformers.prompt-length",
        title="A prompt long enough",
        answer=_prompt,
        unit="tokens",
        difficulty=2,
        hints=(
            "FLOPs: 4T²GH for one key-value head. Bytes: queries, outputs, keys, values, each once.",
            "The intensity is T · G / (G + 1). Set it equal to the ridge.",
        ),
        mistakes=(
            Mistake(
                lambda: rules.ridge(chips.V6E),
                "That is the ridge. Keys and values are read too, if fewer.",
            ),
            Mistake(lambda: _prompt(1), "That is for one query head to each key-value head."),
            Mistake(
                lambda: rules.ridge(chips.V6E) / 4,
                "Queries are read and outputs written for all four heads.",
            ),
            Mistake(
                16 / 25,
                "That multiplies the ridge by G/(G + 1), a factor that the intensity already has.",
            ),
        ),
        right="Right. In decoding it would be G: no prompt is long enough there.",
    ),
    Check(
        key="transformers.window-layers",
        title="Half of the layers see a window",
        answer=lambda: arithmetic.crossover(_GEMMA),
        unit="tokens",
        rel_tol=0.01,
        difficulty=3,
        hints=(
            "First let every layer see everything: at which T do the two sides meet?",
            "T keys in half of the layers and 4,096 in the others: their mean has to be that T.",
        ),
        mistakes=(
            Mistake(
                lambda: arithmetic.crossover(_GEMMA, windows=False),
                "That is where every layer sees everything.",
            ),
            Mistake(lambda: 8 * _GEMMA.D, "That rule supposes F = 4D and NH = D; this model has neither."),
            Mistake(
                lambda: 2 * arithmetic.crossover(_GEMMA, windows=False),
                "A window makes attention cheap, not free.",
            ),
            Mistake(2, "That is for a kernel that skips what is masked. Here all of it is computed."),
        ),
        right="Right: the windows almost double it.",
    ),
    Check(
        key="transformers.kernel-vmem",
        title="What a kernel of attention holds",
        answer=_block,
        unit="B",
        difficulty=3,
        hints=(
            "Keys and values are read once for each block of queries: with G = 1, "
            "the intensity is the number of queries in a block.",
            "Queries; keys and values in two buffers; in fp32 scores, weighted sum, two numbers a row.",
        ),
        mistakes=(
            Mistake(lambda: _block(512), "The ridge of a v6e is above 512: this block waits for its keys."),
            Mistake(
                lambda: _block(buffers=1), "One buffer: no keys could arrive while others are worked on."
            ),
            Mistake(lambda: _block() - 2 * 1024 * 1024, "Scores are kept in fp32, four bytes each."),
            Mistake(lambda: _block() - 4 * 1024 * 1024, "The block of scores needs room as well."),
        ),
        right="Right: a twentieth of VMEM, so there is room for a margin.",
    ),
    Check(
        key="transformers.absorbed-decoding",
        title="Decoding that computes",
        answer=lambda: _decoding().flops_per_byte,
        unit="FLOP/B",
        difficulty=3,
        hints=(
            "A score is a product over all that is kept; the weighted sum takes its latent part.",
            "All 128 heads use the same vector, which is read once.",
        ),
        mistakes=(
            Mistake(2, "That is for one byte an element. The cache is bf16.", slip="wrong-dtype-size"),
            Mistake(0.5, "A multiply and an add for each.", slip="factor-two-flops"),
            Mistake(1 / 128, "That is one head. All of them use what is read.", slip="one-for-total"),
            Mistake(
                lambda: 2 * 128 * (576 + 512) / (2 * (576 + 512)),
                "Key and value are the same vector: it is read once.",
            ),
            Mistake(
                lambda: 2 * 128 * (512 + 512) / (2 * 576),
                "The scores need the rotary part of the key too.",
                slip="term-left-out",
            ),
        ),
        right="Right: at the ridge of a v5e, where eight shared heads would have an intensity of 8.",
    ),
    Check(
        key="transformers.any-product",
        title="Count any product",
        answer=lambda: sum(product.training_flops for product in _products()),
        unit="FLOP",
        rel_tol=1e-9,
        difficulty=3,
        hints=(
            "Sum over nothing, and there is no add: which of the products, and which gradients, sum?",
            "The gradients of a,b->c are c,b->a and a,c->b: count all three with the same function.",
            "The norm's scale: its gradient sums over B and T, its forward product over nothing.",
        ),
        mistakes=(
            # six FLOPs for every pair of numbers that meet, summed over or not
            Mistake(
                lambda: sum(6 * product.multiplies for product in _products()),
                "Where no index is summed over, there is a multiply and no add.",
            ),
            Mistake(
                lambda: sum(p.flops for p in _products()),
                "That is the forward pass. Count both gradients too.",
                slip="forward-only",
            ),
            Mistake(
                lambda: sum(p.backward_flops for p in _products()),
                "That is the backward pass alone.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: 3 * sum(p.flops for p in _products()),
                "Three times the forward pass holds where both inputs have a free index. "
                "Count the gradients themselves.",
                slip="wrong-formula-thrice",
            ),
            # as if one loop ran over each index of each input
            Mistake(
                lambda: sum(6 * p.elements(p.left) * p.elements(p.right) for p in _products()),
                "An index that both inputs have is one loop, not two.",
            ),
            Mistake(
                lambda: sum(3 * p.multiplies for p in _products()),
                "What is summed is also added: two FLOPs for each pair.",
                slip="factor-two-flops",
            ),
        ),
        right="Right: your function counts whatever a Transformer is made of.",
    ),
)
