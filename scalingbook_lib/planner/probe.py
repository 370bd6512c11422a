"""What does `training` say of one token, one parameter, one layer? Coefficients: a plan is a few sums.

Every number is read off `training`'s own functions at unit shapes: rows of traffic, times of a stage, parts
of memory. They are linear in tokens, in parameters and in the inverse of the chips that share; a test
holds the sums to `training.step`. For dense models. Chapter: Training LLaMA 3.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, NamedTuple

from scalingbook_lib import training
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Efficiency, Plan
from scalingbook_lib.training.memory import across, moments, parts
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.times import seconds
from scalingbook_lib.training.traffic import UNPRICED, Traffic, rows

FAR = 2**200  # so many ways that nothing is left to read
MANY = 2.0**22  # tokens of a microbatch: enough for any product to bind


class Line(NamedTuple):
    """All layers one way: a line where products bind; more where the HBM does, for weights or experts'."""

    slope: float
    base: float
    dense_slope: float  # less for each token, where dense weights are waited for ...
    dense_base: float  # ... and this more
    expert_slope: float
    expert_base: float

    def at(self, t: float) -> float:
        """Seconds of a microbatch of t tokens on each chip."""
        dense, expert = self.dense_base - self.dense_slope * t, self.expert_base - self.expert_slope * t
        return self.base + self.slope * t + max(dense, 0.0) + max(expert, 0.0)


class Layers(NamedTuple):
    """All layers, for one number of tensor ways and one rematerialization; bytes and rows are for a token."""

    forward: Line
    backward: Line
    head: float  # the unembedding's seconds, forward
    math: float  # the products' seconds, forward, with the head
    kept: float  # bytes of the activations of one microbatch
    working: float  # bytes while a layer is at work
    logits: float  # bytes at the logits
    tensor: tuple[Traffic, ...]
    exchange: tuple[Traffic, ...]  # of tokens with their experts
    ends: tuple[Traffic, ...]  # those of the vocabulary, where there are no stages


class State(NamedTuple):
    """Bytes that no token has a part in, for one kind of ZeRO and of tensor ways."""

    alone: float  # a parameter's, where nothing is shared
    whole: float  # what sharing does not divide
    parted: float  # what it divides
    gathered: float  # the layers at work
    vocabulary: float  # or the vocabulary's weights, if more
    expert: float  # for each expert parameter of one layer, gathered
    scattered: float  # for each parameter of one layer

    def held(self, dense: float, layers: int, shared: int, expert: float = 0.0, experts: int = 1) -> float:
        """On a chip that would hold so many dense and expert parameters alone, and has others to share."""
        found = dense * (self.whole + self.parted / shared) + expert * (self.whole + self.parted / experts)
        gathered = self.expert * expert / layers if experts > 1 else 0.0
        if shared == 1:
            return found + gathered
        return (
            found
            + max(self.gathered + gathered, self.vocabulary)
            + self.scattered * (dense + expert) / layers
        )


class Hop(NamedTuple):
    """To the next stage, for a token and one chunk, either way."""

    nbytes: float
    times: float


def once[**P, R](ask: Callable[P, R]) -> Callable[P, R]:
    """A method of a probe that is asked once for each of its arguments."""

    @wraps(ask)
    def asked(*args: P.args, **named: P.kwargs) -> R:
        probe: Any = args[0]
        key = ask.__name__, *args[1:]
        if key not in probe.known:
            probe.known[key] = ask(*args, **named)
        return probe.known[key]

    return asked


class Probe:
    """One model, T, and constants of a plan; the lists of ZeRO and rematerialization are those tried."""

    def __init__(self, case: training.Case, constant: dict[str, Any], remat: str) -> None:
        """`remat` is any, for what does not depend on it."""
        self.case, self.constant, self.remat = case, constant, remat
        self.chip, self.efficiency = case.machine.chip, case.efficiency
        self.known: dict[Any, Any] = {}

    def given(self, **ways: Any) -> Shape:
        """A plan's shape with one microbatch."""
        plan = Plan(**{**self.constant, **ways})
        return shape(self.case.work(plan), plan, plan.ranks * plan.microbatch)

    def unit(self, **ways: Any) -> Shape:
        """A plan's shape with one microbatch of one token."""
        return replace(self.given(**ways), t=1.0)

    @once
    def shape(self, tp: int, pp: int, chunks: int) -> Shape:
        """The layers and parameters of the longest stage; they do not depend on the schedule's name."""
        how = {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {}
        return self.given(tp=tp, pp=pp, remat=self.remat, **how)

    def rows(self, s: Shape) -> tuple[Traffic, ...]:
        """The traffic of a shape."""
        return tuple(rows(s, UNPRICED))

    @once
    def layers(self, tp: int, remat: str, ep: int = 1, expert_tp: int | None = None) -> Layers:
        """The time of all layers, what they keep, and the traffic of tensor parallelism and of experts."""
        s = self.unit(tp=tp, remat=remat, zero=0, ep=ep, expert_tp=expert_tp, fsdp=ep)
        far = replace(s, plan=replace(s.plan, ep=s.plan.ep * FAR))  # experts' weights in no time
        many, most = self._timed(s, MANY), self._timed(s, 2 * MANY)
        few, more, far_few, far_more = (self._timed(one, t) for one in (s, far) for t in (0.0, 1.0))
        forward, backward = (
            _line(many[k], most[k], few[k], more[k], far_few[k], far_more[k]) for k in (0, 1)
        )
        bare = replace(s, dense=0.0, expert=0.0)
        moment, held = moments(bare), parts(bare)
        found, staged = self.rows(s), self.rows(replace(s, plan=replace(s.plan, pp=2)))
        tensor = tuple(row for row in staged if row.axes == "Y")
        pairs = zip((row for row in found if row.axes == "Y"), tensor, strict=True)
        ends = tuple(replace(all_, times=all_.times - row.times) for all_, row in pairs)
        exchange = tuple(row for row in staged if row.axes == "Z")
        return Layers(
            forward=forward,
            backward=backward,
            head=more[2],
            math=more[3],
            kept=held.activations,
            working=moment.recomputed_layer + held.buffers,
            logits=moment.logits + held.buffers,
            tensor=tensor,
            exchange=exchange,
            ends=ends,
        )

    def _timed(self, s: Shape, t: float) -> tuple[float, float, float, float]:
        """Layers forward and backward, the unembedding, and products alone."""
        found = seconds(replace(s, t=t), (), self.chip, self.efficiency)
        head = found.math.head / 3
        return found.forward_s - head, found.backward_s - 2 * head, head, found.math.total / 3

    @once
    def state(self, tp: int, zero: int) -> State:
        """The bytes of a parameter."""
        s = replace(self.unit(tp=tp, zero=zero, remat=self.remat), t=0.0, expert=0.0, expert_shared=1)
        one, two, four = (parts(replace(s, dense=1.0, layers=1, shared=n)) for n in (1, 2, 4))
        few, fewer = two.state, four.state
        layers = parts(replace(s, shared=2, work=replace(s.work, embedding=0, head=0)))
        outer = parts(replace(s, shared=2, work=replace(s.work, split=0, copied=0)))
        expert = parts(replace(s, dense=0.0, shared=1, layers=1, expert=1.0, expert_shared=2))
        return State(
            sum(one),
            2 * fewer - few,
            4 * (few - fewer),
            layers.gathered_weights,
            outer.gathered_weights,
            expert.gathered_weights,
            two.buffers,
        )

    @once
    def update_s(self) -> float:
        """Seconds of the optimizer for each parameter."""
        s = replace(self.unit(zero=0, remat=self.remat), dense=1.0, expert=0.0)
        return seconds(s, (), self.chip, self.efficiency).optimizer_s

    @once
    def hop(self, tp: int) -> Hop:
        """Rows of a stage's boundary, the same both ways, which can overlap."""
        rows = self.rows(self.unit(tp=tp, pp=2, remat=self.remat))
        forward, backward = (row for row in rows if row.axes == "P")
        assert forward == replace(backward, when="fwd")
        assert forward.overlappable
        return Hop(forward.nbytes, forward.times)

    @once
    def context(self, tp: int, cp: int) -> tuple[Traffic, ...]:
        """The rows of a sequence split over cp chips, for a token on each of them and all layers."""
        found = self.rows(self.unit(tp=tp, cp=cp, zero=0, remat=self.remat))
        return tuple(row for row in found if row.axes == "C")

    @once
    def across(self, tp: int, cp: int) -> float:
        """Bytes for each token: all keys and values of a sequence, where they are gathered."""
        if cp == 1 or self.constant.get("context") != "gather":
            return 0.0
        return across(self.given(tp=tp, cp=cp, zero=0, remat=self.remat))

    @once
    def weights(self, zero: int) -> tuple[Traffic, ...]:
        """The rows of one parameter in one layer, as if nothing were shared by copies."""
        s = self.unit(fsdp=2, dp=2, dcn=2, zero=zero, remat=self.remat)
        found = self.rows(replace(s, dense=1.0, layers=1, expert=0.0))
        more = {"X": 1, "R": 2, "S": 4}
        return tuple(replace(row, nbytes=row.nbytes * more[row.axes]) for row in found)


def _line(many: float, most: float, few: float, more: float, far_few: float, far_more: float) -> Line:
    """From the seconds of many tokens, twice as many, none and one; and of few without experts' weights."""
    slope = (most - many) / MANY
    base = many - slope * MANY
    dense_slope, expert_slope = slope - (far_more - far_few), (far_more - far_few) - (more - few)
    return Line(slope, base, dense_slope, far_few - base, expert_slope, few - far_few)


@lru_cache(maxsize=32)
def probe(
    model: Transformer, machine: Machine, T: int, efficiency: Efficiency,
    constant: tuple[tuple[str, Any], ...], remat: str,
) -> Probe:  # fmt: skip
    """The same probe again for the next search."""
    case = training.Case(model, machine, batch=1, T=T, efficiency=efficiency)
    return Probe(case, dict(constant), remat)
