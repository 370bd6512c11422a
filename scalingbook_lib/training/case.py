"""What all plans for a model, a machine and a batch share, and the shape, collectives and time of each plan.

`step.evaluate(case, plan)` puts them together. Chapter: Training.
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
    """A model, a machine, and a batch of sequences of T tokens.

    The time per byte on a mesh axis is cached, because a search needs the same few hundred rates thousands of
    times.
    """

    model: Transformer
    machine: Machine
    _: KW_ONLY
    batch: int
    T: int
    efficiency: TrainingEfficiency = PEAK
    headroom: float = 0.0  # share of the HBM that a plan is to leave free
    causal: bool = True  # kernels skip what the mask throws away, and useful FLOPs are counted without it
    _rates: dict[tuple[object, ...], Rate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def room_bytes(self) -> float:
        """The bytes that a plan may use on a chip."""
        return (1 - self.headroom) * self.machine.chip.hbm_bytes

    def held(self, s: TrainingShape) -> TrainingMemory:
        """The memory that a shape takes on a chip."""
        return held(s, self.machine, headroom=self.headroom)

    def work(self, plan: Plan) -> Work:
        """The model's constants under the plan's rematerialization."""
        return work(self.model, self.T, plan.remat, plan.activations, self.causal)

    def shape(self, plan: Plan) -> TrainingShape:
        """The sizes of the model on each chip under the plan."""
        return shape(self.work(plan), plan, self.batch)

    def traffic(self, s: TrainingShape, loop: bool | None = None) -> list[TrainingCollective]:
        """Every collective of a step; a ClusterError or SliceError if the machine has no such mesh."""
        return rows(s, self._links(s), loop)

    def activations(self, s: TrainingShape) -> list[TrainingCollective]:
        """The collectives of activations, which do not depend on ZeRO."""
        return activations(s, self._links(s))

    def _links(self, s: TrainingShape) -> Rates:
        """What a byte costs on each axis of the mesh."""
        where, known = place(self.machine, s.sizes), self._rates
        # on a cluster the rest of a mesh changes nothing for an axis; on a torus it does
        mesh = s.plan.expert_domains, s.sizes if isinstance(self.machine, Slice) else None

        def rates(axes: str, what: str, inside: int, n: int) -> Rate:
            key = axes, what, inside, n, mesh
            if key not in known:
                known[key] = self._rate(s, where, axes, what, inside, n)
            return known[key]

        return rates

    def _rate(self, s: TrainingShape, where: Placement, axes: str, what: str, inside: int, n: int) -> Rate:
        """What a byte costs, and the hops, over n groups of `inside` neighbors."""
        # Neither the host nor other pods are on the machine's own mesh.
        if axes == "H":
            return self._host()
        networks = between_pods(self.machine.chip, n) if axes == "S" else self._under(where, s, inside, n)
        # Copies of a token for experts behind one wire are sent once, so k decides what a byte costs.
        if axes == "Z" and self.model.experts:
            busiest = s.skewed(self.efficiency.expert_skew)
            k, domains = self.model.experts.k, s.plan.expert_domains
            return exchange_rate(networks, k, self.efficiency, domains, busiest)
        if what in (RING, BACK) and isinstance(self.machine, Cluster):
            return self._ring(what, networks, n)
        return rate(MOVED_AS[what], networks, self.efficiency)

    def _ring(self, what: str, networks: Networks, n: int) -> Rate:
        """A ring of n - 1 steps, in each of which every chip sends its piece, 1/n of the array, to the next.

        The slowest link sets the pace: where the ring leaves a node, a piece crosses a single NIC, whereas an
        all-gather would divide it among all NICs of the node. Each step also starts a transfer; the gradients
        of keys and values travel in the same one.
        """
        one = rate(Collective.PERMUTE, networks, self.efficiency)
        launch_s = self.efficiency.ring_launch_s if what == RING else 0.0
        return Rate(one.s_per_byte * (n - 1) / n, (n - 1) * (one.hops_s + launch_s), one.link)

    def _under(self, where: Placement, s: TrainingShape, inside: int, n: int) -> Networks:
        """What joins n groups of `inside` neighbors: on a cluster whatever the mesh, on a torus its axes."""
        if isinstance(self.machine, Slice):
            return _axes(where, s.sizes, inside, n)
        return groups(self.machine, inside, n)

    def _host(self) -> Rate:
        # large copies: what starts one is not counted
        return Rate(1 / host_rate(self.machine.chip), 0.0, "host")

    def seconds(self, s: TrainingShape, traffic: Sequence[TrainingCollective] | None = None) -> Seconds:
        """Every term of the step, of these collectives where they are known already."""
        return seconds(s, self.traffic(s) if traffic is None else traffic, self.machine.chip, self.efficiency)


def _axes(where: Placement, sizes: tuple[int, ...], inside: int, n: int) -> Networks:
    """The networks of n groups of `inside` neighbors: neighboring axes of the mesh, together."""
    bounds = list(accumulate(sizes, mul, initial=1))  # the chips inside each axis, and all
    if inside in bounds and inside * n in bounds:
        return where.over(NAMES[bounds.index(inside) : bounds.index(inside * n)])
    mesh = " · ".join(map(str, sizes))
    raise PlanError(
        f"{n} groups of {inside} chips do not coincide with axes of the mesh {mesh}: choose ep as a "
        "multiple of (tp/expert_tp) · cp"
    )
