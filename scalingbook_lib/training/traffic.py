"""The collectives of one training step: mesh axis, bytes, and how often each runs.

They are those of one chip of the longest pipeline stage. Mesh axes have letters: Y tensor parallelism, C
context parallelism, X the fsdp · cp chips that shard weights, Z experts, P pipeline stages, R replicas, K the
chips of a TP group with the same KV head, S pods, H the host. Chapter: Training.
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
from scalingbook_lib.training.remat import named, replayed_attention, replayed_share
from scalingbook_lib.training.shape import TrainingShape


def rows(s: TrainingShape, rates: Rates, loop: bool | None = None) -> list[TrainingCollective]:
    """Return every collective of a plan; `loop` is as in `memory`."""
    plan = s.plan
    if loop is not None and plan.pp == 1 and not plan.frozen:
        found = [*compiled.weights(s, rates, loop)]
    else:
        found = [*_weights(s, rates, "", params=s.dense, ways=s.shared, inside=plan.tp)]
        if s.expert:  # if experts are not sharded by TP, the chips of a TP group share them too
            inside = plan.expert_ways * plan.ep
            found += _weights(s, rates, "expert ", params=s.expert, ways=s.expert_shared, inside=inside)
    return found + activations(s, rates)


def activations(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return every collective except those of weights and their gradients over ZeRO shards and replicas."""
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
    """Yield the collectives of weights and of their gradients.

    FSDP gathers weights before use, forward and backward, and reduce-scatters gradients, for each microbatch
    and layer. ZeRO-1 and 2 gather the new weights once per step. ZeRO-2 reduce-scatters gradients for every
    microbatch, because only shards are kept; ZeRO-1 and plain DP reduce them once per step. Replicas (dp,
    then pods) reduce the shards once per step.
    """
    plan, n, zero = s.plan, s.stages.layers, s.plan.zero
    weights, gradients = f"{kind}weights", f"{kind}gradients"
    moved, summed = s.moved * params / n, s.reduced * params / n  # per layer

    def shards(name: str, what: str, when: str, nbytes: float, **how: bool) -> TrainingCollective:
        """Return a collective over the chips that shard weights, per microbatch or once per step."""
        times = n if how.get("once") else s.m * n  # one per layer
        return row(rates, name, what, "X", when, n=ways, nbytes=nbytes, times=times, inside=inside, **how)

    def copies(axes: str, ways: int, nbytes: float, inside: int) -> TrainingCollective:
        """Return the all-reduce of the gradient shards over replicas."""
        return row(
            rates, gradients, REDUCE, axes, "bwd", n=ways, nbytes=nbytes, times=n, inside=inside, once=True
        )

    if plan.frozen:  # no gradients, and no new weights
        for when in ("fwd", "bwd") if ways > 1 and zero == 3 else ():
            yield shards(weights, GATHER, when, moved, overlappable=plan.prefetch or when == "fwd")
        return
    if ways > 1 and zero == 0:  # plain DP: 2M per step, for M bytes of weights
        yield shards(gradients, REDUCE, "bwd", summed, once=True)
    elif ways > 1:
        yield shards(weights, GATHER, "fwd", moved, once=zero < 3)  # M
        if zero == 3:  # and M again: gathered weights are not kept
            yield shards(weights, GATHER, "bwd", moved, overlappable=plan.prefetch)
        yield shards(gradients, SCATTER, "bwd", summed, once=zero < 2)  # M
    if plan.dp > 1:  # HSDP: each chip reduces its own shard with those of the other replicas
        yield copies("R", plan.dp, summed / ways, plan.tp * s.shared * plan.pp)
    if plan.dcn > 1:  # and over pods, the part that the replicas' reduce-scatter leaves to the chip
        yield copies("S", plan.dcn, summed / (ways * plan.dp), s.chips)


def _tensor(s: TrainingShape, rates: Rates) -> Iterator[TrainingCollective]:
    """Yield the collectives of tensor parallelism.

    Inputs are gathered and outputs reduce-scattered, forward and backward, and inputs are gathered again for
    the gradients of the weights. Without sequence parallelism, outputs and the gradients of inputs are
    all-reduced. Full rematerialization repeats those of the forward pass, except for each layer's last output
    and for saved tensors. Embedding and unembedding count as one more pair, or with pipeline stages not at
    all.
    """
    plan, w, model = s.plan, s.work, s.work.model
    ends = 1.0 if plan.pp == 1 else 0.0  # embedding and unembedding together are a pair
    # saved tensors are not reduced again
    again = 0.0 if "o" in named(plan.remat).kept else replayed_share(model, plan.remat)
    # full recomputation repeats only attention's output, which the MLP's input needs
    kinds = [("tensor", s.share * w.pairs + ends, s.share * w.paired_layers, 1)]
    if plan.expert_ways > 1 and w.expert_pairs and model.experts:
        kinds.append(("tensor, experts", s.share * w.expert_pairs, 0.0, model.experts.k))
    for name, pairs, more, copies in kinds:
        # the array is [t, D] for any degree; each chip receives 1 - 1/Y of it
        nbytes = plan.activations.bytes * s.t * model.D * copies
        moved = {"n": plan.tp, "nbytes": nbytes, "overlappable": plan.collective_matmul}
        for what, when, times in _pair(plan.sequence_parallel, pairs, again * more):
            yield row(rates, name, what, "Y", when, times=s.m * times, **moved)


def _copied_heads(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return the all-reduce of gradients over chips with the same KV head, which have different queries.

    It runs once per step, over shards, like that of replicas. Its rate is that of an all-reduce over the
    whole TP group, of which these chips are a part.
    """
    nbytes = s.plan.gradients.bytes * s.kv / s.shared / s.stages.layers  # per layer
    among = {"n": s.kv_copies, "nbytes": nbytes, "times": s.stages.layers, "once": True}

    def tensor(_axes: str, what: str, inside: int, _n: int) -> Rate:
        return rates("Y", what, inside, s.plan.tp)

    return [row(tensor, "gradients of copied heads", REDUCE, "K", "bwd", **among)]


def _pair(sequence: bool, pairs: float, again: float) -> tuple[tuple[str, str, float], ...]:
    """Return the kind, the pass and the number per microbatch of each collective."""
    if not sequence:
        # the two conjugate operators f and g of shoeybi2019megatron
        return ((REDUCE, "fwd", pairs), (REDUCE, "bwd", pairs + again))
    return (
        (GATHER, "fwd", pairs),  # In
        (SCATTER, "fwd", pairs),  # Out
        (GATHER, "bwd", 2 * pairs),  # dOut, and In for the gradients of the weights
        (SCATTER, "bwd", pairs + again),  # dIn
    )


def context(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return the collectives of context parallelism.

    Every chip needs the keys and values of the whole sequence, forward and backward, and their gradients
    travel back. A ring moves as many bytes as an all-gather, one shard at a time, overlapped with attention.
    Ulysses exchanges queries, keys, values and outputs between sequence and heads: four all-to-alls forward,
    four for their gradients, and four more if the forward pass is recomputed, as in compiled programs
    (`tests/lab/train/test_training_experts`).
    """
    plan, w, cp = s.plan, s.work, s.plan.cp
    attention = w.model.softmax_layers
    n = s.m * s.share * attention  # layers with attention on this stage times microbatches
    each = plan.activations.bytes * s.t * cp / attention  # bytes of one element of all tokens, per layer

    def over(name: str, what: str, when: str, nbytes: float, times: float) -> TrainingCollective:
        hides = plan.context == "ring"
        return row(
            rates, name, what, "C", when, n=cp, nbytes=nbytes, times=times, inside=plan.tp, overlappable=hides
        )

    if plan.context == "ulysses":
        # `heads` counts queries, keys, values and outputs, so each of the four moves a quarter on average
        nbytes = each * w.heads / plan.tp / 4
        often = {"fwd": 4 * n, "bwd": 4 * (1 + replayed_attention(w.model, plan.remat)) * n}
        return [over("heads for tokens", EXCHANGE, when, nbytes, times) for when, times in often.items()]
    # 4 T K H bytes in bf16 without tensor parallelism
    nbytes = each * w.kv / min(plan.tp, w.model.K)
    gather, scatter = (RING, BACK) if plan.context == "ring" else (GATHER, SCATTER)
    return [
        over("keys and values", gather, "fwd", nbytes, n),
        over("keys and values", gather, "bwd", nbytes, n),
        over("their gradients", scatter, "bwd", nbytes, n),
    ]


def _experts(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return the all-to-alls of dispatch and combine, forward and backward, and again if recomputed."""
    plan, model = s.plan, s.work.model
    assert model.experts
    # 2 b k D bytes from each chip in bf16; the array covers all ep chips
    nbytes = plan.activations.bytes * s.t / s.wide * model.D * model.experts.k * plan.ep
    name, n = "tokens to experts and back", s.m * s.stages.experts
    inside = plan.tp if plan.expert_ways > 1 else 1
    hides = plan.schedule == "dualpipe" and plan.pp > 1  # overlaps with the compute of the other direction
    moved = {"n": plan.ep, "nbytes": nbytes, "inside": inside, "overlappable": hides}
    # dispatch and combine, twice if the forward pass is recomputed
    often = {"fwd": 2 * n, "bwd": 2 * (1 + replayed_share(model, plan.remat)) * n}
    return [row(rates, name, EXCHANGE, "Z", when, times=times, **moved) for when, times in often.items()]


def _hops(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return the sends of activations to the next stage and of gradients back, per microbatch and chunk."""
    plan = s.plan
    nbytes = plan.activations.bytes * s.t * s.work.model.D / s.wide  # 2D bytes per token in bf16
    moved = {"n": plan.pp, "nbytes": nbytes, "times": s.m * plan.chunks, "inside": plan.tp * s.shared}
    return [row(rates, "to the next stage", HOP, "P", when, **moved) for when in ("fwd", "bwd")]


def _offloaded(s: TrainingShape, rates: Rates) -> list[TrainingCollective]:
    """Return the transfers of offloaded activations to the host and back, layer by layer."""
    nbytes = s.t / s.work.model.L * s.of_token(s.hosted)  # one layer's
    moved = {"n": 1, "nbytes": nbytes, "times": s.m * s.stages.layers}
    return [row(rates, "activations and the host", COPY, "H", when, **moved) for when in ("fwd", "bwd")]
