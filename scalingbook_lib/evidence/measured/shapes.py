"""Which models do published runs name that the catalogue does not have? Built from their published shapes.

Chapters: Training, Inference.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from scalingbook_lib.evidence.resources import record
from scalingbook_lib.models import Transformer

GPT2_WORDS = 51200  # GPT-2's vocabulary filled up, where a source does not say


@cache
def others() -> tuple[Transformer, ...]:
    """All that published runs name and the catalogue does not have: the rows of `other_models.json`."""
    return tuple(_other(**fields) for fields in record("other_models"))


def _other(*, biases: Iterable[str] = (), **fields: Any) -> Transformer:
    return Transformer(**fields, biases=tuple(biases))


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
