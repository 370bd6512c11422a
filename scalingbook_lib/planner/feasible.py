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
        # the policy that saves the fewest activations first
        self.remats = sorted(space.candidates["remat"], key=self._stored)
        plan = space.plan()
        # whether a chip's link to its host is known is part of whether a plan has its links
        self._hosted = (
            any("offload:" in remat for remat in self.remats) or plan.offload_layers or plan.offload_optimizer
        )
        self._meshes: dict[tuple[object, ...], str] = {}
        self._uneven: dict[tuple[object, ...], str] = {}

    def _stored(self, remat: str) -> float:
        """Return the bytes of saved activations per token, without tensor parallelism."""
        return sum(self.case.work(self.space.plan(remat=remat)).stored)

    def degrees(self, groups: list[Group]) -> Iterator[tuple[Group, list[int]]]:
        """Yield each group with the FSDP degrees for which some plan is feasible."""
        enough: list[int] = []
        for g in sorted(groups, key=lambda g: -g.microbatch):
            legal = self._degrees(g, enough)
            # a smaller microbatch needs no more memory, if there are several of the larger ones
            enough = legal if g.m > 1 else []
            yield g, legal

    def _degrees(self, g: Group, enough: list[int]) -> list[int]:
        """Return the feasible FSDP degrees of one group, ascending; those in `enough` are known to fit."""
        splits = self.space.splits(g.mesh.data_ranks)
        # of two degrees with the same ZeRO stages, the larger one needs no more memory
        kinds = {fsdp: self.space.zeros(fsdp * g.mesh.cp)[0] for fsdp in splits}
        legal: list[int] = []
        none: Infeasible | None = None
        # the smallest degree may show that all are legal, and the largest that none is
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
        # some placement of experts fits, which is enough if every placement has a mesh
        fits = fits and all(self._laid(shape, sharing) for sharing in sharings)
        states: dict[tuple[int, ...], float] = {}  # by ZeRO stages
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
        copy, asked = shape.tp * shape.cp * fsdp, " or ".join(map(str, self.space.expert_degrees))
        hold = "chip that holds" if copy == 1 else "chips that hold"
        none = f"ep={asked} does not divide the {copy:,} {hold} one replica of a stage"
        # more chips are closer to what can be
        return miss or Infeasible("experts", self.space.machine.chips / copy, none)

    def sharings(self, g: Group, fsdp: int) -> list[Sharing]:
        """Return the placements of experts that divide and whose mesh the machine has."""
        return [one for one in self._divided(g, fsdp) if not self._mesh(g, one)]

    def _divided(self, g: Group, fsdp: int) -> list[Sharing]:
        """Return the placements of experts that divide."""
        return [one for one in self.space.sharings(g.mesh, fsdp) if not self._divides(g.mesh.tp, one)]

    def zeros(self, g: Group, sharing: Sharing) -> tuple[int, ...]:
        """Return the ZeRO stages that are possible for a sharing."""
        # TP chips that do not shard experts share them under ZeRO, whichever chips share the dense weights
        if sharing.expert_tp == 1:
            return self.space.candidates["zero"]
        return self.space.zeros(sharing.fsdp * g.mesh.cp)[0]

    def _divides(self, tp: int, sharing: Sharing) -> str:
        """Return why experts or their widths do not divide for any plan; '' if they do."""
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
        """Return the least memory of all plans of a sharing in bytes, or 0 if one of them fits.

        If the training state alone is too large, it is stored in `states`.
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
        """Yield the memory of the plans of a sharing and a ZeRO stage, the smallest first."""
        known = plan_fields(g, sharing)
        for remat in self.remats:
            plan = self.space.plan(**known, zero=zero, remat=remat)
            yield self.case.held(self.case.shape(plan))

    def _mesh(self, g: Group, sharing: Sharing) -> str:
        """Return why the machine has no links for a mesh; '' if it has."""
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
        """Return whether a mesh always exists: on a torus, or if no axis divides a domain unevenly."""
        machine, experts = self.space.machine, self.space.model.experts
        if isinstance(machine, Slice):
            return not experts
        inside = accumulate((shape.tp, shape.cp, sharing.fsdp, shape.pp), mul)
        chips = (*inside, (sharing.expert_tp or shape.tp) * sharing.ep) if experts else inside
        domain = min(machine.domain, machine.chips)
        return all(domain % n == 0 or n % domain == 0 for n in chips)

    def _count(self, g: Group, fsdp: int, miss: Infeasible) -> float:
        """Count a spread without a legal plan, and how far its smallest plan is from one."""
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
        """Return the bytes of the smallest plan of a spread."""
        return min(
            memory.total
            for sharing in self._divided(g, fsdp)
            for zero in self.zeros(g, sharing)
            for memory in self._held(g, sharing, zero)
        )


def _closer(one: Infeasible | None, other: Infeasible) -> Infeasible:
    """Return the closer miss: one that only exceeds memory, or the one with the smaller distance."""
    return min(one or other, other, key=lambda miss: (miss.kind != "memory", miss.distance))
