"""Checks of the warm-up exercises: the FLOPs of one matmul, the parameters and KV cache of one model."""

from dataclasses import replace

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, notation
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16

_WIDE = arithmetic.einsum("IJKL,IJMNO->KLMNO", I=4, J=8, K=16, L=32, M=64, N=2, O=4)
_UP = arithmetic.einsum("BD,DF->BF", B=4096, D=4096, F=14336)
_MESH = notation.Mesh(X=4, Y=8, Z=4)
_PLAIN = models.Transformer(name="plain", D=4096, F=16384, L=64, N=32, K=32, H=128, V=32000)
_LLAMA_8B, _LLAMA_70B = models.find("Llama 3 8B"), models.find("Llama 3 70B")


def _one_chip() -> int:
    """A[B_X, D_Y] · W[D_Y, F] on the mesh X4 Y8 Z4: the FLOPs of the blocks that one chip holds."""
    B, D = notation.parse("A[B_X, D_Y]").local_shape(_MESH, B=4096, D=8192)
    return arithmetic.einsum("BD,DF->BF", B=B, D=D, F=32768).flops


def _cache(**other: int) -> float:
    return arithmetic.kv_cache(replace(_LLAMA_70B, **other), 32768, BF16).nbytes


def _projections() -> float:
    """Tokens at which dot-product attention takes as many FLOPs as the four projections."""
    one = arithmetic.flops(_LLAMA_8B, 1, 1)
    return one["attention projections"] / one.attention


COUNTS = (
    Check(
        key="transformers.contraction-flops",
        title="FLOPs of an einsum with seven indices",
        answer=lambda: _WIDE.flops,
        unit="FLOP",
        hints=(
            "Written as nested loops, how many loops are there? An index that both inputs have is one loop.",
            "Multiply the sizes of all distinct indices. Each innermost step is a multiply and an add.",
        ),
        mistakes=(
            Mistake(lambda: 2 * sum(_WIDE.size.values()), "That adds the sizes. Nested loops multiply."),
            Mistake(4 * 8, "I and J appear in both inputs, but each of them is one loop, not two."),
            Mistake(
                lambda: 2 * _WIDE.out_elements,
                "Each element of the output is a sum over I and J, not a single term.",
            ),
            Mistake(0.5, "That counts only the multiplies. Each product is also added to a sum."),
        ),
        right="Right: two FLOPs times the sizes of all distinct indices.",
    ),
    Check(
        key="transformers.backward-flops",
        title="FLOPs of the backward pass",
        answer=lambda: _UP.backward_flops,
        unit="FLOP",
        hints=(
            "Which arrays need a gradient? Write down the matmul for each.",
            "Each gradient is a matmul over the same three indices as the forward pass.",
        ),
        mistakes=(
            Mistake(
                0.5, "That is for one gradient. Both the weight and the input need one.", slip="one-for-total"
            ),
            Mistake(
                1.5,
                "That is the forward and the backward pass together. Give the backward pass only.",
                slip="term-added",
            ),
        ),
        right="Right: twice the forward pass, so training takes three times the FLOPs of a forward pass.",
    ),
    Check(
        key="transformers.flops-per-chip",
        title="FLOPs per chip on a mesh of 128",
        answer=_one_chip,
        unit="FLOP",
        hints=(
            "Which shard of A does one chip hold, and which shard of W?",
            "Only mesh axes that shard an index divide the work. Does Z shard one?",
        ),
        mistakes=(
            Mistake(0.25, "Z shards nothing here: all chips along Z do the same work.", slip="axis-added"),
            Mistake(
                8,
                "Y shards D, which is summed over, so each chip has an eighth of the terms.",
                slip="axis-left-out",
            ),
            Mistake(4, "X shards B, so each chip has a quarter of the rows.", slip="axis-left-out"),
            Mistake(32, "That is the work of the whole matmul on a single chip.", slip="total-for-one"),
        ),
        right="Right. All 128 chips together do four times the work that the matmul needs.",
    ),
    Check(
        key="transformers.count-parameters",
        title="Count the parameters: 16 or 17 billion?",
        answer=lambda: _PLAIN.params,
        rel_tol=0.002,
        hints=(
            "A layer has three matrices in its MLP and four in attention.",
            "With N = K and N · H = D, each of the four has D² elements. Add embedding and unembedding.",
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
            Mistake(
                lambda: _PLAIN.params - 64 * 4096**2,
                "Attention has four projections: queries, keys, values and the output.",
            ),
            Mistake(
                lambda: 16e9,
                "You rounded the shapes before you multiplied them: 4096 is not 4000.",
                slip="rounding",
            ),
        ),
        right="Right. Three quarters of them are in the MLPs.",
    ),
    Check(
        key="transformers.cache-size",
        title="KV cache of one sequence",
        answer=_cache,
        unit="B",
        hints=(
            "Each layer keeps a key and a value per token and key-value head.",
            "That is 2 · L · K · H elements per token, of two bytes each.",
        ),
        mistakes=(
            Mistake(
                lambda: _cache(K=64), "The 64 query heads share 8 key-value heads, and only those are kept."
            ),
            Mistake(0.5, "Both a key and a value are kept, and an element of bf16 takes two bytes."),
            Mistake(1 / 80, "That is for a single layer."),
            Mistake(1 / 32768, "That is for a single token."),
        ),
        right="Right. A dozen such sequences take nearly as much memory as the weights, 141 GB.",
    ),
    Check(
        key="transformers.scores-and-projections",
        title="When attention costs as much as its projections",
        answer=_projections,
        unit="tokens",
        hints=(
            "Projections take 4D(N + K)H FLOPs per token. Dot-product attention takes 4TNH.",
            "Set them equal. In this model, N and K differ.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 4096,
                "That is for N = K. This model has four query heads per key-value head.",
                slip="wrong-count",
            ),
            Mistake(
                2,
                "That is for a kernel that skips masked pairs. Here, every pair is computed.",
                slip="causal-for-full",
            ),
            Mistake(
                lambda: 4096, "That leaves out the projections of keys and values.", slip="term-left-out"
            ),
            Mistake(
                lambda: arithmetic.crossover(_LLAMA_8B),
                "That is where attention costs as much as all weights of a layer, including the MLP.",
            ),
        ),
        right="Right: D(1 + K/N). Beyond that, attention is no longer a small part of a layer.",
    ),
)
