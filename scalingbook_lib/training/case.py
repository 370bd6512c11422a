"""What is known of a model on a machine before any plan? Everything, so that a plan takes microseconds.

`Case(model, machine, batch=, T=).judge(plan)`: the numbers a search needs. Chapter: Training.
"""

from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from math import prod
from typing import NamedTuple

from scalingbook_lib.collectives import Collective
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.clusters import ClusterError
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.machines.torus import SliceError
from scalingbook_lib.models import Transformer
from scalingbook_lib.steps.pipelines import PipelineError
from scalingbook_lib.steps.placement import (
    FREE,
    NAMES,
    Networks,
    Placement,
    Rate,
    between_pods,
    exchange_rate,
    place,
    rate,
)
from scalingbook_lib.training.efficiency import PEAK, Efficiency
from scalingbook_lib.training.feasible import reasons, too_large
from scalingbook_lib.training.links import Links, Traffic
from scalingbook_lib.training.memory import moments
from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.shape import Shape, shape
from scalingbook_lib.training.times import Seconds, seconds
from scalingbook_lib.training.traffic import rows
from scalingbook_lib.training.work import Work, work

REFUSALS = (PlanError, PipelineError, ClusterError, SliceError, ValueError)


class Judged(NamedTuple):
    """One plan: the step and the memory of a chip, or why there is none. `why` is empty for a legal plan."""

    step_s: float
    memory_bytes: float
    why: tuple[str, ...] = ()


@dataclass(slots=True)
class Case:
    """A model, a machine, a batch of sequences of T tokens, and what has been worked out for them so far."""

    model: Transformer
    machine: Machine
    _: KW_ONLY
    batch: int
    T: int
    efficiency: Efficiency = PEAK
    causal: bool = True  # kernels skip what the mask throws away, and useful FLOPs are counted without it
    _works: dict[tuple[str, str], Work] = field(default_factory=dict, init=False, repr=False)
    _rates: dict[tuple[object, ...], Rate] = field(default_factory=dict, init=False, repr=False)
    _placed: dict[tuple[int, ...], Placement] = field(default_factory=dict, init=False, repr=False)

    def work(self, plan: Plan) -> Work:
        """The model's constants under the plan's rematerialization."""
        key = plan.remat, plan.activations.name
        if key not in self._works:
            self._works[key] = work(self.model, self.T, plan.remat, plan.activations, self.causal)
        return self._works[key]

    def shape(self, plan: Plan) -> Shape:
        """What the plan makes of the model on each chip."""
        return shape(self.work(plan), plan, self.batch)

    def placement(self, s: Shape) -> Placement:
        """The networks under the mesh; a ClusterError or SliceError where the machine has no such mesh."""
        sizes = s.sizes
        if sizes not in self._placed:
            self._placed[sizes] = place(self.machine, sizes)
        return self._placed[sizes]

    def traffic(self, s: Shape) -> list[Traffic]:
        """Every collective of the step."""
        sizes, where = s.sizes, self.placement(s)
        shared = sizes if isinstance(self.machine, Slice) else ()  # on a cluster only the place counts

        def rates(what: str, inside: int, size: int) -> Rate:
            if size == 1:
                return FREE
            key = what, inside, size, shared
            if key not in self._rates:
                self._rates[key] = rate(what, self._under(where, sizes, inside, size), self.efficiency)
            return self._rates[key]

        def experts(inside: int, size: int) -> Rate:
            key = s.plan.expert_domains, inside, size, shared
            if key not in self._rates:
                assert self.model.experts
                on, most = self._under(where, sizes, inside, size), s.plan.expert_domains
                self._rates[key] = exchange_rate(on, self.model.experts.k, self.efficiency, most)
            return self._rates[key]

        return rows(s, Links(rates, experts, self._pods(s.plan.dcn), self._host(s)))

    def _under(self, where: Placement, sizes: tuple[int, ...], inside: int, size: int) -> Networks:
        """What joins `size` groups of `inside` neighbors: on a cluster, whatever the mesh."""
        if isinstance(self.machine, Slice):
            return _axes(where, sizes, inside, size)
        outside = self.machine.chips // (inside * size)
        return place(self.machine, (inside, size, 1, 1, 1, outside)).over("C")

    def _pods(self, pods: int) -> Rate:
        if pods == 1:
            return FREE
        return rate(Collective.ALL_REDUCE, between_pods(self.machine.chip, pods), self.efficiency)

    def _host(self, s: Shape) -> Rate:
        if not any(s.work.hosted):
            return FREE
        chip = self.machine.chip
        rate = chip.host_bytes_per_s or chip.pcie_bytes_per_s
        if not rate:
            raise PlanError(f"nobody says how fast {chip.name} reaches its host; write remat='save:...'")
        return Rate(1 / rate, 0.0, "host")

    def judge(self, plan: Plan, *, memory_first: bool = True) -> Judged:
        """The step's time and a chip's memory; where the plan cannot be, the reasons in `why`.

        With `memory_first`, a plan that does not fit is not timed: its step is infinite.
        """
        try:
            why = reasons(self.model, plan, self.T, self.machine)
            if why:
                return Judged(float("inf"), float("inf"), why)
            s = self.shape(plan)
            held = moments(s).fullest.total
            if memory_first and held > self.machine.chip.hbm_bytes:
                return Judged(float("inf"), held, (too_large(held, self.machine.chip),))
            return Judged(self.seconds(s).total_s, held)
        except REFUSALS as refused:
            return Judged(float("inf"), float("inf"), (str(refused),))

    def seconds(self, s: Shape, traffic: list[Traffic] | None = None) -> Seconds:
        """Every term of the step, of these collectives where they are known already."""
        found = self.traffic(s) if traffic is None else traffic
        return seconds(s, found, self.machine.chip, self.efficiency)


def _axes(where: Placement, sizes: tuple[int, ...], inside: int, size: int) -> Networks:
    """The networks of `size` groups of `inside` neighbors: neighboring axes of the mesh, together."""
    for first in range(len(sizes)):
        if prod(sizes[:first]) != inside:
            continue
        for last in range(first, len(sizes) + 1):
            if prod(sizes[first:last]) == size:
                return where.over("".join(NAMES[first:last]))
    mesh = " · ".join(map(str, sizes))
    raise PlanError(
        f"{size} groups of {inside} chips are no axes of the mesh {mesh}: let ep be a multiple of "
        "(tp/expert_tp) · cp"
    )


@lru_cache(maxsize=128)
def case(
    model: Transformer, machine: Machine, *, batch: int, T: int, efficiency: Efficiency, causal: bool
) -> Case:
    """The same case again for the next plan."""
    return Case(model, machine, batch=batch, T=T, efficiency=efficiency, causal=causal)
