"""What does `training` say of one token, one parameter, one layer? Coefficients: a plan is a few sums.

Every number is read off `training`'s own functions at unit shapes: rows of traffic, times of a stage, parts
of memory. They are linear in tokens, in parameters and in the inverse of the chips that share; a test
holds the sums to `training.step`. For dense models. Chapter: Training LLaMA 3.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from scalingbook_lib import training
from scalingbook_lib.training import Plan
from scalingbook_lib.training.memory import parts
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.times import seconds
from scalingbook_lib.training.traffic import CALLS, rows

MANY = 2.0**20  # tokens of a microbatch: enough for any product to bind


class Row(NamedTuple):
    """A collective at a unit shape: `call` of `collectives`."""

    call: str
    axes: str
    when: str
    nbytes: float
    times: float
    overlappable: bool
    once: bool


class Work(NamedTuple):
    """All layers one way: seconds a token where products bind; where the HBM does, less, and `base_s`."""

    many: float
    few: float
    base_s: float

    def seconds(self, t: float) -> float:
        """Of a microbatch of t tokens on each chip, all layers."""
        return max(self.many * t, self.base_s + self.few * t)


class Passes(NamedTuple):
    """Both ways, for one number of tensor ways and one rematerialization; `head` is the unembedding's."""

    forward: Work
    backward: Work
    head: float
    math: float  # of the forward pass, with the head
    tensor: tuple[Row, ...]  # for a token and all layers
    ends: tuple[Row, ...]  # those of the vocabulary, where there are no stages


class Stage(NamedTuple):
    """The longest stage of a pipeline."""

    layers: int
    share: float
    last: float
    dense: float
    optimizer: float  # seconds where nothing is shared
    alone: tuple[float, ...]  # bytes of state where nothing is shared, per ZeRO
    fixed: tuple[float, ...]  # bytes that sharing does not divide, per ZeRO
    parted: tuple[float, ...]  # bytes that sharing divides, per ZeRO
    hops: tuple[Row, ...]


class _Recorder:
    """Takes the place of `training`'s links: keeps what is asked for."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def row(
        self, name: str, what: str, axes: str, when: str, inside: int, n: int, nbytes: float, times: float,
        overlappable: bool = True, once: bool = False,
    ) -> None:  # fmt: skip
        self.rows.append(Row(CALLS[what], axes, when, nbytes, times, overlappable, once))


class Probe:
    """One model, T, and constants of a plan; the lists of ZeRO and rematerialization are those tried."""

    def __init__(
        self, case: training.Case, constant: dict[str, Any], zeros: tuple[int, ...], remats: tuple[str, ...]
    ) -> None:
        self.case, self.constant, self.zeros, self.remats = case, constant, zeros, remats
        self.chip, self.efficiency = case.machine.chip, case.efficiency

    def unit(self, M: int = 1, **ways: Any) -> Shape:
        """A plan's shape with one token a microbatch."""
        plan = Plan(**{**self.constant, **ways})
        return replace(shape(self.case.work(plan), plan, M * plan.ranks * plan.microbatch), t=1.0)

    def rows(self, s: Shape) -> tuple[Row, ...]:
        """The traffic of a shape."""
        recorder = _Recorder()
        rows(s, recorder)  # type: ignore[arg-type]
        return tuple(recorder.rows)

    def passes(self, tp: int, remat: str) -> Passes:
        """The time of all layers, and the traffic of tensor parallelism."""
        s = self.unit(tp=tp, remat=remat, zero=0)
        none, one, many = (self._timed(s, t) for t in (0.0, 1.0, MANY))
        forward, backward = (Work(many[k] / MANY, one[k] - none[k], none[k]) for k in (0, 1))
        found, staged = self.rows(s), self.rows(replace(s, plan=replace(s.plan, pp=2)))
        tensor = tuple(row for row in staged if row.axes == "Y")
        ends = (
            Row(*one[:4], one.times - two.times, *one[5:]) for one, two in zip(found, tensor, strict=True)
        )
        return Passes(forward, backward, one[2], one[3], tensor, tuple(ends))

    def _timed(self, s: Shape, t: float) -> tuple[float, float, float, float]:
        """Layers forward and backward, the unembedding, and products alone."""
        found = seconds(replace(s, t=t), (), self.chip, self.efficiency)
        head = found.math[3] / 3
        return found.forward_s - head, found.backward_s - 2 * head, head, sum(found.math) / 3

    def stage(self, tp: int, pp: int, schedule: str, chunks: int) -> Stage:
        """The layers, the state and the hops."""
        ways = {"tp": tp, "pp": pp, "schedule": schedule, "chunks": chunks, "remat": self.remats[0]}
        states = [self._state(self.unit(zero=zero, **ways)) for zero in self.zeros]
        s = self.unit(pp, zero=1, **ways)
        update = seconds(s, (), self.chip, self.efficiency).optimizer_s
        hops = tuple(row for row in self.rows(replace(s, M=1)) if row.axes == "P")
        alone, fixed, parted = zip(*states, strict=True)
        return Stage(s.layers, s.share, s.last, s.dense, update, alone, fixed, parted, hops)

    def _state(self, s: Shape) -> tuple[float, float, float]:
        """Bytes that no token has a part in: unshared, and by 1/ways where they are shared."""
        alone, two, four = (sum(parts(replace(s, t=0.0, shared=n, expert_shared=n))) for n in (1, 2, 4))
        return alone, 2 * four - two, 4 * (two - four)

    def activations(self, tp: int, pp: int, schedule: str, chunks: int, M: int) -> tuple[float, ...]:
        """Bytes for a token of a microbatch, per rematerialization."""
        ways = {"tp": tp, "pp": pp, "schedule": schedule, "chunks": chunks}
        shapes = (self.unit(M, remat=remat, zero=1, **ways) for remat in self.remats)
        return tuple(sum(parts(replace(s, dense=0.0, expert=0.0))) for s in shapes)

    def context(self, tp: int, cp: int) -> tuple[Row, ...]:
        """The rows of a sequence split over cp chips, for a token on each of them and all layers."""
        found = self.rows(self.unit(tp=tp, cp=cp, zero=0, remat=self.remats[0]))
        return tuple(row for row in found if row.axes == "C")

    def weights(self, zero: int) -> tuple[Row, ...]:
        """The rows of one parameter in one layer, as if nothing were shared by copies."""
        s = self.unit(fsdp=2, dp=2, dcn=2, zero=zero, remat=self.remats[0])
        found = self.rows(replace(s, dense=1.0, layers=1))
        more = {"X": 1, "R": 2, "S": 4}
        return tuple(row._replace(nbytes=row.nbytes * more[row.axes]) for row in found)
