"""Two records of amounts per token: FLOPs by class of operation, and bytes by what shards them.

Chapter: Training.
"""

from typing import NamedTuple


class ByClass(NamedTuple):
    """One number per class of operation; each class reaches a different share of the peak."""

    matmul: float = 0.0  # matmuls with the layers' dense weights
    attention: float = 0.0  # dot-product attention
    experts: float = 0.0  # matmuls with routed experts' weights
    head: float = 0.0  # the unembedding

    @property
    def layers(self) -> float:
        """The sum without the head, which only the last pipeline stage has."""
        return sum((self.matmul, self.attention, self.experts))

    @property
    def total(self) -> float:
        """The sum of all classes."""
        return sum(self)


class Widths(NamedTuple):
    """An amount per token, by what shards it (see the section "Sequence parallelism" of the chapter)."""

    wide: float = 0.0  # width D of the residual stream: sharded by sequence parallelism only
    split: float = 0.0  # heads and hidden layer, N·H and F: sharded by tensor parallelism
