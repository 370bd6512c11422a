"""Which part of the keys and values does a chip have, where more chips than heads share an attention?

Chapter: Inference.
"""

from math import ceil

BY_KV_HEAD = ("k", "v")  # weights of key-value heads; no head owns a latent vector's


def whole_heads(heads: int, ways: int) -> float:
    """The share of the chip with most heads: heads are not cut, and copied where ways are more."""
    return ceil(heads / ways) / heads
