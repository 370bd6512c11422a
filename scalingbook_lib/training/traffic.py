"""Which collectives does one training step need, over which axis, of how many bytes, and how often?

What one chip of the longest stage does. Letters: Y tensor, C context, X the chips that share weights (fsdp ·
cp), Z experts, P stages, R copies, K the tensor ways with one key-value head, S pods, H the host. Chapter:
Training.
"""

from collections.abc import Iterator

from scalingbook_lib.steps.placement import Rate
from scalingbook_lib.training import compiled
from scalingbook_lib.training.links import (
    BACK,
    COPY,
    EXCHANGE,
    GATHER,
    HOP,
    REDUCE,
    RING,
    SCATTER,
    Rates,
    TrainingCollective,
    row,
)
from scalingbook_lib.training.remat import named
from scalingbook_lib.training.shape import TrainingShape


def rows(s: TrainingShape, rates: Rates, loop: bool | None = None) -> list[TrainingCollective]:
    """Every collective of a plan; `loop` as in `memory`, None of what is not compiled."""
    plan = s.plan
    if loop is not None and plan.pp == 1 and not plan.frozen:
        found = [*compiled.weights(s, rates, loop)]
    else:
        found = [*_weights(s, rates, "", params=s.dense, ways=s.shared, inside=plan.tp)]
        if s.expert:  # where tensor ways do not split experts, they too hold the same ones
            inside = plan.expert_ways * plan.ep
            found += _weights(s, rates, "expert ", params=s.expert, ways=s.expert_shared, inside=inside)
    return found + activations(s, rates)


def activations(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Every collective but those of weights and of their gradients over the chips that share or copy them."""
    plan, found = s.plan, list[TrainingCollective]()
    for needed, moved in (
        (plan.tp > 1, _tensor),
        (s.kv and not plan.frozen, _copied_heads),
        (plan.cp > 1, context),
        (plan.ep > 1 and s.expert, _experts),
        (plan.pp > 1, _hops),
        (any(s.hosted), _offloaded),
    ):
        if needed:
            found += moved(s, rates)
    return found


def _weights(
    s: TrainingShape, rates: Rates, kind: str, *, params: float, ways: int, inside: int
) -> Iterator[TrainingCollective]:
    """FSDP gathers before use, forward and backward, and scatters gradients: for each microbatch, each layer.

    ZeRO-1 and 2 gather the new weights once a step; ZeRO-2's gradients are scattered with each microbatch, as
    only shards are kept; ZeRO-1's and plain DP's once. Copies (dp, then pods) sum the shards, once.
    """
    plan, n, zero = s.plan, s.stages.layers, s.plan.zero
    weights, gradients = f"{kind}weights", f"{kind}gradients"
    moved, summed = s.moved * params / n, s.reduced * params / n  # one layer's

    def shards(name: str, what: str, when: str, nbytes: float, **how: bool) -> TrainingCollective:
        """Over the chips that share: with each microbatch, or once a step."""
        times = n if how.get("once") else s.m * n  # one a layer
        return row(rates, name, what, "X", when, n=ways, nbytes=nbytes, times=times, inside=inside, **how)

    def copies(axes: str, ways: int, nbytes: float, inside: int) -> TrainingCollective:
        """The shards' sum over copies."""
        return row(
            rates, gradients, REDUCE, axes, "bwd", n=ways, nbytes=nbytes, times=n, inside=inside, once=True
        )

    if plan.frozen:  # no gradients, and no new weights
        for when in ("fwd", "bwd") if ways > 1 and zero == 3 else ():
            yield shards(weights, GATHER, when, moved, overlappable=plan.prefetch or when == "fwd")
        return
    if ways > 1 and zero == 0:  # plain DP: 2M a step, of M bytes of weights
        yield shards(gradients, REDUCE, "bwd", summed, once=True)
    elif ways > 1:
        yield shards(weights, GATHER, "fwd", moved, once=zero < 3)  # M
        if zero == 3:  # and M again: gathered ones are not stored
            yield shards(weights, GATHER, "bwd", moved, overlappable=plan.prefetch)
        yield shards(gradients, SCATTER, "bwd", summed, once=zero < 2)  # M ("Fully sharded: ZeRO")
    if plan.dp > 1:  # HSDP: each chip sums its own shard with those of the other copies
        yield copies("R", plan.dp, summed / ways, plan.tp * s.shared * plan.pp)
    if plan.dcn > 1:  # and over pods the part of it that the copies' reduce-scatter leaves to it
        yield copies("S", plan.dcn, summed / (ways * plan.dp), s.chips)


def _tensor(s: TrainingShape, rates: Rates) -> Iterator[TrainingCollective]:
    """Inputs gathered, outputs scattered, both ways; inputs once more for the weights' gradients.

    Without sequence parallelism, an all-reduce of the outputs, and of the inputs' gradients. Full
    rematerialization does the forward pass again but for each layer's last output, and for what is kept. The
    vocabulary counts as one pair more, and not at all where there are stages.
    """
    plan, w, model = s.plan, s.work, s.work.model
    ends = 1.0 if plan.pp == 1 else 0.0  # embedding and unembedding, a pair together
    again = plan.replays and "o" not in named(plan.remat).kept  # what is kept is not summed again
    # Done again in full: of each layer attention's output alone, as the MLP's input needs it.
    kinds = [("tensor", s.share * w.pairs + ends, s.share * model.L * (model.norms > 1), 1)]
    if plan.expert_ways > 1 and w.expert_pairs and model.experts:
        kinds.append(("tensor, experts", s.share * w.expert_pairs, 0.0, model.experts.k))
    for name, pairs, more, copies in kinds:
        # The array is [t, D], whatever the ways: each chip takes in 1 - 1/Y of it.
        nbytes = plan.activations.bytes * s.t * model.D * copies
        moved = {"n": plan.tp, "nbytes": nbytes, "overlappable": plan.collective_matmul}
        for what, when, times in _pair(plan.sequence_parallel, pairs, more if again else 0.0):
            yield row(rates, name, what, "Y", when, times=s.m * times, **moved)


def _copied_heads(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Chips with the same key-value head have other queries each: the gradients of its weights add up.

    Once a step, of the shards, as copies' are. Priced as a sum over all tensor ways, whose part they are.
    """
    nbytes = s.plan.gradients.bytes * s.kv / s.shared / s.stages.layers  # one layer's
    among = {"n": s.kv_copies, "nbytes": nbytes, "times": s.stages.layers, "once": True}

    def tensor(_axes: str, what: str, inside: int, _n: int) -> Rate:
        return rates("Y", what, inside, s.plan.tp)

    return [row(tensor, "gradients of copied heads", REDUCE, "K", "bwd", **among)]


def _pair(sequence: bool, pairs: float, again: float) -> tuple[tuple[str, str, float], ...]:
    """What, when, and how often with each microbatch."""
    if not sequence:
        # shoeybi2019megatron: the two conjugate operators, f and g
        return ((REDUCE, "fwd", pairs), (REDUCE, "bwd", pairs + again))
    return (
        (GATHER, "fwd", pairs),  # In
        (SCATTER, "fwd", pairs),  # Out
        (GATHER, "bwd", 2 * pairs),  # dOut, and In for the gradients of the weights
        (SCATTER, "bwd", pairs + again),  # dIn
    )


def context(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Keys and values of the whole sequence pass every chip, backward once more and with their gradients.

    A ring moves what an all-gather does, piece by piece beside the arithmetic. Ulysses exchanges queries,
    keys, values and outputs between sequence and heads: four all-to-alls, four for their gradients, and where
    the forward pass is done again its four once more, as compiled (`tests/lab/train/test_training_experts`).
    """
    plan, w, cp = s.plan, s.work, s.plan.cp
    attention = w.model.softmax_layers
    n = s.m * s.share * attention  # layers with attention on this stage, times microbatches
    each = plan.activations.bytes * s.t * cp / attention  # bytes of an element of all tokens, in one layer

    def over(name: str, what: str, when: str, nbytes: float, times: float) -> TrainingCollective:
        hides = plan.context == "ring"
        return row(
            rates, name, what, "C", when, n=cp, nbytes=nbytes, times=times, inside=plan.tp, overlappable=hides
        )

    if plan.context == "ulysses":
        # `heads` has queries, keys, values and outputs: a quarter in the mean of the four
        nbytes = each * w.heads / plan.tp / 4
        often = {"fwd": 4 * n, "bwd": (8 if plan.replays else 4) * n}
        return [over("heads for tokens", EXCHANGE, when, nbytes, times) for when, times in often.items()]
    # 4 T K H bytes in bf16 without tensor ways ("Splitting the sequence")
    nbytes = each * w.kv / min(plan.tp, w.model.K)
    gather, scatter = (RING, BACK) if plan.context == "ring" else (GATHER, SCATTER)
    return [
        over("keys and values", gather, "fwd", nbytes, n),
        over("keys and values", gather, "bwd", nbytes, n),
        over("their gradients", scatter, "bwd", nbytes, n),
    ]


def _experts(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Each token to its k experts and back, both ways (twice more where all is recomputed)."""
    plan, model = s.plan, s.work.model
    assert model.experts
    # 2 b k D bytes from each chip in bf16; the array is that of all ep chips
    nbytes = plan.activations.bytes * s.t / s.wide * model.D * model.experts.k * plan.ep
    name, n = "tokens to experts and back", s.m * s.stages.experts
    inside = plan.tp if plan.expert_ways > 1 else 1
    hides = plan.schedule == "dualpipe" and plan.pp > 1  # beside the other way's arithmetic
    moved = {"n": plan.ep, "nbytes": nbytes, "inside": inside, "overlappable": hides}
    # there and back, twice where the forward pass is done again
    often = {"fwd": 2 * n, "bwd": (4 if plan.replays else 2) * n}
    return [row(rates, name, EXCHANGE, "Z", when, times=times, **moved) for when, times in often.items()]


def _hops(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """To the next stage, one hop for each microbatch and chunk; and gradients back."""
    plan = s.plan
    nbytes = plan.activations.bytes * s.t * s.work.model.D / s.wide  # 2D bytes a token in bf16
    moved = {"n": plan.pp, "nbytes": nbytes, "times": s.m * plan.chunks, "inside": plan.tp * s.shared}
    return [row(rates, "to the next stage", HOP, "P", when, **moved) for when in ("fwd", "bwd")]


def _offloaded(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Activations out to the host's memory, and back for the backward pass, layer by layer."""
    nbytes = s.t / s.work.model.L * s.of_token(s.hosted)  # one layer's
    moved = {"n": 1, "nbytes": nbytes, "times": s.m * s.stages.layers}
    return [row(rates, "activations and the host", COPY, "H", when, **moved) for when in ("fwd", "bwd")]
