"""A training case: a model, a machine and a batch, for which many plans can be evaluated.

`step.evaluate(case, plan)` returns the step of one plan. Chapter: Training.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from operator import mul

from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import Cluster, Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.steps.placement import (
    NAMES,
    Networks,
    Placement,
    Rate,
    between_pods,
    exchange_rate,
    groups,
    place,
    rate,
)
from scalingbook_lib.training.efficiency import PEAK, TrainingEfficiency
from scalingbook_lib.training.links import BACK, MOVED_AS, RING, Rates, TrainingCollective, host_rate
from scalingbook_lib.training.memory import TrainingMemory, held
from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.shape import TrainingShape, shape
from scalingbook_lib.training.times import Seconds, seconds
from scalingbook_lib.training.traffic import activations, rows
from scalingbook_lib.training.work import Work, work


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A model, a machine, and a batch of `batch` sequences of T tokens.

    The link rates of mesh axes are cached, because a search needs the same few hundred rates thousands of
    times.
    """

    model: Transformer
    machine: Machine
    _: KW_ONLY
    batch: int
    T: int
    efficiency: TrainingEfficiency = PEAK
    headroom: float = 0.0  # the share of the HBM that a plan has to leave free
    causal: bool = True  # kernels skip masked blocks, and useful FLOPs do not count them
    _rates: dict[tuple[object, ...], Rate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def room_bytes(self) -> float:
        """The bytes that a plan may occupy on a chip."""
        return (1 - self.headroom) * self.machine.chip.hbm_bytes

    def held(self, s: TrainingShape) -> TrainingMemory:
        """Return the memory of one chip."""
        return held(s, self.machine, headroom=self.headroom)

    def work(self, plan: Plan) -> Work:
        """Return the model's FLOPs and bytes per token under the plan's rematerialization policy."""
        return work(self.model, self.T, plan.remat, plan.activations, self.causal)

    def shape(self, plan: Plan) -> TrainingShape:
        """Return each chip's share of the model and the batch; raises a PlanError if they do not divide."""
        return shape(self.work(plan), plan, self.batch)

    def traffic(self, s: TrainingShape, loop: bool | None = None) -> list[TrainingCollective]:
        """Return every collective; raises a ClusterError or SliceError if the machine has no such mesh."""
        return rows(s, self._links(s), loop)

    def activations(self, s: TrainingShape) -> list[TrainingCollective]:
        """Return the collectives of activations, which do not depend on ZeRO."""
        return activations(s, self._links(s))

    def _links(self, s: TrainingShape) -> Rates:
        """Return a function that gives the link rate of each axis of the mesh."""
        where, known = place(self.machine, s.sizes), self._rates
        # on a torus, the rate of an axis depends on the rest of the mesh; on a cluster it does not
        mesh = s.plan.expert_domains, s.sizes if isinstance(self.machine, Slice) else None

        def rates(axes: str, what: str, inside: int, n: int) -> Rate:
            key = axes, what, inside, n, mesh
            if key not in known:
                known[key] = self._rate(s, where, axes, what, inside, n)
            return known[key]

        return rates

    def _rate(self, s: TrainingShape, where: Placement, axes: str, what: str, inside: int, n: int) -> Rate:
        """Return seconds per byte and seconds of hops over n groups of `inside` neighboring chips."""
        # the host and other pods are not on the machine's own mesh
        if axes == "H":
            return self._host()
        networks = between_pods(self.machine.chip, n) if axes == "S" else self._under(where, s, inside, n)
        # A token crosses a link once for all of its experts behind that link, so the rate depends on k.
        if axes == "Z" and self.model.experts:
            busiest = s.skewed(self.efficiency.expert_skew)
            k, domains = self.model.experts.k, s.plan.expert_domains
            return exchange_rate(networks, k, self.efficiency, domains, busiest)
        if what in (RING, BACK) and isinstance(self.machine, Cluster):
            return self._ring(what, networks, n)
        return rate(MOVED_AS[what], networks, self.efficiency)

    def _ring(self, what: str, networks: Networks, n: int) -> Rate:
        """Return the rate of a ring of n - 1 steps; in each, every chip sends a shard, 1/n of the array.

        The slowest link sets the pace: where the ring leaves a node, a shard crosses a single NIC, whereas an
        all-gather would divide it among all NICs of the node. Each step also pays for the start of a
        transfer, which the gradients of keys and values share.
        """
        one = rate(Collective.PERMUTE, networks, self.efficiency)
        launch_s = self.efficiency.ring_launch_s if what == RING else 0.0
        return Rate(one.s_per_byte * (n - 1) / n, (n - 1) * (one.hops_s + launch_s), one.link)

    def _under(self, where: Placement, s: TrainingShape, inside: int, n: int) -> Networks:
        """Return the networks between n groups of `inside` neighbors, which on a torus depend on the mesh."""
        if isinstance(self.machine, Slice):
            return _axes(where, s.sizes, inside, n)
        return groups(self.machine, inside, n)

    def _host(self) -> Rate:
        # the copies are large, so their start-up time is not counted
        return Rate(1 / host_rate(self.machine.chip), 0.0, "host")

    def seconds(self, s: TrainingShape, traffic: Sequence[TrainingCollective] | None = None) -> Seconds:
        """Return the time of every term of the step; `traffic` avoids computing the collectives again."""
        return seconds(s, self.traffic(s) if traffic is None else traffic, self.machine.chip, self.efficiency)


def _axes(where: Placement, sizes: tuple[int, ...], inside: int, n: int) -> Networks:
    """Return the networks of the adjacent mesh axes that n groups of `inside` neighbors span."""
    bounds = list(accumulate(sizes, mul, initial=1))  # the chips inside each axis, and all
    if inside in bounds and inside * n in bounds:
        return where.over(NAMES[bounds.index(inside) : bounds.index(inside * n)])
    mesh = " · ".join(map(str, sizes))
    raise PlanError(
        f"{n} groups of {inside} chips do not coincide with axes of the mesh {mesh}: choose ep as a "
        "multiple of (tp/expert_tp) · cp"
    )
