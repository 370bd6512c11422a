"""What does a step move that a compiler has written? The same weights and gradients, in other places.

Of plain JAX with its arrays annotated, which GSPMD splits (Xu et al., arXiv 2105.04663); read from programs
compiled for TPU slices, `tests/lab/train/moved.csv`. Letters as in `traffic`. Chapter: Training.
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

# Bytes for each logit: a product in bf16 and its softmax in fp32; both in fp32
SOFTMAX, WIDE_LOGIT = 6.0, 8.0
RING_WAYS, RING_TOKENS = 8, 1024


def weights(s: TrainingShape, rates: Rates, loop: bool) -> Iterator[TrainingCollective]:
    """Layers, then the two ends, which no loop over layers holds; with ZeRO-1 and 2 all new weights, once.

    XLA sums where it is told that sums lie: below ZeRO-3 it is told so of the optimizer's state alone, and
    scatters gradients into that as with ZeRO-3, for each microbatch, layer by layer.
    """
    plan = s.plan
    # without the ends, and with them
    kinds = (("", in_layers(s), s.dense), ("expert ", s.expert, s.expert))
    for kind, layers, with_ends in kinds[: 1 + bool(s.expert)]:
        yield from _layers(s, rates, kind, layers, loop=loop)
        if plan.zero in (1, 2):  # as they are stored, whole on every chip
            nbytes = plan.weights.bytes * with_ends
            yield from _sharing(s, rates, kind)(f"new {kind}weights", GATHER, "fwd", nbytes, 1)
    yield from _lookup(s, rates)
    yield from _head(s, rates)
    if plan.tp > 1 and _wide_logits(s):  # its inputs' gradients leave in fp32: as many bytes again
        what = SCATTER if plan.sequence_parallel else REDUCE
        nbytes = plan.activations.bytes * s.t * s.work.model.D
        yield row(rates, "gradients of wide logits", what, "Y", "bwd", n=plan.tp, nbytes=nbytes, times=s.m)


def _layers(
    s: TrainingShape, rates: Rates, kind: str, params: float, *, loop: bool
) -> Iterator[TrainingCollective]:
    """A loop over layers sums them over the copies with each microbatch: XLA moves no sum out of two loops.

    Of layers that are written out and keep all activations the last keeps its gathered weights as well. What
    a backward pass does again, it gathers for first, and whole.
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
    """Every chip looks up its part of D for all tokens: these are exchanged, and the table stays.

    Their gradients are exchanged as well; with tensor ways they are gathered. Below ZeRO-3 every chip has all
    of D, and the gradients' way alone is left. A table that is the head too has two gradients, and each is
    summed over copies by itself.
    """
    plan, shared = s.plan, _sharing(s, rates)
    # [tokens of all chips that share the table, D], each chip its part of D
    nbytes = plan.activations.bytes * s.t * s.work.model.D * s.shared / s.wide
    back = GATHER if plan.tp > 1 and not plan.sequence_parallel else EXCHANGE
    if plan.zero == 3:
        yield from shared("tokens looked up", EXCHANGE, "fwd", nbytes, s.m)
    yield from shared("gradients of tokens", back, "bwd", nbytes, s.m)
    # XLA moves the sum of a lookup's gradients out of the loop over microbatches only where it is widened
    each = plan.gradients.bytes <= _reduced(s)
    yield from _copies(s, rates, "gradients of the lookup", _table(s), each=each)


def _head(s: TrainingShape, rates: Rates) -> Iterator[TrainingCollective]:
    """The unembedding is gathered once: its backward pass follows at once on its forward pass.

    A loss in chunks gathers it for each, and again for each in the backward pass. Its gradient is a sum over
    sequences and tokens: where both are split, XLA sums it whole, and every chip keeps its part.
    """
    shared, table, times = _sharing(s, rates), _table(s), s.m * _chunks(s)
    size = max(_reduced(s), FP32.bytes * _wide_logits(s))  # bytes of an element of the gradient
    for when in ("fwd", "bwd")[: 1 + (_chunks(s) > 1)] if s.plan.zero == 3 else ():
        yield from shared("unembedding", GATHER, when, s.moved * table, times)
    back = BACK if _in_rings(s, _chunks(s)) else REDUCE if s.plan.cp > 1 and s.plan.fsdp > 1 else SCATTER
    yield from shared("its gradient", back, "bwd", size * table, times)
    each = s.work.model.tied and s.plan.gradients.bytes <= _reduced(s)
    yield from _copies(s, rates, "its gradient", table, size=size, each=each)


def _sharing(s: TrainingShape, rates: Rates, kind: str = "") -> Callable[..., Iterator[TrainingCollective]]:
    """What makes a row over the chips that share weights of a kind, where more than one does."""
    ways = _ways(s, kind)
    inside = s.plan.expert_ways * s.plan.ep if kind else s.plan.tp

    def over(name: str, what: str, when: str, nbytes: float, times: float) -> Iterator[TrainingCollective]:
        if ways > 1 and s.plan.zero:
            # XLA's rings have two hops more than there are pieces to bring
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
    """The sum over copies and pods: as it is, or of all microbatches in the type of their sum.

    Without ZeRO all chips that hold the same are copies, and one sum goes over all of them.
    """
    plan, often, shared = s.plan, s.m if each else 1, _ways(s, kind)
    size = plan.gradients.bytes if s.m > 1 and not each else size or _reduced(s)
    # With ZeRO each copy has summed its shard before; without, no chip has.
    copies, parted = (plan.dp, shared) if plan.zero else (plan.dp * shared, 1)
    letters = "R" if plan.zero else "R" * (plan.dp > 1) + "X" * (shared > 1)
    among = ((letters, copies, s.chips // copies, parted), ("S", plan.dcn, s.chips, shared * plan.dp))
    for axes, n, inside, ways in among:
        if n > 1:
            nbytes, times = size * params / (ways * parts), often * parts
            yield row(rates, name, REDUCE, axes, "bwd", n=n, nbytes=nbytes, times=times, inside=inside)


def _ways(s: TrainingShape, kind: str = "") -> int:
    """Chips that hold the same weights, and share them with ZeRO."""
    return s.expert_shared if kind else s.shared


def _in_rings(s: TrainingShape, parts: int = 1) -> bool:
    """Does XLA move weights in rings beside their products, a collective matmul? As seen, not documented.

    Of eight chips and more, with no copies, where each has some tokens in all `parts` of its product. Rings
    of four are on one axis of a torus alone, and v6e asks for twice the tokens: `hlo.comparison` names what
    differs.
    """
    return s.plan.dp * s.plan.dcn == 1 and s.shared >= RING_WAYS and s.t >= parts * RING_TOKENS


def _table(s: TrainingShape) -> float:
    """The elements of the vocabulary's matrix on a chip, before they are shared."""
    return max(s.work.embedding, s.work.head) / s.plan.tp


def _chunks(s: TrainingShape) -> int:
    """Into how many parts a loss goes, from the bytes of one of them over all logits."""
    given = s.plan.logit_bytes
    return round(SOFTMAX / given) if given and given < s.plan.activations.bytes else 1  # of the loss


def _wide_logits(s: TrainingShape) -> bool:
    return (s.plan.logit_bytes or 0) >= WIDE_LOGIT


def _reduced(s: TrainingShape) -> float:
    """Weights are rounded before their products: so are the gradients that come from these."""
    return s.reduced if s.plan.reduced else min(s.reduced, s.plan.activations.bytes)
