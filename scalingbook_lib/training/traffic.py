"""Which collectives does one training step need, over which axis, of how many bytes, and how often?

The rules, for what one chip of the longest stage does: sheets of each scheme in the chapter. Letters: Y tensor, C context, X
the chips that share weights (fsdp · cp), Z experts, P stages, R copies, S pods. Chapter: Training.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from scalingbook_lib.told import Told
from scalingbook_lib.training.placement import Rate
from scalingbook_lib.training.shape import Shape
from scalingbook_lib.units import si

type Rates = Callable[[str, int, int], Rate]  # a collective over `size` groups of `inside` neighboring chips


class Row(NamedTuple):
    """The fields of `Traffic`."""

    name: str
    what: str
    axes: str
    when: str  # "fwd" or "bwd"
    nbytes: float
    times: float
    each_s: float
    overlappable: bool
    once: bool
    link: str


class Traffic(Row, Told):
    """One collective of a step: `nbytes` as `collectives` counts its array, `times` a step, `each_s` seconds.

    `once` a step, and not with each microbatch: then only the arithmetic of one microbatch can hide it.
    """

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """All of them in one step, hidden or not."""
        return self.times * self.each_s

    def __str__(self) -> str:
        hides = "can overlap" if self.overlappable else "is waited for"
        return (
            f"{self.name} ({self.when}): {self.what} over {self.axes} of {si(self.nbytes, 'B')}, "
            f"{self.times:,.4g} times, {si(self.seconds, 's')} ({self.link}), {hides}"
        )


def rows(s: Shape, rates: Rates, experts: Callable[[int, int], Rate], pods: Rate) -> list[Traffic]:
    """Every collective of a plan; `experts` and `pods` are the rates of an exchange and of the DCN."""
    plan, found = s.plan, []
    if s.shared > 1 or plan.dp > 1 or plan.dcn > 1:
        found += _weights(s, rates, pods, "weights", "gradients", s.dense, s.shared, plan.tp)
        if s.expert:
            inside = plan.expert_ways * plan.ep
            found += _weights(
                s, rates, pods, "expert weights", "expert gradients", s.expert, s.expert_shared, inside
            )
    if plan.tp > 1:
        found += _tensor(s, rates)
    if plan.cp > 1:
        found += _context(s, rates)
    if plan.ep > 1 and s.expert:
        found += _experts(s, experts)
    if plan.pp > 1:
        found += _hops(s, rates)
    return found


def _weights(
    s: Shape, rates: Rates, pods: Rate, weights: str, gradients: str, params: float, ways: int, inside: int
) -> Iterator[Traffic]:  # fmt: skip
    """FSDP gathers before use, forward and backward, and scatters gradients: for each microbatch, each layer.

    ZeRO-1 and 2 gather the new weights once a step; ZeRO-2's gradients are scattered with each microbatch, as
    only shards are kept; ZeRO-1's and plain DP's once. Copies (dp, then pods) sum the shards, once.
    """
    plan, n = s.plan, s.layers
    moved, summed = s.moved * params / n, plan.gradients.bytes * params / n  # one layer's
    often = s.M * n if plan.zero >= 2 else n
    if ways > 1:
        if plan.zero == 0:
            yield _row(
                gradients, "AllReduce", "X", "bwd", summed, n, rates("all_reduce", inside, ways), once=True
            )
        else:
            gather = rates("all_gather", inside, ways)
            yield _row(
                weights,
                "AllGather",
                "X",
                "fwd",
                moved,
                s.M * n if plan.zero == 3 else n,
                gather,
                once=plan.zero < 3,
            )
            if plan.zero == 3:
                yield _row(weights, "AllGather", "X", "bwd", moved, s.M * n, gather)
            scatter = rates("reduce_scatter", inside, ways)
            yield _row(gradients, "ReduceScatter", "X", "bwd", summed, often, scatter, once=plan.zero < 2)
    if plan.dp > 1:
        rate = rates("all_reduce", plan.tp * s.shared * plan.pp, plan.dp)
        yield _row(gradients, "AllReduce", "R", "bwd", summed / ways, n, rate, once=True)
    if plan.dcn > 1:
        yield _row(gradients, "AllReduce", "S", "bwd", summed / (ways * plan.dp), n, pods, once=True)


def _tensor(s: Shape, rates: Rates) -> Iterator[Traffic]:
    """Inputs gathered, outputs scattered, both ways; inputs once more for the weights' gradients.

    Without sequence parallelism, an all-reduce of the outputs, and of the inputs' gradients. Full
    rematerialization does the forward pass again but for each layer's last output. The vocabulary counts as
    one pair more, and not at all where there are stages.
    """
    plan, w, m = s.plan, s.work, s.work.model
    kinds = [("tensor", s.share * w.pairs + (plan.pp == 1), 1.0)]
    if plan.expert_ways > 1 and w.expert_pairs and m.experts:
        kinds.append(("tensor, experts", s.share * w.expert_pairs, float(m.experts.k)))
    again = s.share * m.L if plan.remat == "full" else 0.0
    for name, pairs, copies in kinds:
        nbytes = plan.activations.bytes * s.t * m.D * copies
        more = max(pairs - again - (plan.pp == 1), 0.0) if plan.remat == "full" and copies == 1 else 0.0
        for what, when, times in _products(plan.sequence_parallel, s.M * pairs, s.M * more):
            rate = rates(what, 1, plan.tp)
            yield _row(name, _WORDS[what], "Y", when, nbytes, times, rate, plan.collective_matmul)


def _products(sequence: bool, pairs: float, more: float) -> tuple[tuple[str, str, float], ...]:
    if not sequence:
        return (("all_reduce", "fwd", pairs), ("all_reduce", "bwd", pairs + more))
    return (("all_gather", "fwd", pairs), ("reduce_scatter", "fwd", pairs),
            ("all_gather", "bwd", 2 * pairs), ("reduce_scatter", "bwd", pairs + more))  # fmt: skip


def _context(s: Shape, rates: Rates) -> Iterator[Traffic]:
    """Keys and values of the whole sequence pass every chip, backward once more and with their gradients.

    A ring moves what an all-gather does, piece by piece beside the arithmetic. Ulysses exchanges queries,
    keys, values and outputs between sequence and heads: four all-to-alls.
    """
    plan, w = s.plan, s.work
    n = s.M * s.share * w.model.softmax_layers
    each = plan.activations.bytes * s.t * plan.cp / w.model.softmax_layers
    if plan.context == "ulysses":
        nbytes, rate = each * w.heads / plan.tp / 4, rates("all_to_all", plan.tp, plan.cp)
        for when in ("fwd", "bwd"):
            yield _row("heads for tokens", "AllToAll", "C", when, nbytes, 4 * n, rate, False)
        return
    ring, nbytes = plan.context == "ring", each * w.kv / min(plan.tp, w.model.K)
    gather, scatter = rates("all_gather", plan.tp, plan.cp), rates("reduce_scatter", plan.tp, plan.cp)
    word = "ring" if ring else "AllGather"
    yield _row("keys and values", word, "C", "fwd", nbytes, n, gather, ring)
    yield _row("keys and values", word, "C", "bwd", nbytes, n, gather, ring)
    yield _row("their gradients", "ring" if ring else "ReduceScatter", "C", "bwd", nbytes, n, scatter, ring)


def _experts(s: Shape, experts: Callable[[int, int], Rate]) -> Iterator[Traffic]:
    """Each token to its experts and back, both ways (twice more where all is done again)."""
    plan, m = s.plan, s.work.model
    nbytes = plan.activations.bytes * s.t / s.wide * m.D
    rate, n = experts(plan.expert_ways, plan.ep), s.M * s.share * m.moe_layers
    hides = plan.schedule == "dualpipe" and plan.pp > 1
    for when, times in (("fwd", 2 * n), ("bwd", (4 if plan.remat == "full" else 2) * n)):
        yield _row("tokens to experts and back", "AllToAll", "Z", when, nbytes, times, rate, hides)


def _hops(s: Shape, rates: Rates) -> Iterator[Traffic]:
    """To the next stage, one hop for each microbatch and chunk; and gradients back."""
    plan = s.plan
    nbytes = plan.activations.bytes * s.t * s.work.model.D / s.wide
    rate = rates("permute", plan.tp * s.shared, plan.pp)
    for when in ("fwd", "bwd"):
        yield _row("to the next stage", "CollectivePermute", "P", when, nbytes, s.M * plan.chunks, rate)


_WORDS = {"all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "all_reduce": "AllReduce"}


def _row(
    name: str, what: str, axes: str, when: str, nbytes: float, times: float, rate: Rate,
    overlappable: bool = True, *, once: bool = False,
) -> Traffic:  # fmt: skip
    return Traffic(name, what, axes, when, nbytes, times, rate.seconds(nbytes), overlappable, once, rate.link)
