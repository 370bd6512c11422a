"""What does one product cost, and what does one model hold? The warm-ups."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, notation
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16

_WIDE = arithmetic.einsum("IJKL,IJMNO->KLMNO", I=4, J=8, K=16, L=32, M=64, N=2, O=4)
_UP = arithmetic.einsum("BD,DF->BF", B=4096, D=4096, F=14336)
_MESH = notation.Mesh(X=4, Y=8, Z=4)
_PLAIN = models.Transformer(name="plain", D=4096, F=16384, L=64, N=32, K=32, H=128, V=32000)
_LLAMA_8B, _LLAMA_70B = models.find("LLaMA-3 8B"), models.find("LLaMA-3 70B")


def _one_chip() -> int:
    """A[B_X, D_Y] · W[D_Y, F] on the mesh X4 Y8 Z4: the FLOPs of the blocks that one chip holds."""
    B, D = notation.parse("A[B_X, D_Y]").local_shape(_MESH, B=4096, D=8192)
    return arithmetic.einsum("BD,DF->BF", B=B, D=D, F=32768).flops


def _cache(**other: int) -> float:
    return arithmetic.kv_cache(replace(_LLAMA_70B, **other), 32768, BF16).nbytes


def _projections() -> float:
    """Scores and weighted values grow with T, projections do not: where are they equal?"""
    one = arithmetic.flops(_LLAMA_8B, 1, 1)
    return one["attention projections"] / one.attention


COUNTS = (
    Check(
        key="transformers.contraction-flops",
        title="Seven indices",
        answer=lambda: _WIDE.flops,
        unit="FLOP",
        hints=(
            "How many pairs of numbers meet? An index that both inputs have is walked through once.",
            "Multiply the sizes of all distinct indices; each pair costs a multiply and an add.",
        ),
        mistakes=(
            Mistake(lambda: 2 * sum(_WIDE.size.values()), "That adds the sizes. Nested loops multiply."),
            Mistake(4 * 8, "I and J stand in both inputs; one loop runs over each of them, not two."),
            Mistake(
                lambda: 2 * _WIDE.out_elements,
                "Each element of the output is a sum over I and J, not one term.",
            ),
            Mistake(0.5, "That counts the multiplies. What is summed is also added."),
        ),
        right="Right: two FLOPs, times every distinct index once.",
    ),
    Check(
        key="transformers.backward-flops",
        title="The way back",
        answer=lambda: _UP.backward_flops,
        unit="FLOP",
        hints=(
            "Which arrays need a gradient? Write a product for each.",
            "Each gradient is a product over the same three indices as the forward pass.",
        ),
        mistakes=(
            Mistake(
                0.5, "That is one gradient. The weight and the input both need theirs.", slip="one-for-total"
            ),
            Mistake(
                1.5,
                "That is forward and backward together. Only the backward pass is asked for.",
                slip="term-added",
            ),
        ),
        right="Right: twice the forward pass, and so training costs three times as much as inference.",
    ),
    Check(
        key="transformers.flops-per-chip",
        title="One of 128 chips",
        answer=_one_chip,
        unit="FLOP",
        hints=(
            "Which block of A does one chip hold, and which of W?",
            "Only axes that split an index of the product share its work. Does Z split one?",
        ),
        mistakes=(
            Mistake(
                0.25, "Z splits nothing here: the chips along it all do the same work.", slip="axis-added"
            ),
            Mistake(
                8,
                "Y splits D, which is summed over: each chip has an eighth of the terms.",
                slip="axis-left-out",
            ),
            Mistake(4, "X splits B: each chip has a quarter of the rows.", slip="axis-left-out"),
            Mistake(32, "That is the work of the whole product, on one chip.", slip="total-for-one"),
        ),
        right="Right, and all 128 chips together do four times the work of the product.",
    ),
    Check(
        key="transformers.count-parameters",
        title="Seventeen billion or sixteen?",
        answer=lambda: _PLAIN.params,
        rel_tol=0.002,
        hints=(
            "A layer has three matrices in its MLP and four in its attention.",
            "With N = K and N · H = D, each of the four has D² elements. Add two for the vocabulary.",
        ),
        mistakes=(
            Mistake(
                lambda: replace(_PLAIN, tied=True).params,
                "The unembedding is a second matrix here.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: replace(_PLAIN, gated=False).params,
                "A gated MLP has three matrices, not two.",
                slip="term-left-out",
            ),
            Mistake(lambda: _PLAIN.params - 64 * 4096**2, "Queries, keys, values, and one more: the output."),
            Mistake(
                lambda: 16e9,
                "The shapes were rounded before they were multiplied: 4096 is not 4000.",
                slip="rounding",
            ),
        ),
        right="Right. Three quarters of it are the MLPs.",
    ),
    Check(
        key="transformers.cache-size",
        title="What one conversation keeps",
        answer=_cache,
        unit="B",
        hints=(
            "Each layer keeps a key and a value of every token, for each key-value head.",
            "2 · L · K · H elements for a token, of two bytes each.",
        ),
        mistakes=(
            Mistake(lambda: _cache(K=64), "The 64 query heads share 8 key-value heads; only those are kept."),
            Mistake(0.5, "A key and a value are kept, and an element of bf16 takes two bytes."),
            Mistake(1 / 80, "That is one layer's."),
            Mistake(1 / 32768, "That is one token's."),
        ),
        right="Right: beside 141 GB of weights, a dozen such conversations take as much again.",
    ),
    Check(
        key="transformers.scores-and-projections",
        title="Attention against its own projections",
        answer=_projections,
        unit="tokens",
        hints=(
            "Projections: 4D(N + K)H FLOPs for each token. Scores and weighted values: 4TNH.",
            "Set them equal. N and K are not the same in this model.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 4096,
                "That is for N = K. This model has four query heads for each key.",
                slip="wrong-count",
            ),
            Mistake(
                2,
                "That is for a kernel that skips what is masked. Here all of it is computed.",
                slip="causal-for-full",
            ),
            Mistake(
                lambda: 4096, "That leaves out the projections of keys and values.", slip="term-left-out"
            ),
            Mistake(
                lambda: arithmetic.crossover(_LLAMA_8B),
                "That is where attention meets all weights of a layer, the MLP's too.",
            ),
        ),
        right="Right: D (1 + K/N), and soon after it attention is no small part of a layer.",
    ),
)
