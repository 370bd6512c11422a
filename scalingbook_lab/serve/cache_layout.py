"""Find how a TPU lays out and pads a KV cache, and whether writing one token copies the cache.

`row(K=8, H=64)` compiles the write of one token into a cache [B, S, K, H] of keys, and reads the layout, the
bytes and the cycles from the compiled program. Chapter: Inference.
"""

import math
import re
from dataclasses import dataclass

import jax
from jax import lax

from scalingbook_lab.compiler import aot
from scalingbook_lib.units import BF16, DType, Result, binary

NAMES = "BSKH"
CACHE = "C[B, S, K, H]"


@dataclass(frozen=True, slots=True)
class CacheLayout(Result):
    """A cache into which one token is written; `order` names its dimensions, with the one on the lanes last.

    `stored` and `copied` are bytes; `cycles` is the compiler's estimate of the write.
    """

    shape: tuple[int, ...]
    dtype: DType
    order: str
    tile: str
    stored: int
    copied: int
    cycles: int

    @property
    def unpadded_bytes(self) -> float:
        """The bytes of the cache without padding."""
        return math.prod(self.shape) * self.dtype.bytes

    @property
    def padding(self) -> float:
        """The ratio of stored bytes to unpadded bytes."""
        return self.stored / self.unpadded_bytes

    def __str__(self) -> str:
        shape = ", ".join(f"{name}={n:,}" for name, n in zip(NAMES, self.shape, strict=True))
        copied = f"{binary(self.copied)} copied" if self.copied else "nothing copied"
        return (
            f"{self.dtype} [{shape}] as {self.order} in tiles {self.tile}: {binary(self.stored)}, "
            f"{self.padding:.3g} times the unpadded size; {copied}, {self.cycles:,} cycles"
        )


def row(
    K: int,
    H: int,
    *,
    B: int = 4,
    S: int = 8192,
    dtype: DType = BF16,
    donate: bool = True,
    topology: str = "v5e:1x1",
) -> CacheLayout:
    """Return the layout of a cache into which one token is written.

    With `donate`, the result reuses the cache's memory.
    """
    program = aot.compile(
        _put,
        CACHE,
        "X[B, T, K, H]",
        out=CACHE,
        topology=topology,
        dtype=dtype,
        donate=(0,) if donate else (),
        B=B,
        S=S,
        T=1,
        K=K,
        H=H,
    )
    order, tile = _layout(program.text, (B, S, K, H))
    m = program.memory
    copied = m.results - m.aliased + m.temporaries
    return CacheLayout((B, S, K, H), dtype, order, tile, m.results, copied, program.cycles)


def _put(cache: jax.Array, token: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice_in_dim(cache, token, cache.shape[1] // 2, 1)


def _layout(text: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Return the dimensions in memory order, slowest first, and the tile."""
    dims = ",".join(map(str, shape))
    # `bf16[4,8192,8,128]{3,2,1,0:T(8,128)(2,1)}`: the order of the dimensions, then the tiles of 8 × 128
    # numbers, in which two rows of 16-bit numbers share one row of 32 bits
    found = re.search(rf"\w+\[{dims}\]\{{([\d,]+):((?:T?\([\d,]+\))+)", text)
    assert found is not None, "a compiled program names the layout of its arguments"
    # minor_to_major: the first number is the dimension on the lanes, the last one the slowest dimension
    return "".join(NAMES[int(k)] for k in reversed(found[1].split(","))), found[2]
