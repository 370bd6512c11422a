"""Which collectives does one training step need, over which axis, of how many bytes, and how often?

What one chip of the longest stage does. Letters: Y tensor, C context, X the chips that share weights (fsdp ·
cp), Z experts, P stages, R copies, S pods, H the host. Chapter: Training.
"""

from collections.abc import Iterator

from scalingbook_lib.training.links import (
    BACK,
    COPY,
    EXCHANGE,
    GATHER,
    HOP,
    REDUCE,
    RING,
    SCATTER,
    Links,
    Traffic,
)
from scalingbook_lib.training.shape import Shape


def rows(s: Shape, links: Links) -> list[Traffic]:
    """Every collective of a plan."""
    plan, found = s.plan, []
    found += _weights(s, links, "", params=s.dense, ways=s.shared, inside=plan.tp)
    if s.expert:  # where tensor ways do not split experts, they too hold the same ones
        inside = plan.expert_ways * plan.ep
        found += _weights(s, links, "expert ", params=s.expert, ways=s.expert_shared, inside=inside)
    if plan.tp > 1:
        found += _tensor(s, links)
    if plan.cp > 1:
        found += _context(s, links)
    if plan.ep > 1 and s.expert:
        found += _experts(s, links)
    if plan.pp > 1:
        found += _hops(s, links)
    if any(s.work.hosted):
        found += _offloaded(s, links)
    return found


def _weights(
    s: Shape, links: Links, kind: str, *, params: float, ways: int, inside: int
) -> Iterator[Traffic]:
    """FSDP gathers before use, forward and backward, and scatters gradients: for each microbatch, each layer.

    ZeRO-1 and 2 gather the new weights once a step; ZeRO-2's gradients are scattered with each microbatch, as
    only shards are kept; ZeRO-1's and plain DP's once. Copies (dp, then pods) sum the shards, once.
    """
    plan, n, zero = s.plan, s.layers, s.plan.zero
    weights, gradients = f"{kind}weights", f"{kind}gradients"
    moved, summed = s.moved * params / n, plan.gradients.bytes * params / n  # one layer's

    def shards(name: str, what: str, when: str, nbytes: float, *, each: bool) -> Traffic:
        """Over the chips that share: with each microbatch, or once a step."""
        times = s.m * n if each else n
        return links.row(
            name, what, "X", when, n=ways, nbytes=nbytes, times=times, inside=inside, once=not each
        )

    def copies(axes: str, ways: int, nbytes: float, inside: int) -> Traffic:
        """The shards' sum over copies."""
        return links.row(
            gradients, REDUCE, axes, "bwd", n=ways, nbytes=nbytes, times=n, inside=inside, once=True
        )

    if ways > 1 and zero == 0:
        yield shards(gradients, REDUCE, "bwd", summed, each=False)
    elif ways > 1:
        yield shards(weights, GATHER, "fwd", moved, each=zero == 3)
        if zero == 3:
            yield shards(weights, GATHER, "bwd", moved, each=True)
        yield shards(gradients, SCATTER, "bwd", summed, each=zero > 1)
    if plan.dp > 1:
        yield copies("R", plan.dp, summed / ways, plan.tp * s.shared * plan.pp)
    if plan.dcn > 1:
        yield copies("S", plan.dcn, summed / (ways * plan.dp), s.chips)


def _tensor(s: Shape, links: Links) -> Iterator[Traffic]:
    """Inputs gathered, outputs scattered, both ways; inputs once more for the weights' gradients.

    Without sequence parallelism, an all-reduce of the outputs, and of the inputs' gradients. Full
    rematerialization does the forward pass again but for each layer's last output. The vocabulary counts as
    one pair more, and not at all where there are stages.
    """
    plan, w, model = s.plan, s.work, s.work.model
    ends = 1.0 if plan.pp == 1 else 0.0
    kinds = [("tensor", s.share * w.pairs + ends, s.share * model.L * (model.norms > 1), 1)]
    if plan.expert_ways > 1 and w.expert_pairs and model.experts:
        kinds.append(("tensor, experts", s.share * w.expert_pairs, 0.0, model.experts.k))
    for name, pairs, more, copies in kinds:
        nbytes = plan.activations.bytes * s.t * model.D * copies
        again = max(more, 0.0) if plan.replays else 0.0
        for what, when, times in _pair(plan.sequence_parallel, pairs, again):
            hides, times = plan.collective_matmul, s.m * times
            yield links.row(name, what, "Y", when, n=plan.tp, nbytes=nbytes, times=times, overlappable=hides)


def _pair(sequence: bool, pairs: float, again: float) -> tuple[tuple[str, str, float], ...]:
    """What, when, and how often with each microbatch."""
    if not sequence:
        return ((REDUCE, "fwd", pairs), (REDUCE, "bwd", pairs + again))
    return (
        (GATHER, "fwd", pairs),
        (SCATTER, "fwd", pairs),
        (GATHER, "bwd", 2 * pairs),
        (SCATTER, "bwd", pairs + again),
    )


def _context(s: Shape, links: Links) -> Iterator[Traffic]:
    """Keys and values of the whole sequence pass every chip, backward once more and with their gradients.

    A ring moves what an all-gather does, piece by piece beside the arithmetic. Ulysses exchanges queries,
    keys, values and outputs between sequence and heads: four all-to-alls.
    """
    plan, w, cp = s.plan, s.work, s.plan.cp
    attention = w.model.softmax_layers
    n = s.m * s.share * attention
    each = plan.activations.bytes * s.t * cp / attention  # bytes of an element of all tokens, in one layer

    def over(name: str, what: str, when: str, nbytes: float, times: float) -> Traffic:
        hides = plan.context == "ring"
        return links.row(
            name, what, "C", when, n=cp, nbytes=nbytes, times=times, inside=plan.tp, overlappable=hides
        )

    if plan.context == "ulysses":
        for when in ("fwd", "bwd"):
            yield over("heads for tokens", EXCHANGE, when, each * w.heads / plan.tp / 4, 4 * n)
        return
    nbytes = each * w.kv / min(plan.tp, w.model.K)
    gather, scatter = (RING, BACK) if plan.context == "ring" else (GATHER, SCATTER)
    yield over("keys and values", gather, "fwd", nbytes, n)
    yield over("keys and values", gather, "bwd", nbytes, n)
    yield over("their gradients", scatter, "bwd", nbytes, n)


def _experts(s: Shape, links: Links) -> Iterator[Traffic]:
    """Each token to its k experts and back, both ways (twice more where all is recomputed)."""
    plan, model = s.plan, s.work.model
    assert model.experts
    nbytes = plan.activations.bytes * s.t / s.wide * model.D * model.experts.k * plan.ep
    name, n = "tokens to experts and back", s.m * s.share * model.moe_layers
    inside, hides = plan.tp if plan.expert_ways > 1 else 1, plan.schedule == "dualpipe" and plan.pp > 1
    for when, times in (("fwd", 2 * n), ("bwd", (4 if plan.replays else 2) * n)):
        yield links.row(
            name,
            EXCHANGE,
            "Z",
            when,
            n=plan.ep,
            nbytes=nbytes,
            times=times,
            inside=inside,
            overlappable=hides,
        )


def _hops(s: Shape, links: Links) -> Iterator[Traffic]:
    """To the next stage, one hop for each microbatch and chunk; and gradients back."""
    plan = s.plan
    nbytes, inside = plan.activations.bytes * s.t * s.work.model.D / s.wide, plan.tp * s.shared
    name, times = "to the next stage", s.m * plan.chunks
    for when in ("fwd", "bwd"):
        yield links.row(name, HOP, "P", when, n=plan.pp, nbytes=nbytes, times=times, inside=inside)


def _offloaded(s: Shape, links: Links) -> Iterator[Traffic]:
    """Activations out to the host's memory, and back for the backward pass, layer by layer."""
    w = s.work
    nbytes = s.t / w.model.L * s.of_token(w.hosted)
    for when in ("fwd", "bwd"):
        yield links.row("activations and the host", COPY, "H", when, n=1, nbytes=nbytes, times=s.m * s.layers)
