"""Which models do published runs name that the catalogue does not have? Built from their published shapes.

Chapters: Training, Inference.
"""

from dataclasses import replace
from functools import cache

from scalingbook_lib import models
from scalingbook_lib.models import Transformer

GPT2_WORDS = 51200  # GPT-2's vocabulary filled up, where a source does not say


@cache
def find(name: str) -> Transformer:
    """The model of that name."""
    return next((model for model in others() if model.name == name), None) or models.find(name)


@cache
def others() -> tuple[Transformer, ...]:
    """All that published runs name and the catalogue does not have."""
    return (*_palm(), *_others())


@cache
def gpt(name: str, *, L: int, D: int, N: int, V: int, T: int) -> Transformer:
    """GPT-3's form: an MLP of 4 D without a gate, biases, learned positions, one matrix for both ends."""
    return Transformer(
        name=name,
        D=D,
        L=L,
        V=V,
        N=N,
        K=N,
        H=D // N,
        F=4 * D,
        gated=False,
        tied=True,
        norm_bias=True,
        biases=("q", "k", "v", "o", "mlp"),
        positions=T,
    )


def _palm() -> tuple[Transformer, Transformer]:
    """PaLM 540B: one key-value head, one norm for both halves of a layer; 64 heads as it was served."""
    palm = Transformer(
        name="PaLM 540B, 48 heads", D=18432, L=118, V=256000, N=48, K=1, H=256, F=73728, tied=True, norms=1
    )
    return palm, replace(palm, name="PaLM 540B, 64 heads", N=64)


def _others() -> tuple[Transformer, ...]:
    """Nemotron-4 has squared ReLU without a gate; MaxText trains Mistral without its window."""
    return (
        gpt("MT-NLG 530B", L=105, D=20480, N=128, V=GPT2_WORDS, T=2048),
        Transformer(name="Nemotron-4 340B", D=18432, L=96, V=256000, N=96, K=8, H=192, F=73728, gated=False),
        replace(models.find("Mistral 7B v0.3"), name="Mistral 7B", V=32000),
        Transformer(  # one norm for both halves of a layer, and biases in the MLP and the unembedding
            name="GPT-J 6B",
            D=4096,
            L=28,
            V=50400,
            N=16,
            K=16,
            H=256,
            F=16384,
            gated=False,
            norms=1,
            norm_bias=True,
            biases=("mlp", "unembedding"),
        ),
    )
