"""What is one kind of weight: its shape, how many there are, and how many of them a token meets?

Chapter: Transformers.
"""

from dataclasses import dataclass
from math import prod

from scalingbook_lib.units import Told

PARTS = (
    "embedding",
    "positions",
    "attention",
    "linear attention",
    "mlp",
    "experts",
    "shared experts",
    "router",
    "norms",
    "biases",
    "unembedding",
)


@dataclass(frozen=True, slots=True)
class Weight(Told):
    """All weights of one name and shape: `copies` are stored, `active_copies` of them serve one token.

    `matmul`: a token's vector is multiplied by it (an embedding is looked up, a norm or a bias is not a
    product). `tied`: it is the embedding matrix once more, so it stores nothing, yet is multiplied by.
    """

    part: str
    name: str
    shape: tuple[int, ...]
    copies: int
    active_copies: int
    matmul: bool = False
    tied: bool = False

    @property
    def size(self) -> int:
        """The elements of one copy."""
        return prod(self.shape)

    @property
    def params(self) -> int:
        """The elements of all copies."""
        return self.size * self.copies

    @property
    def active_params(self) -> int:
        """The elements that serve one token."""
        return self.size * self.active_copies

    @property
    def matmuls(self) -> int:
        """How many copies one token is multiplied by in a forward pass."""
        return (1 if self.tied else self.active_copies) if self.matmul else 0

    @property
    def flops_per_token(self) -> int:
        """A multiply and an add for each element that the token is multiplied by."""
        return 2 * self.size * self.matmuls

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        stored = "the embedding again" if self.tied else f"{self.params:,} parameters"
        return f"{self.name}[{shape}] × {self.copies:,} ({self.part}): {stored}"
