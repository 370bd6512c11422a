"""Which collectives does one training step need, over which axis, of how many bytes, and how often?

What one chip of the longest stage does. Letters: Y tensor, C context, X the chips that share weights (fsdp ·
cp), Z experts, P stages, R copies, S pods, H the host. Chapter: Training.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.steps.placement import FREE, Rate
from scalingbook_lib.training.shape import Shape
from scalingbook_lib.units import Told, si

type Rates = Callable[[str, int, int], Rate]  # a collective over `size` groups of `inside` neighboring chips

GATHER, SCATTER, REDUCE = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
EXCHANGE, HOP = Collective.ALL_TO_ALL, Collective.PERMUTE
COPY = "copy"  # between a chip and its host
RING, BACK = "ring", "ring of sums"  # an all-gather and a reduce-scatter, a piece at a time
MOVED_AS: dict[str, Collective] = {  # the collective whose time and bytes each has
    **{kind: kind for kind in Collective},
    COPY: HOP,
    RING: GATHER,
    BACK: SCATTER,
}


class Row(NamedTuple):
    """The fields of `Traffic`."""

    name: str
    what: str
    axes: str
    when: str  # "fwd" or "bwd"
    n: int
    nbytes: float
    times: float
    each_s: float
    overlappable: bool
    once: bool
    link: str


class Traffic(Row, Told):
    """One collective of a step over n chips: `nbytes` as `collectives` counts its array, `times` a step.

    `each_s` is one of them. `once` a step, and not with each microbatch: then only the arithmetic of one
    microbatch can hide it.
    """

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """All of them in one step, hidden or not."""
        return self.times * self.each_s

    @property
    def received(self) -> float:
        """Bytes that each chip takes in during one step, whatever the network."""
        return self.times * collectives.bytes_received(MOVED_AS[self.what], self.nbytes, self.n)

    def __str__(self) -> str:
        hides = "can overlap" if self.overlappable else "is waited for"
        return (
            f"{self.name} ({self.when}): {self.what} over {self.axes}{self.n} of {si(self.nbytes, 'B')}, "
            f"{self.times:,.4g} times, {si(self.seconds, 's')} ({self.link}), {hides}"
        )


class Links(NamedTuple):
    """What a byte costs: collectives over the machine's axes, an exchange of tokens, the network of pods."""

    rates: Rates
    experts: Callable[[int, int], Rate]
    pods: Rate
    host: Rate = FREE

    def row(
        self, name: str, what: str, axes: str, when: str, inside: int, n: int, nbytes: float, times: float,
        overlappable: bool = True, once: bool = False,
    ) -> Traffic:  # fmt: skip
        """One collective over n groups of `inside` neighbors."""
        if axes in "SH":
            rate = self.pods if axes == "S" else self.host
        else:
            rate = self.experts(inside, n) if axes == "Z" else self.rates(MOVED_AS[what], inside, n)
        each_s = nbytes * rate.s_per_byte + rate.hops_s
        return Traffic(name, what, axes, when, n, nbytes, times, each_s, overlappable, once, rate.link)


def rows(s: Shape, links: Links) -> list[Traffic]:
    """Every collective of a plan."""
    plan, found = s.plan, []
    found += _weights(s, links, "", s.dense, s.shared, plan.tp)
    if s.expert:  # where tensor ways do not split experts, they too hold the same ones
        found += _weights(s, links, "expert ", s.expert, s.expert_shared, plan.expert_ways * plan.ep)
    if plan.tp > 1:
        found += _tensor(s, links)
    if plan.cp > 1:
        found += _context(s, links)
    if plan.ep > 1 and s.expert:
        found += _experts(s, links)
    if plan.pp > 1:
        found += _hops(s, links)
    if s.work.host_wide or s.work.host_split:
        found += _offloaded(s, links)
    return found


def _weights(s: Shape, links: Links, kind: str, params: float, ways: int, inside: int) -> Iterator[Traffic]:
    """FSDP gathers before use, forward and backward, and scatters gradients: for each microbatch, each layer.

    ZeRO-1 and 2 gather the new weights once a step; ZeRO-2's gradients are scattered with each microbatch, as
    only shards are kept; ZeRO-1's and plain DP's once. Copies (dp, then pods) sum the shards, once.
    """
    plan, n, zero = s.plan, s.layers, s.plan.zero
    weights, gradients = f"{kind}weights", f"{kind}gradients"
    moved, summed = s.moved * params / n, plan.gradients.bytes * params / n  # one layer's
    if ways > 1 and zero == 0:
        yield links.row(gradients, REDUCE, "X", "bwd", inside, ways, summed, n, once=True)
    elif ways > 1:
        often = s.M * n if zero == 3 else n
        yield links.row(weights, GATHER, "X", "fwd", inside, ways, moved, often, once=zero < 3)
        if zero == 3:
            yield links.row(weights, GATHER, "X", "bwd", inside, ways, moved, often)
        often = s.M * n if zero > 1 else n
        yield links.row(gradients, SCATTER, "X", "bwd", inside, ways, summed, often, once=zero < 2)
    if plan.dp > 1:
        outside = plan.tp * s.shared * plan.pp
        yield links.row(gradients, REDUCE, "R", "bwd", outside, plan.dp, summed / ways, n, once=True)
    if plan.dcn > 1:
        part = summed / (ways * plan.dp)
        yield links.row(gradients, REDUCE, "S", "bwd", s.chips, plan.dcn, part, n, once=True)


def _tensor(s: Shape, links: Links) -> Iterator[Traffic]:
    """Inputs gathered, outputs scattered, both ways; inputs once more for the weights' gradients.

    Without sequence parallelism, an all-reduce of the outputs, and of the inputs' gradients. Full
    rematerialization does the forward pass again but for each layer's last output. The vocabulary counts as
    one pair more, and not at all where there are stages.
    """
    plan, w, m = s.plan, s.work, s.work.model
    ends = 1.0 if plan.pp == 1 else 0.0
    kinds = [("tensor", s.share * w.pairs + ends, s.share * m.L * (m.norms > 1), 1)]
    if plan.expert_ways > 1 and w.expert_pairs and m.experts:
        kinds.append(("tensor, experts", s.share * w.expert_pairs, 0.0, m.experts.k))
    for name, pairs, more, copies in kinds:
        nbytes = plan.activations.bytes * s.t * m.D * copies
        again = max(more, 0.0) if plan.replays else 0.0
        for what, when, times in _pair(plan.sequence_parallel, pairs, again):
            yield links.row(name, what, "Y", when, 1, plan.tp, nbytes, s.M * times, plan.collective_matmul)


def _pair(sequence: bool, pairs: float, again: float) -> tuple[tuple[str, str, float], ...]:
    if not sequence:
        return ((REDUCE, "fwd", pairs), (REDUCE, "bwd", pairs + again))
    return ((GATHER, "fwd", pairs), (SCATTER, "fwd", pairs),
            (GATHER, "bwd", 2 * pairs), (SCATTER, "bwd", pairs + again))  # fmt: skip


def _context(s: Shape, links: Links) -> Iterator[Traffic]:
    """Keys and values of the whole sequence pass every chip, backward once more and with their gradients.

    A ring moves what an all-gather does, piece by piece beside the arithmetic. Ulysses exchanges queries,
    keys, values and outputs between sequence and heads: four all-to-alls.
    """
    plan, w, C = s.plan, s.work, s.plan.cp
    n = s.M * s.share * w.model.softmax_layers
    each = plan.activations.bytes * s.t * C / w.model.softmax_layers
    if plan.context == "ulysses":
        nbytes = each * w.heads / plan.tp / 4
        for when in ("fwd", "bwd"):
            yield links.row("heads for tokens", EXCHANGE, "C", when, plan.tp, C, nbytes, 4 * n, False)
        return
    ring, nbytes = plan.context == "ring", each * w.kv / min(plan.tp, w.model.K)
    gather, scatter = (RING, BACK) if ring else (GATHER, SCATTER)
    yield links.row("keys and values", gather, "C", "fwd", plan.tp, C, nbytes, n, ring)
    yield links.row("keys and values", gather, "C", "bwd", plan.tp, C, nbytes, n, ring)
    yield links.row("their gradients", scatter, "C", "bwd", plan.tp, C, nbytes, n, ring)


def _experts(s: Shape, links: Links) -> Iterator[Traffic]:
    """Each token to its k experts and back, both ways (twice more where all is done again)."""
    plan, m = s.plan, s.work.model
    assert m.experts
    nbytes = plan.activations.bytes * s.t / s.wide * m.D * m.experts.k * plan.ep
    n, hides = s.M * s.share * m.moe_layers, plan.schedule == "dualpipe" and plan.pp > 1
    name, inside = "tokens to experts and back", plan.tp if plan.expert_ways > 1 else 1
    for when, times in (("fwd", 2 * n), ("bwd", (4 if plan.replays else 2) * n)):
        yield links.row(name, EXCHANGE, "Z", when, inside, plan.ep, nbytes, times, hides)


def _hops(s: Shape, links: Links) -> Iterator[Traffic]:
    """To the next stage, one hop for each microbatch and chunk; and gradients back."""
    plan = s.plan
    nbytes, times = plan.activations.bytes * s.t * s.work.model.D / s.wide, s.M * plan.chunks
    for when in ("fwd", "bwd"):
        yield links.row("to the next stage", HOP, "P", when, plan.tp * s.shared, plan.pp, nbytes, times)


def _offloaded(s: Shape, links: Links) -> Iterator[Traffic]:
    """Activations out to the host's memory, and back for the backward pass, layer by layer."""
    w = s.work
    nbytes = s.t / w.model.L * (w.host_wide / s.wide + w.host_split / s.plan.tp)
    for when in ("fwd", "bwd"):
        yield links.row("activations and the host", COPY, "H", when, 1, 1, nbytes, s.M * s.layers)
