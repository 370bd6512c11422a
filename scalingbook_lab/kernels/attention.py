"""Flash attention as a Pallas kernel: softmax attention that never writes its scores to HBM.

A block of queries stays in VMEM while the keys and values of its head stream past, one block at a time. Of
the scores seen so far the kernel keeps the largest m, l = Σ exp(s - m) and o = Σ exp(s - m) · v, as
`arithmetic.online_softmax` does, and rescales l and o when a larger score arrives. The G query heads of a
group are rows of one block, so each key is read once for all of them. Under a causal mask, key blocks that no
query of the block attends to are neither fetched nor computed. Sources: Dao et al., FlashAttention (arXiv
2205.14135, 2307.08691); JAX's own kernel, jax.experimental.pallas.ops.tpu. Chapter: Transformers.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from scalingbook_lab.kernels.interpreter import Interpret
from scalingbook_lab.kernels.matmul import LANES
from scalingbook_lib.models.arithmetic import block_bytes
from scalingbook_lib.units import BF16, FP32, DType

MASKED = -0.7 * float(jnp.finfo(jnp.float32).max)  # with -inf, a fully masked row would become nan


def flash(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    block: int = 256,
    keys: int = 512,
    causal: bool = True,
    vmem_bytes: int | None = None,
    interpret: Interpret = False,
) -> jax.Array:
    """Q[K, G, T, H], K[K, S, H], V[K, S, H] → O[K, G, T, H], in tiles of `block` queries by `keys` keys.

    K is the number of key-value heads (over all sequences, if there are several); the T queries are the last
    of the S positions. A step needs `vmem_bytes(block, keys, G, H=H)` of VMEM. Raises ValueError if T exceeds
    S or if a block does not divide its dimension.
    """
    (K, G, T, H), S = q.shape, k.shape[1]
    _check_blocks(T, S, block, keys)
    last = functools.partial(_last, block=block, keys=keys, T=T, S=S, causal=causal)
    queries = pallas.BlockSpec((None, G, block, H), lambda head, i, j: (head, 0, i, 0))
    # under a causal mask, the steps after the last unmasked block name that block again: Pallas does not
    # refetch a block whose index is unchanged, so masked blocks cost no bytes
    passing = pallas.BlockSpec((None, keys, H), lambda head, i, j: (head, jnp.minimum(j, last(i)), 0))
    rows = G * block
    return pallas.pallas_call(
        functools.partial(_step, last=last, first=S - T, causal=causal),
        grid=(K, T // block, S // keys),
        in_specs=[queries, passing, passing],
        out_specs=queries,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[tpu.VMEM((rows, width), jnp.float32) for width in (LANES, LANES, H)],  # m, l, o
        compiler_params=tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"), vmem_limit_bytes=vmem_bytes
        ),
        interpret=interpret,
        name="flash_attention",
    )(q, k, v)


def plain(q: jax.Array, k: jax.Array, v: jax.Array, *, causal: bool = True) -> jax.Array:
    """Compute the same attention as XLA usually compiles it, with all scores [K, G, T, S] in memory."""
    T, S = q.shape[2], k.shape[1]
    scores = jnp.einsum("KGTH,KSH->KGTS", q, k, preferred_element_type=jnp.float32) / q.shape[3] ** 0.5
    if causal:
        scores = jnp.where(_mask(T, S, S - T, T=T), scores, MASKED)
    weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("KGTS,KSH->KGTH", weights, v, preferred_element_type=jnp.float32).astype(q.dtype)


def vmem_bytes(block: int, keys: int, G: int, *, H: int = 128, dtype: DType = BF16) -> int:
    """Return the VMEM of a step in bytes: `arithmetic.block_bytes` plus what a TPU kernel adds.

    Queries have two buffers instead of one, and so does the output; m and l take all lanes of a register.
    """
    rows = block * G
    added = 3 * dtype.bytes * rows * H + 2 * FP32.bytes * rows * (LANES - 1)
    return int(block_bytes(block, keys, G, H=H, dtype=dtype) + added)


def _step(q, k, v, o, *scratch, last: Any, first: int, causal: bool) -> None:
    """Attend from one block of queries, all heads of its group, to one block of keys and values."""
    m, l, sums = scratch
    i, j = pallas.program_id(1), pallas.program_id(2)
    (G, block, H), keys = q.shape, k.shape[0]

    @pallas.when(j == 0)
    def _() -> None:
        m[...] = jnp.full_like(m, MASKED)
        l[...] = jnp.zeros_like(l)
        sums[...] = jnp.zeros_like(sums)

    @pallas.when(j <= last(i))
    def _() -> None:
        scores = _matmul(q[...].reshape(G * block, H), k[...], along=1) / H**0.5
        if causal:
            mask = _mask(G * block, keys, first + i * block - j * keys, T=block)
            scores = jnp.where(mask, scores, MASKED)
        old = m[...]
        m[...] = jnp.maximum(old, scores.max(1, keepdims=True))
        # m and l are replicated in all 128 lanes: a column with one number per row would occupy whole
        # registers anyway, and could not be stored as a column
        weights = jnp.exp(scores - m[:, :1])
        shrink = jnp.exp(old - m[...])  # sums relative to the old m shrink when m grows
        l[...] = shrink * l[...] + weights.sum(1, keepdims=True)
        sums[...] = shrink[:, :1] * sums[...] + _matmul(weights.astype(v.dtype), v[...], along=0)

    # one division per output element at the end, as in arithmetic.online_softmax: l and o grew together
    @pallas.when(j == last(i))
    def _() -> None:
        o[...] = (sums[...] / l[:, :1]).astype(o.dtype).reshape(o.shape)


def _last(i: Any, *, block: int, keys: int, T: int, S: int, causal: bool) -> Any:
    """Return the last block of keys that the i-th block of queries attends to.

    (`//` would query the TPU type.)
    """
    return jax.lax.div(S - T + (i + 1) * block - 1, np.int32(keys)) if causal else S // keys - 1


def _mask(rows: int, S: int, first: Any, *, T: int) -> jax.Array:
    """Return which of S keys each row attends to.

    There are T queries per head, and the first one is `first` positions after key 0.
    """
    # the G heads of a group are stacked with T rows each, so a row's query is its index modulo T
    row, key = (jax.lax.broadcasted_iota(jnp.int32, (rows, S), axis) for axis in (0, 1))
    return jax.lax.rem(row, np.int32(T)) + first >= key


def _matmul(a: jax.Array, b: jax.Array, along: int) -> jax.Array:
    """Return a · b in fp32, contracted over the last dimension of a and dimension `along` of b."""
    return jax.lax.dot_general(a, b, (((1,), (along,)), ((), ())), preferred_element_type=jnp.float32)


def _check_blocks(T: int, S: int, block: int, keys: int) -> None:
    """Raise ValueError if T exceeds S, or if a block does not divide its dimension."""
    if T > S:
        raise ValueError(f"T = {T} queries are more than S = {S} positions; give the keys of all of them")
    for name, size, tile in (("T", T, block), ("S", S, keys)):
        if size % tile:
            raise ValueError(
                f"{name} = {size} is not divided by blocks of {tile}; choose a block that divides it"
            )
