"""The share of the KV heads on one chip when the tensor-parallel degree may exceed the number of heads.

Chapter: Inference.
"""

from math import ceil

BY_KV_HEAD = ("k", "v")  # weights of KV heads; a latent vector has no heads


def whole_heads(heads: int, ways: int) -> float:
    """The share of the chip with the most heads: heads are not split, but replicated if `ways` is larger."""
    return ceil(heads / ways) / heads
