"""What is known of a model on a machine before any plan? Everything, so that a plan takes microseconds.

`TrainingCase(model, machine, batch=, T=).judge(plan)`: the numbers a search needs. Chapter: Training.
"""

from dataclasses import KW_ONLY, dataclass
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from scalingbook_lib.machines import Machine, Slice
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
from scalingbook_lib.training.feasible import reasons, too_large
from scalingbook_lib.training.links import MOVED_AS, TrainingCollective
from scalingbook_lib.training.memory import held
from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.shape import TrainingShape, shape
from scalingbook_lib.training.times import Seconds, seconds
from scalingbook_lib.training.traffic import rows
from scalingbook_lib.training.work import Work, work


class PlanEvaluation(NamedTuple):
    """One plan: the step and the memory of a chip, or why there is none. `why` is empty for a legal plan."""

    step_s: float
    memory_bytes: float
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A model, a machine, a batch of sequences of T tokens."""

    model: Transformer
    machine: Machine
    _: KW_ONLY
    batch: int
    T: int
    efficiency: TrainingEfficiency = PEAK
    causal: bool = True  # kernels skip what the mask throws away, and useful FLOPs are counted without it

    def work(self, plan: Plan) -> Work:
        """The model's constants under the plan's rematerialization."""
        return work(self.model, self.T, plan.remat, plan.activations, self.causal)

    def shape(self, plan: Plan) -> TrainingShape:
        """What the plan makes of the model on each chip."""
        return shape(self.work(plan), plan, self.batch)

    def traffic(self, s: TrainingShape, loop: bool | None = None) -> list[TrainingCollective]:
        """Every collective; a ClusterError or SliceError where the machine has no such mesh."""
        where = place(self.machine, s.sizes)

        def rates(axes: str, what: str, inside: int, n: int) -> Rate:
            # Neither the host nor other pods are on the machine's own mesh.
            if axes == "H":
                return self._host()
            networks = between_pods(self.machine.chip, n) if axes == "S" else self._under(where, s, inside, n)
            # Copies of a token for experts behind one wire are sent once, so k decides what a byte costs.
            if axes == "Z" and self.model.experts:
                return exchange_rate(networks, self.model.experts.k, self.efficiency, s.plan.expert_domains)
            return rate(MOVED_AS[what], networks, self.efficiency)

        return rows(s, rates, loop)

    def _under(self, where: Placement, s: TrainingShape, inside: int, n: int) -> Networks:
        """What joins n groups of `inside` neighbors: on a cluster whatever the mesh, on a torus its axes."""
        if isinstance(self.machine, Slice):
            return _axes(where, s.sizes, inside, n)
        return groups(self.machine, inside, n)

    def _host(self) -> Rate:
        chip = self.machine.chip
        bytes_per_s = chip.host_bytes_per_s or chip.pcie_bytes_per_s  # per chip, one way
        if not bytes_per_s:
            raise PlanError(f"nobody says how fast {chip.name} reaches its host; write remat='save:...'")
        return Rate(1 / bytes_per_s, 0.0, "host")  # large copies: what starts one is not counted

    def judge(self, plan: Plan, *, memory_first: bool = True) -> PlanEvaluation:
        """The step's time and a chip's memory; where the plan cannot be, the reasons in `why`.

        With `memory_first`, a plan that does not fit is not timed: its step is infinite.
        """
        try:
            why = reasons(self.model, plan, self.T, self.machine)
            if why:
                return PlanEvaluation(float("inf"), float("inf"), why)
            s = self.shape(plan)
            nbytes = held(s, self.machine).total  # bytes at the fullest moment
            # What does not fit needs no time: its collectives are not laid out.
            if memory_first and nbytes > self.machine.chip.hbm_bytes:
                return PlanEvaluation(float("inf"), nbytes, (too_large(nbytes, self.machine.chip),))
            return PlanEvaluation(self.seconds(s).total_s, nbytes)
        except ValueError as refused:
            return PlanEvaluation(float("inf"), float("inf"), (str(refused),))

    def seconds(self, s: TrainingShape, traffic: list[TrainingCollective] | None = None) -> Seconds:
        """Every term of the step, of these collectives where they are known already."""
        return seconds(s, self.traffic(s) if traffic is None else traffic, self.machine.chip, self.efficiency)


def _axes(where: Placement, sizes: tuple[int, ...], inside: int, n: int) -> Networks:
    """The networks of n groups of `inside` neighbors: neighboring axes of the mesh, together."""
    bounds = list(accumulate(sizes, mul, initial=1))  # the chips inside each axis, and all
    if inside in bounds and inside * n in bounds:
        return where.over(NAMES[bounds.index(inside) : bounds.index(inside * n)])
    mesh = " · ".join(map(str, sizes))
    raise PlanError(
        f"{n} groups of {inside} chips are no axes of the mesh {mesh}: let ep be a multiple of "
        "(tp/expert_tp) · cp"
    )
