"""Into what parts do arithmetic and memory fall? Two small records that all plans share.

Chapter: Training.
"""

from typing import NamedTuple


class ByClass(NamedTuple):
    """A figure for each class of operation: chips reach a share of their peak that differs between them."""

    matmul: float = 0.0  # products with the layers' dense weights
    attention: float = 0.0  # scores and weighted values
    experts: float = 0.0  # products with routed experts' weights
    head: float = 0.0  # the unembedding

    @property
    def layers(self) -> float:
        """All but the head, which only the last stage of a pipeline has."""
        return sum((self.matmul, self.attention, self.experts))

    @property
    def total(self) -> float:
        """All classes."""
        return sum(self)


class Widths(NamedTuple):
    """An amount for each token, by what splits it (section "Sequence parallelism" of the chapter)."""

    wide: float = 0.0  # as wide as the residual stream, D: split by sequence parallelism, else by nothing
    split: float = 0.0  # heads and hidden width, N·H and F: split by tensor parallelism
