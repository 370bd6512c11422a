"""The spreads that have a legal plan: one that fits into memory, on a mesh that the machine has.

Chapter: Training Llama 3.
"""

from collections.abc import Iterator
from itertools import accumulate
from math import inf
from operator import mul

from scalingbook_lib.machines import Slice
from scalingbook_lib.planner import step_bounds
from scalingbook_lib.planner.meshes import Group, MeshShape, Sharing, plan_fields
from scalingbook_lib.planner.rejections import Infeasible
from scalingbook_lib.planner.space import Space
from scalingbook_lib.training import TrainingCase, TrainingMemory
from scalingbook_lib.training.feasible import reasons, too_large


class Feasible:
    """The legal spreads of a space; the others are counted in its `rejections`."""

    def __init__(self, space: Space, case: TrainingCase) -> None:
        self.space, self.case = space, case
        self.room_bytes = case.room_bytes
        # the one that keeps the fewest activations first
        self.remats = sorted(space.candidates["remat"], key=self._stored)
        plan = space.plan()
        # whether a chip's link to its host is known is part of whether a plan has its links
        self._hosted = (
            any("offload:" in remat for remat in self.remats) or plan.offload_layers or plan.offload_optimizer
        )
        self._meshes: dict[tuple[object, ...], str] = {}
        self._uneven: dict[tuple[object, ...], str] = {}

    def _stored(self, remat: str) -> float:
        """Bytes that a chip without tensor parallelism keeps of each token."""
        return sum(self.case.work(self.space.plan(remat=remat)).stored)

    def degrees(self, groups: list[Group]) -> Iterator[tuple[Group, list[int]]]:
        """Yield each group with the FSDP degrees for which some plan is feasible."""
        enough: list[int] = []
        for g in sorted(groups, key=lambda g: -g.microbatch):
            legal = self._degrees(g, enough)
            # Smaller microbatches hold no more, where gradients are summed over several of the larger ones.
            enough = legal if g.m > 1 else []
            yield g, legal

    def _degrees(self, g: Group, enough: list[int]) -> list[int]:
        """Those of one group, ascending; a chip is known to hold the degrees of `enough`."""
        splits = self.space.splits(g.mesh.data_ranks)
        # Of two degrees that share by the same kinds of ZeRO, a chip holds no more with the larger.
        kinds = {fsdp: self.space.zeros(fsdp * g.mesh.cp)[0] for fsdp in splits}
        legal: list[int] = []
        none: Infeasible | None = None
        # The smallest may show that all are legal, the largest that none is.
        for fsdp in dict.fromkeys((*splits[:1], *splits[-1:], *splits)):
            fits = fsdp in enough or any(
                fsdp % known == 0 and known * g.mesh.cp > 1 and kinds[known] == kinds[fsdp] for known in legal
            )
            miss = none or self._miss(g, fsdp, fits=fits)
            if miss is None:
                legal.append(fsdp)
                continue
            distance = self._count(g, fsdp, miss)
            if fsdp == splits[-1] and miss.kind == "memory":
                shared = {kinds[one] for one in splits if one * g.mesh.cp > 1}
                none = miss._replace(distance=distance) if len(shared) <= 1 else None
        return sorted(legal)

    def _miss(self, g: Group, fsdp: int, *, fits: bool) -> Infeasible | None:
        """Return why no plan of a spread is feasible, or None if one is. `fits`: it is known to fit."""
        shape, miss = g.mesh, None
        sharings = self.space.sharings(shape, fsdp)
        # some place of experts does; that is enough where each has a mesh
        fits = fits and all(self._laid(shape, sharing) for sharing in sharings)
        states: dict[tuple[int, ...], float] = {}  # by kinds of ZeRO: the first place of experts has least
        for sharing in sharings:
            kinds = self.zeros(g, sharing)
            if not kinds:
                _, why = self.space.zeros(fsdp * shape.cp)
                miss = _closer(miss, Infeasible("even shards", fsdp, why))
            elif uneven := self._divides(shape.tp, sharing):
                miss = _closer(miss, Infeasible("experts", shape.tp * shape.cp * fsdp, uneven))
            elif not fits and (excess := states.get(kinds) or self._excess(g, sharing, kinds, states)):
                miss = _closer(miss, Infeasible("memory", excess, ""))
            elif refused := self._mesh(g, sharing):
                miss = _closer(miss, Infeasible("mesh", shape.tp * shape.cp * fsdp, refused))
            else:
                return None
        copy, asked = shape.tp * shape.cp * fsdp, ", ".join(map(str, self.space.expert_degrees))
        none = f"none of ep={asked} divides the {copy:,} chips that hold one replica of a stage"
        return miss or Infeasible("experts", copy, none)

    def sharings(self, g: Group, fsdp: int) -> list[Sharing]:
        """How experts can be spread, where they divide and the machine has the mesh."""
        return [one for one in self._divided(g, fsdp) if not self._mesh(g, one)]

    def _divided(self, g: Group, fsdp: int) -> list[Sharing]:
        """How experts can be spread, where they divide."""
        return [one for one in self.space.sharings(g.mesh, fsdp) if not self._divides(g.mesh.tp, one)]

    def zeros(self, g: Group, sharing: Sharing) -> tuple[int, ...]:
        """The kinds of ZeRO for a sharing."""
        # tensor-parallel chips that do not split experts share them, whoever shares the dense weights
        if sharing.expert_tp == 1:
            return self.space.candidates["zero"]
        return self.space.zeros(sharing.fsdp * g.mesh.cp)[0]

    def _divides(self, tp: int, sharing: Sharing) -> str:
        """Why experts or their widths do not divide, whatever the rest of the plan; '' where they do."""
        if not self.space.model.experts:
            return ""
        key = tp, sharing.ep, sharing.expert_tp
        if key not in self._uneven:
            how = {"tp": tp, "ep": sharing.ep, "expert_tp": sharing.expert_tp, "zero": 0}
            plan = self.space.plan(**how, fsdp=self.space.machine.chips // tp)
            why = reasons(self.space.model, plan, self.space.T, self.space.machine)
            self._uneven[key] = next(iter(why), "")
        return self._uneven[key]

    def _excess(
        self, g: Group, sharing: Sharing, zeros: tuple[int, ...], states: dict[tuple[int, ...], float]
    ) -> float:
        """Bytes that every plan of a sharing holds, at least, where none fits; 0 where one fits.

        Where the state alone is too large, `states` keeps it.
        """
        least = inf
        for zero in reversed(zeros):
            for memory in self._held(g, sharing, zero):
                if memory.fits:
                    return 0.0
                if least == inf and (state := step_bounds.state_bytes(memory)) > self.room_bytes:
                    states[zeros] = state
                    return state
                kept = step_bounds.kept_bytes(memory)
                least = min(least, kept)
                if kept > self.room_bytes:
                    break
        return least

    def _held(self, g: Group, sharing: Sharing, zero: int) -> Iterator[TrainingMemory]:
        """The memory of the plans of a sharing and a kind of ZeRO, the one that keeps least first."""
        known = plan_fields(g, sharing)
        for remat in self.remats:
            plan = self.space.plan(**known, zero=zero, remat=remat)
            yield self.case.held(self.case.shape(plan))

    def _mesh(self, g: Group, sharing: Sharing) -> str:
        """Why the machine has no links for a mesh; '' where it has."""
        if not self._hosted and self._laid(g.mesh, sharing):
            return ""
        key = g.mesh[:3], sharing
        if key not in self._meshes:
            plan = self.space.plan(**plan_fields(g, sharing), remat=self.remats[0])
            try:
                self.case.traffic(self.case.shape(plan))
                self._meshes[key] = ""
            except ValueError as refused:
                self._meshes[key] = str(refused)
        return self._meshes[key]

    def _laid(self, shape: MeshShape, sharing: Sharing) -> bool:
        """Whether a mesh can be laid out whatever its links: on a torus, or where no axis cuts a domain."""
        machine, experts = self.space.machine, self.space.model.experts
        if isinstance(machine, Slice):
            return not experts
        inside = accumulate((shape.tp, shape.cp, sharing.fsdp, shape.pp), mul)
        chips = (*inside, (sharing.expert_tp or shape.tp) * sharing.ep) if experts else inside
        domain = min(machine.domain, machine.chips)
        return all(domain % n == 0 or n % domain == 0 for n in chips)

    def _count(self, g: Group, fsdp: int, miss: Infeasible) -> float:
        """Count a spread that has no legal plan; its distance from one: of memory, that of its smallest."""
        distance, why = miss.distance, miss.why
        if not self.space.rejections.count(miss.kind, 1, distance):
            return distance
        if miss.kind == "memory":  # so far only a bound is known
            distance = self._least(g, fsdp)
            why = too_large(distance, self.space.machine.chip, self.case.headroom)
        plan = self.space.plan(**plan_fields(g, Sharing(fsdp, g.mesh.data_ranks // fsdp)))
        self.space.rejections.closest(miss.kind, why, plan, distance)
        return distance

    def _least(self, g: Group, fsdp: int) -> float:
        """The bytes of the smallest plan of a spread."""
        return min(
            memory.total
            for sharing in self._divided(g, fsdp)
            for zero in self.zeros(g, sharing)
            for memory in self._held(g, sharing, zero)
        )


def _closer(one: Infeasible | None, other: Infeasible) -> Infeasible:
    """The closer of two: what lacks memory alone has passed all other rules; then by less."""
    return min(one or other, other, key=lambda miss: (miss.kind != "memory", miss.distance))
