"""What do collectives and passes add up to? Lines in tokens or parameters, and the few numbers of a plan.

Chapter: Training LLaMA 3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass  # its slots are read in a tenth of the time that a tuple's fields take
from functools import cache
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.planner.fast.links import AxisRates, MeshRates
from scalingbook_lib.planner.fast.unit import Unit
from scalingbook_lib.steps.placement import Rate
from scalingbook_lib.training.links import MOVED_AS, TrainingCollective
from scalingbook_lib.training.shape import TrainingShape

type Rates = AxisRates | Mapping[Collective, Rate]


class StraightLine(NamedTuple):
    """Seconds for each token (or parameter), and for the hops."""

    slope: float
    base: float

    def at(self, n: float, times: int = 1) -> float:
        """Of n tokens, or of n parameters in so many layers."""
        return self.slope * n + self.base * times


def affine(rows: Iterable[TrainingCollective], rates: Rates) -> StraightLine:
    """The sum of rows of one token, over one axis."""
    slope = base = 0.0
    for row in rows:
        rate = rates[MOVED_AS[row.what]]
        slope += row.times * row.nbytes * rate.s_per_byte  # of one token or parameter
        base += row.times * rate.hops_s  # however many there are
    return StraightLine(slope, base)


class Waits(NamedTuple):
    """The collectives of one axis in one direction: waited for, and beside the arithmetic."""

    waited: StraightLine
    beside: StraightLine


class AxisWaits(NamedTuple):
    """The collectives of one axis."""

    forward: Waits
    backward: Waits

    @classmethod
    def of(cls, rows: Iterable[TrainingCollective], axes: str, rates: Rates) -> "AxisWaits":
        """Those of these rows that are over this axis."""

        def waits(when: str) -> Waits:
            found = [row for row in rows if row.axes == axes and row.when == when]
            waited = affine([row for row in found if not row.overlappable], rates)
            return Waits(waited, affine([row for row in found if row.overlappable], rates))

        return cls(waits("fwd"), waits("bwd"))


@dataclass(slots=True)
class Direction:
    """A microbatch through all layers in one direction, in seconds."""

    layers_s: float
    head_s: float
    waited_s: float  # of tensor and context ways
    experts_s: float
    tensor_s: float  # beside
    context_s: float  # beside

    @classmethod
    def of(cls, layers_s: float, head_s: float, t: float, *, Y: Waits, C: Waits, Z: Waits) -> "Direction":
        """With the collectives of t tokens."""
        waited_s = Y.waited.at(t) + C.waited.at(t)
        return cls(
            layers_s, head_s, waited_s, Z.waited.at(t), tensor_s=Y.beside.at(t), context_s=C.beside.at(t)
        )

    def paced(self, s: TrainingShape) -> "DirectionTimes":
        """In the longest stage: one whose layers have most to do, or the last with the unembedding."""
        worked_s = max(s.stages.longest * self.layers_s, s.stages.last_work * self.layers_s + self.head_s)
        busy = worked_s + s.share * self.waited_s + s.experts * self.experts_s
        tensor_s, context_s = s.share * self.tensor_s, s.share * self.context_s
        return DirectionTimes(max(busy, tensor_s, context_s), busy + tensor_s + context_s)


@dataclass(slots=True)
class DirectionTimes:
    """A microbatch in one direction without weights and hops: the longest of what overlaps, and the sum."""

    longest: float
    sum: float


@dataclass(slots=True)
class PlanPass:
    """Both directions of a microbatch."""

    forward: DirectionTimes
    backward: DirectionTimes
    put_off: float  # the share of the backward pass that makes the gradients of weights


@dataclass(slots=True)
class Shards:
    """Weights or gradients, one direction: with each microbatch; and with the one beside what comes once."""

    each: float
    longest: float  # axis
    sum: float


@dataclass(slots=True)
class Moved:
    """Weights forward, weights and gradients backward, and the optimizer's update, in seconds."""

    forward: Shards
    backward: Shards
    update_s: float


class SharedParams(NamedTuple):
    """Parameters that a chip would hold alone, the axis of the chips that share them, and how many do."""

    n: float
    axis: AxisRates
    ways: int


class WeightSums:
    """The sums over the rows of weights and gradients, for one machine and so many pods."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.links = unit, unit.links
        self.update_s = unit.update_s()
        self._lines = cache(self._line)  # 5,000 times of 700: 1.1 times as long without

    def moved(
        self, zero: int, layers: int, params: tuple[SharedParams, ...], mesh: MeshRates, *, dp: int, kv: float
    ) -> Moved:
        """Of dense parameters, and of experts'; copies and pods sum the part that a chip has of them.

        `kv`: a chip's part of what copies of key-value heads sum.
        """

        def way(when: str) -> Shards:
            each = X = R = S = 0.0
            for one in params:
                part = one.n / one.ways  # what a chip has after the scatter
                if one.ways > 1:
                    each += line(zero, when, "X", one.axis).at(one.n, layers)
                    X += line(zero, when, "X once", one.axis).at(one.n, layers)
                if dp > 1:
                    R += line(zero, when, "R once", mesh.R).at(part, layers)
                if self.links.pods is not self.links.none:
                    # between pods, what the sum over copies leaves to a chip
                    S += line(zero, when, "S once", self.links.pods).at(part / dp, layers)
            K = line(zero, when, "K once", mesh.Y).at(kv, layers) if kv else 0.0
            return Shards(each, max(each + X, R, S, K), each + X + R + S + K)

        line = self._lines
        own = sum(one.n / (one.ways if zero else 1) for one in params)
        return Moved(way("fwd"), way("bwd"), self.update_s * own)

    def _line(self, zero: int, when: str, kind: str, axis: AxisRates) -> StraightLine:
        """For a parameter and for a layer: an axis's rows of each microbatch, or those of once a step."""
        axes, _, once = kind.partition(" ")
        found = (row for row in self.unit.weights(zero) if row.axes == axes and row.when == when)
        return affine((row for row in found if row.once == bool(once)), axis)
