"""Online softmax, and the arithmetic intensity of flash attention.

Of the scores seen so far, keep three things: their maximum, the sum of exp(score - maximum), and the sum of
the values weighted in the same way. Two such states merge into one, in any order and on any device: this is
flash attention within a chip and ring attention between chips. The recurrence is Milakov and Gimelshein's
("Online normalizer calculation for softmax", 2018).

So flash attention reads the queries, keys and values once and writes the output once; scores and
probabilities stay on the chip. For long prompts the bytes are those of keys and values per query block, and
in decoding those of the cache: then G queries share what is read. Chapters: Transformers; Inference.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.models import Latent
from scalingbook_lib.units import BF16, DType, Result, count, require_min, si


@dataclass(frozen=True, slots=True)
class SoftmaxState(Result):
    """The running state over the scores seen: m, the maximum; l = Σ exp(s - m); o = Σ exp(s - m) · value."""

    m: float
    l: float
    o: tuple[float, ...] = ()

    def __add__(self, other: "SoftmaxState") -> "SoftmaxState":
        """The merged state: both sums are rescaled to the larger m. Associative and commutative."""
        # exp(s - m) = exp(s - old) · exp(old - m): what was summed over an old largest is only scaled
        m = max(self.m, other.m)
        mine, theirs = _shrink(self.m, m), _shrink(other.m, m)
        merged = (mine * a + theirs * b for a, b in zip(self.o, other.o, strict=True))
        return SoftmaxState(m, mine * self.l + theirs * other.l, tuple(merged))

    @property
    def output(self) -> tuple[float, ...]:
        """The values weighted by the softmax; all 0 where every score was masked."""
        return tuple(x / self.l if self.l else 0.0 for x in self.o)

    @property
    def logsumexp(self) -> float:
        """m + log l: with the output, all that the backward pass needs of the scores."""
        return self.m + math.log(self.l) if self.l else -math.inf

    def __str__(self) -> str:
        output = f", output {', '.join(f'{x:.4g}' for x in self.output)}" if self.o else ""
        return f"m = {self.m:.4g}, l = {self.l:.4g}{output}"


@dataclass(frozen=True, slots=True)
class SoftmaxStep(Result):
    """One chunk of scores: its own state, and that of all chunks up to it."""

    start: int
    scores: tuple[float, ...]
    chunk: SoftmaxState
    seen: SoftmaxState
    rescale: float

    @property
    def stop(self) -> int:
        """The index of the first score after this chunk."""
        return self.start + len(self.scores)

    def __str__(self) -> str:
        scale = f"earlier sums × {self.rescale:.4g}" if self.start else "nothing earlier"
        return f"scores {self.start} to {self.stop - 1}: {scale}, then {self.seen}"


@dataclass(frozen=True, slots=True)
class OnlineSoftmax(Result):
    """All steps over one row of scores."""

    scores: tuple[float, ...]
    steps: tuple[SoftmaxStep, ...]

    @property
    def final(self) -> SoftmaxState:
        """The state after the last chunk."""
        return self.steps[-1].seen

    @property
    def weights(self) -> tuple[float, ...]:
        """The softmax of the row, from the last m and l; all 0 where every score was masked."""
        m, l = self.final.m, self.final.l
        return tuple(math.exp(s - m) / l if l else 0.0 for s in self.scores)

    def __str__(self) -> str:
        rescales = sum(step.rescale < 1 for step in self.steps[1:])  # a larger score came, and sums shrank
        steps = f"{len(self.steps)} chunks, {rescales} rescaled"
        return f"{count(len(self.scores))} scores in {steps}: {self.final}"


def online_softmax(
    scores: Sequence[float], chunk: int, values: Sequence[Sequence[float] | float] | None = None
) -> OnlineSoftmax:
    """The online softmax of one row, `chunk` scores at a time, with the weighted sum of `values` if given.

    A score of -inf is masked. ValueError where the lengths differ or `chunk` is below 1.
    """
    endless = any(math.isnan(s) or s == math.inf for s in scores)
    for broken, why in (
        (not scores, "no scores; give at least one"),
        (endless, "a score is nan or +inf; give finite scores, or -inf for one that is masked"),
        (chunk < 1, f"chunk = {chunk} holds no score; write at least 1"),
    ):
        if broken:
            raise ValueError(why)
    rows = _rows(values, len(scores))
    states = [_state(scores[i : i + chunk], rows[i : i + chunk]) for i in range(0, len(scores), chunk)]
    # the first chunk shrinks sums that are 0: there is no special case for the start
    steps, seen = [], SoftmaxState(-math.inf, 0.0, (0.0,) * len(rows[0]))
    for i, state in enumerate(states):
        before, seen = seen, seen + state
        part = tuple(map(float, scores[i * chunk : (i + 1) * chunk]))
        steps.append(SoftmaxStep(i * chunk, part, state, seen, _shrink(before.m, seen.m)))
    return OnlineSoftmax(tuple(map(float, scores)), tuple(steps))


def merge(states: Sequence[SoftmaxState]) -> SoftmaxState:
    """All states merged into one; the order does not matter."""
    return functools.reduce(SoftmaxState.__add__, states)


def _rows(values: Sequence[Sequence[float] | float] | None, n: int) -> list[tuple[float, ...]]:
    if values is None:
        return [()] * n
    rows = [(float(v),) if isinstance(v, int | float) else tuple(map(float, v)) for v in values]
    if len(rows) != n or len({len(row) for row in rows}) != 1:
        raise ValueError(f"{len(rows)} values for {n} scores; give one value, of one length, for each score")
    return rows


def _state(scores: Sequence[float], rows: Sequence[tuple[float, ...]]) -> SoftmaxState:
    m = max(scores)
    weights = [_shrink(s, m) for s in scores]
    o = tuple(sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*rows, strict=True))
    return SoftmaxState(float(m), sum(weights), o)


def _shrink(old: float, new: float) -> float:
    """exp(old - new), and 0 where the score was masked."""
    # of a row with nothing but masked scores both are -inf, and their difference would be nan
    return 0.0 if old == -math.inf else math.exp(old - new)


@dataclass(frozen=True, slots=True)
class Intensity(Result):
    """FLOPs and bytes of one layer's attention for one sequence and one key-value head."""

    flops: float
    query_bytes: float
    cache_bytes: float

    @property
    def bytes(self) -> float:
        """The bytes of queries read, outputs written, and keys and values read."""
        return self.query_bytes + self.cache_bytes

    @property
    def flops_per_byte(self) -> float:
        """The arithmetic intensity: compute-bound where it exceeds the chip's ridge point."""
        return self.flops / self.bytes

    def __str__(self) -> str:
        ends, cache = si(self.query_bytes, "B"), si(self.cache_bytes, "B")
        parts = f"{ends} of queries and outputs, {cache} of keys and values"
        return f"{self.flops_per_byte:.4g} FLOPs/byte: {si(self.flops, 'FLOPs')} for {parts}"


def attention_intensity(
    T: int,
    S: int,
    G: int,
    *,
    H: int = 128,
    dtype: DType = BF16,
    cache: DType | None = None,
    block: int | None = None,
    causal: bool = False,
) -> Intensity:
    """Q[T, G, H] · K[S, H] → scores · V[S, H] → O[T, G, H]: intensity T·S·G/(T·G + S) in bf16.

    `block` queries are on the chip at a time, so keys and values are read once for each block; by default,
    once in all. `cache` is the type of keys and values. With `causal`, a kernel skips what is masked:
    half the FLOPs of a square, and with blocks half of the reading too.
    """
    require_min(1, T=T, S=S, G=G, H=H)
    # times that K and V are read (dao2022flashattention)
    blocks = 1 if block is None else math.ceil(T / block)
    # the i-th of T queries meets S - T + 1 + i keys: T - 1 fewer in the first than in the last
    useful = 1 - (T - 1) / (2 * S) if causal else 1
    seen = useful if blocks > 1 else 1
    return Intensity(
        flops=4 * T * S * G * H * useful,  # scores and values, a multiply and an add each
        query_bytes=2 * dtype.bytes * T * G * H,  # read Q, write O
        cache_bytes=2 * (cache or dtype).bytes * S * H * blocks * seen,  # read K and V for every block
    )


def latent_intensity(
    latent: Latent, N: int, S: int, *, T: int = 1, dtype: DType = BF16, cache: DType | None = None
) -> Intensity:
    """The intensity of absorbed MLA decoding: all N heads share one
    latent vector per position, key and value at once.
    """
    require_min(1, T=T, S=S, N=N)
    key, value = latent.kv_rank + latent.rope, latent.kv_rank
    return Intensity(
        flops=2 * T * S * N * (key + value),  # scores over the whole vector, values over its first part
        query_bytes=dtype.bytes * T * N * (key + value),  # read a query, write an output
        cache_bytes=(cache or dtype).bytes * S * key,  # read once
    )


def prefill_tokens(ridge: float, G: int) -> float:
    """The prompt length (T = S) above which attention is compute-
    bound: T·G/(G + 1) = ridge, in bf16, not causal.
    """
    require_min(1, G=G)
    return ridge * (G + 1) / G


def query_block(ridge: float, G: int, cache: DType = BF16) -> float:
    """The query block above which reading K and V keeps up, for long T: 2·block·G/bytes = ridge."""
    require_min(1, G=G)
    # 4 b S G H FLOPs for each 2 c S H bytes of keys and values
    return ridge * cache.bytes / (2 * G)


def block_bytes(
    block: int, keys: int, G: int, *, H: int = 128, dtype: DType = BF16, buffers: int = 2
) -> float:
    """The on-chip bytes of a flash kernel for one key-value head.

    Queries of the block; keys and values of the next `buffers` blocks; scores, the weighted sum of values
    and, for each query row, m and l in fp32.
    """
    require_min(1, block=block, keys=keys, G=G, H=H)
    rows = block * G
    # Q; K and V, twice where one block comes while one is used
    tiles = dtype.bytes * (rows * H + buffers * 2 * keys * H)
    return tiles + 4 * (rows * keys + rows * H + 2 * rows)  # fp32
