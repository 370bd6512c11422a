"""Collectives of weights and gradients as XLA places them in a compiled training step.

For plain JAX with sharding annotations, which the compiler partitions (Xu et al., arXiv 2105.04663). The
rules were read off programs compiled for TPU slices (`tests/lab/train/moved.csv`). Mesh axes have the letters
of `traffic`. Chapter: Training.
"""

from collections.abc import Callable, Iterator

from scalingbook_lib.training.buffers import in_layers
from scalingbook_lib.training.links import (
    BACK,
    EXCHANGE,
    GATHER,
    REDUCE,
    RING,
    SCATTER,
    Rates,
    TrainingCollective,
    row,
)
from scalingbook_lib.training.shape import TrainingShape
from scalingbook_lib.units import FP32

# bytes per logit: the matmul in bf16 and its softmax in fp32; both in fp32
SOFTMAX, WIDE_LOGIT = 6.0, 8.0
RING_WAYS, RING_TOKENS = 8, 1024


def weights(s: TrainingShape, rates: Rates, loop: bool) -> Iterator[TrainingCollective]:
    """Yield the collectives of weights: layers, embedding, unembedding, and new weights with ZeRO-1 and 2.

    XLA reduces a gradient into the sharding that the program gives its sum. Below ZeRO-3, only the optimizer
    state is sharded, so XLA scatters gradients as with ZeRO-3: for each microbatch, layer by layer.
    """
    plan = s.plan
    # without embedding and unembedding, and with them
    kinds = (("", in_layers(s), s.dense), ("expert ", s.expert, s.expert))
    for kind, layers, with_ends in kinds[: 1 + bool(s.expert)]:
        yield from _layers(s, rates, kind, layers, loop=loop)
        if plan.zero in (1, 2):  # in their stored dtype, replicated on every chip
            nbytes = plan.weights.bytes * with_ends
            yield from _sharing(s, rates, kind)(f"new {kind}weights", GATHER, "fwd", nbytes, 1)
    yield from _lookup(s, rates)
    yield from _head(s, rates)
    if plan.tp > 1 and _wide_logits(s):  # the head's input gradients are sent in fp32, twice the bytes
        what = SCATTER if plan.sequence_parallel else REDUCE
        nbytes = plan.activations.bytes * s.t * s.work.model.D
        yield row(rates, "gradients of wide logits", what, "Y", "bwd", n=plan.tp, nbytes=nbytes, times=s.m)


def _layers(
    s: TrainingShape, rates: Rates, kind: str, params: float, *, loop: bool
) -> Iterator[TrainingCollective]:
    """Yield the collectives of the layers' weights and gradients.

    In a loop over layers, gradients are reduced over the replicas for every microbatch, because XLA does not
    move a reduction out of two nested loops. If the layers are unrolled and keep all activations, the last
    one also keeps its gathered weights. Weights for recomputation are gathered first, in one piece.
    """
    n, again = s.stages.layers, s.plan.replays
    shared, ring, back = _sharing(s, rates, kind), *((RING, BACK) if _in_rings(s) else (GATHER, SCATTER))
    twice = n if loop or s.plan.remat != "none" else n - 1
    if s.plan.zero == 3:
        each, second = s.moved * params / n, GATHER if again else ring
        yield from shared(f"{kind}weights", ring, "fwd", each, s.m * n)  # M
        yield from shared(f"{kind}weights", second, "bwd", each, s.m * twice)  # and M again
    # M, in the type that gradients are summed in
    yield from shared(f"{kind}gradients", back, "bwd", _reduced(s) * params / n, s.m * n)
    yield from _copies(s, rates, f"{kind}gradients", params, kind=kind, parts=n, each=loop)


def _lookup(s: TrainingShape, rates: Rates) -> Iterator[TrainingCollective]:
    """Yield the collectives of the embedding, which exchange the vectors that were looked up.

    The table stays sharded: every chip looks up its shard of D for all tokens. The gradients are exchanged as
    well, or gathered with tensor parallelism. Below ZeRO-3, every chip holds all of D, so only the gradients
    are exchanged. A table that is tied to the head has two gradients, and each is reduced over the replicas
    separately.
    """
    plan, shared = s.plan, _sharing(s, rates)
    # [tokens of all chips that share the table, D]; each chip has its shard of D
    nbytes = plan.activations.bytes * s.t * s.work.model.D * s.shared / s.wide
    back = GATHER if plan.tp > 1 and not plan.sequence_parallel else EXCHANGE
    if plan.zero == 3:
        yield from shared("tokens looked up", EXCHANGE, "fwd", nbytes, s.m)
    yield from shared("gradients of tokens", back, "bwd", nbytes, s.m)
    # XLA moves the sum of a lookup's gradients out of the loop over microbatches only if its dtype is widened
    each = plan.gradients.bytes <= _reduced(s)
    yield from _copies(s, rates, "gradients of the lookup", _table(s), each=each)


def _head(s: TrainingShape, rates: Rates) -> Iterator[TrainingCollective]:
    """Yield the collectives of the unembedding, whose backward pass immediately follows its forward pass.

    It is gathered once, or with a chunked loss once for each chunk, forward and backward. Its gradient is a
    sum over sequences and tokens; if both are sharded, XLA all-reduces it and every chip keeps its shard.
    """
    shared, table, times = _sharing(s, rates), _table(s), s.m * _chunks(s)
    size = max(_reduced(s), FP32.bytes * _wide_logits(s))  # bytes per element of the gradient
    for when in ("fwd", "bwd")[: 1 + (_chunks(s) > 1)] if s.plan.zero == 3 else ():
        yield from shared("unembedding", GATHER, when, s.moved * table, times)
    back = BACK if _in_rings(s, _chunks(s)) else REDUCE if s.plan.cp > 1 and s.plan.fsdp > 1 else SCATTER
    yield from shared("its gradient", back, "bwd", size * table, times)
    each = s.work.model.tied and s.plan.gradients.bytes <= _reduced(s)
    yield from _copies(s, rates, "its gradient", table, size=size, each=each)


def _sharing(s: TrainingShape, rates: Rates, kind: str = "") -> Callable[..., Iterator[TrainingCollective]]:
    """Return a function that yields a collective over the chips that share weights, if there are several."""
    ways = _ways(s, kind)
    inside = s.plan.expert_ways * s.plan.ep if kind else s.plan.tp

    def over(name: str, what: str, when: str, nbytes: float, times: float) -> Iterator[TrainingCollective]:
        if ways > 1 and s.plan.zero:
            # XLA's rings have two more hops than there are shards to fetch
            nbytes *= (ways + 1) / (ways - 1) if what in (RING, BACK) else 1
            yield row(rates, name, what, "X", when, n=ways, nbytes=nbytes, times=times, inside=inside)

    return over


def _copies(
    s: TrainingShape,
    rates: Rates,
    name: str,
    params: float,
    *,
    kind: str = "",
    size: float = 0.0,
    parts: float = 1,
    each: bool = False,
) -> Iterator[TrainingCollective]:
    """Yield the reduction of gradients over replicas and pods, once per step or for each microbatch.

    A sum over several microbatches has the dtype of the stored gradients. Without ZeRO, all chips with the
    same weights are replicas, and a single all-reduce covers them.
    """
    plan, often, shared = s.plan, s.m if each else 1, _ways(s, kind)
    size = plan.gradients.bytes if s.m > 1 and not each else size or _reduced(s)
    # with ZeRO, each replica has already reduced its shard; without ZeRO, none has
    copies, parted = (plan.dp, shared) if plan.zero else (plan.dp * shared, 1)
    letters = "R" if plan.zero else "R" * (plan.dp > 1) + "X" * (shared > 1)
    among = ((letters, copies, s.chips // copies, parted), ("S", plan.dcn, s.chips, shared * plan.dp))
    for axes, n, inside, ways in among:
        if n > 1:
            nbytes, times = size * params / (ways * parts), often * parts
            yield row(rates, name, REDUCE, axes, "bwd", n=n, nbytes=nbytes, times=times, inside=inside)


def _ways(s: TrainingShape, kind: str = "") -> int:
    """Return the number of chips with the same weights, over which ZeRO shards them."""
    return s.expert_shared if kind else s.shared


def _in_rings(s: TrainingShape, parts: int = 1) -> bool:
    """Return whether XLA moves weights in rings that overlap with their matmuls (collective matmuls).

    This is observed, not documented. It holds for eight or more chips without replicas, if each has enough
    tokens in each of the `parts` of its matmul. Rings of four occur only on a single torus axis, and v6e
    needs twice the tokens; `hlo.comparison` names such differences.
    """
    return s.plan.dp * s.plan.dcn == 1 and s.shared >= RING_WAYS and s.t >= parts * RING_TOKENS


def _table(s: TrainingShape) -> float:
    """Return the elements of the larger of embedding and unembedding per chip, before ZeRO shards them."""
    return max(s.work.embedding, s.work.head) / s.plan.tp


def _chunks(s: TrainingShape) -> int:
    """Return the number of chunks of the loss, from the bytes of one chunk divided by all logits."""
    given = s.plan.logit_bytes
    return round(SOFTMAX / given) if given and given < s.plan.activations.bytes else 1  # of the loss


def _wide_logits(s: TrainingShape) -> bool:
    return (s.plan.logit_bytes or 0) >= WIDE_LOGIT


def _reduced(s: TrainingShape) -> float:
    """Return the bytes per element of a reduced gradient: by default at most those of the activations."""
    return s.reduced if s.plan.reduced else min(s.reduced, s.plan.activations.bytes)
