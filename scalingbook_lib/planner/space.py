"""The candidates of a search for a training plan by group, and the reasons why others do not divide.

A spread is a mesh (tp, cp, fsdp, pp, dp), a microbatch and a schedule; ZeRO and rematerialization are varied
within it. Degrees are divisors of the number of chips. Chapter: Training Llama 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.meshes import (
    Group,
    MeshShape,
    Sharing,
    degrees,
    divisors,
    indivisible,
    plan_fields,
)
from scalingbook_lib.planner.rejections import RejectionStats
from scalingbook_lib.steps import pipelines
from scalingbook_lib.steps.placement import between_pods
from scalingbook_lib.training import Plan, PlanError
from scalingbook_lib.training.feasible import reasons
from scalingbook_lib.training.plan import PLAN_FIELDS
from scalingbook_lib.training.stages import too_few

DEGREES = ("tp", "cp", "fsdp", "pp", "dp")
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "zero": (1, 2, 3),
    "remat": ("none", "selective", "full"),
    "microbatch": (1, 2, 4),
    "schedule": ("1f1b", "interleaved"),
    "chunks": (2, 4, 8),
}
LADDER = ("none", "selective", "full")  # of remat: each recomputes what the one before does, and more


@dataclass(frozen=True, slots=True)
class Space:
    """The question of a search: model, machine and batch, candidates per field, and fixed fields."""

    model: Transformer
    machine: Machine
    batch: int
    T: int
    pods: int
    candidates: dict[str, tuple[Any, ...]]
    plan_defaults: dict[str, Any]
    rejections: RejectionStats = field(default_factory=RejectionStats)
    _splits: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, **fields: Any) -> Plan:
        """Return a plan of this space; other fields are as `fixed` says, or have the plan's default.

        A plan without a pipeline has no `stage_layers`: it asks about other fields.
        """
        known = {**self.plan_defaults, "dcn": self.pods, **fields}
        if known.get("pp", 1) == 1:
            known.pop("stage_layers", None)
        return Plan(**known)

    def schedules(self, pp: int) -> tuple[tuple[str, int], ...]:
        """Return the schedules with their numbers of chunks; a single stage has only one."""
        if pp == 1:
            return (("1f1b", 1),)
        kinds = self.candidates["schedule"]
        return tuple(
            (s, v) for s in kinds for v in (self.candidates["chunks"] if s == "interleaved" else (1,))
        )

    def splits(self, data_ranks: int) -> list[int]:
        """Return the FSDP degrees for so many data ranks, ascending; dp is the quotient."""
        if data_ranks not in self._splits:
            copies = degrees(self.candidates, "dp", data_ranks)
            found = degrees(self.candidates, "fsdp", data_ranks)
            self._splits[data_ranks] = [n for n in found if data_ranks // n in copies]
        return self._splits[data_ranks]

    def zeros(self, shared: int) -> tuple[tuple[int, ...], str]:
        """Return the ZeRO stages for so many chips that share weights, or the reason why there is none."""
        kinds = self.candidates["zero"]
        # on a single chip, all ZeRO stages are the same plan, so one represents them
        if shared == 1:
            return kinds[:1], ""
        if not isinstance(self.machine, Slice) or self.model.D % shared == 0:
            return kinds, ""
        plan = self.plan(fsdp=shared, dp=self.machine.chips // shared, zero=1)
        why = reasons(self.model, plan, self.T, self.machine)
        return ((0,), "") if 0 in kinds or not why else ((), why[0])

    def sharings(self, shape: MeshShape, fsdp: int) -> list[Sharing]:
        """Return the placements of experts on the chips of a stage, fewest parameters per chip first.

        Without experts there is a single one; if no degree divides, there is none.
        """
        if not self.model.experts:
            return [Sharing(fsdp, shape.data_ranks // fsdp)]
        found = [Sharing(fsdp, shape.data_ranks // fsdp, *how) for how in self._experts(shape, fsdp)]
        return sorted(found, key=lambda one: -one.ep * (1 if one.expert_tp == 1 else shape.tp))

    def _experts(self, shape: MeshShape, fsdp: int) -> Iterator[tuple[int, int | None]]:
        """Yield the pairs of ep and expert_tp that divide the chips of a stage."""
        # without tensor parallelism, expert_tp has no effect
        kinds = self.candidates.get("expert_tp", (None, 1))
        for expert_tp in kinds if shape.tp > 1 else kinds[:1]:
            stage = (shape.tp if expert_tp == 1 else 1) * shape.cp * fsdp
            yield from ((ep, expert_tp) for ep in self.expert_degrees if stage % ep == 0)

    @property
    def expert_degrees(self) -> tuple[int, ...]:
        """Return the candidates for ep, which leave whole experts on each chip."""
        return self.candidates.get("ep", divisors(self.model.experts.E if self.model.experts else 1))

    def groups(self) -> Iterator[Group]:
        """Yield all groups that divide; the others are counted in `rejections`."""
        chips = self.machine.chips
        if why := self._indivisible():
            self.rejections.refuse("the degrees", 1, why)
            return
        # what rules out the simplest plan rules out all
        stages = len(self.plan_defaults.get("stage_layers") or (0,))
        simplest = self.plan(dp=chips // stages, pp=stages, zero=0, remat=self.candidates["remat"][0])
        why = reasons(self.model, simplest, self.T, self.machine)
        if why:
            self.rejections.refuse("model", self._all(), why[0])
            return
        for tp in degrees(self.candidates, "tp", chips):
            # heads and widths first: what tp does not divide, no cp mends
            narrow = self._uneven(tp=tp)
            for cp in degrees(self.candidates, "cp", chips // tp):
                below = chips // (tp * cp)
                why = narrow or self._uneven(tp=tp, cp=cp)
                if why:
                    kind = "the tensor-parallel degree" if narrow else "the context-parallel degree"
                    count = sum(self._under(below, pp) for pp in degrees(self.candidates, "pp", below))
                    self.rejections.refuse(kind, count, why, self.plan(tp=tp, cp=cp, dp=below))
                    continue
                for pp in degrees(self.candidates, "pp", below):
                    yield from self._stages(tp, cp, pp, below // pp)

    def _indivisible(self) -> str:
        """Return which degrees do not divide the chips or the experts; '' if all do."""
        chips = self.machine.chips
        given = {name: self.candidates[name] for name in DEGREES if name in self.candidates}
        for name, asked in given.items():
            if not degrees(self.candidates, name, chips):
                return indivisible(name, asked, chips, f"the {chips:,} chips")
        if not self._all():
            asked = ", ".join(f"{name}={' or '.join(map(str, values))}" for name, values in given.items())
            return f"{asked}: tp · cp · fsdp · pp · dp cannot be the {chips:,} chips; leave out one of them"
        experts = self.model.experts.E if self.model.experts else 0
        if experts and not any(experts % ep == 0 for ep in self.expert_degrees):
            return indivisible("ep", self.expert_degrees, experts, f"the {experts:,} experts")
        return ""

    def _all(self) -> int:
        n = self.machine.chips
        return sum(
            self._under(n // (tp * cp), pp)
            for tp in degrees(self.candidates, "tp", n)
            for cp in degrees(self.candidates, "cp", n // tp)
            for pp in degrees(self.candidates, "pp", n // (tp * cp))
        )

    def _under(self, below: int, pp: int) -> int:
        """Return the number of spreads that a rejected mesh of tp and cp would have with these stages."""
        return len(self.splits(below // pp)) * len(self.schedules(pp)) * len(self.candidates["microbatch"])

    def _uneven(self, tp: int, cp: int = 1) -> str:
        """Return why heads, widths or tokens do not divide; '' if they do."""
        plan = self.plan(tp=tp, cp=cp, dp=self.machine.chips // (tp * cp), zero=0, expert_tp=1)
        return next(iter(reasons(self.model, plan, self.T, self.machine)), "")

    def _stages(self, tp: int, cp: int, pp: int, data_ranks: int) -> Iterator[Group]:
        """Yield the groups whose layers divide over stages, and whose sequences divide over data ranks."""
        count = len(self.splits(data_ranks))
        for schedule, chunks in self.schedules(pp) if count else ():
            shape = MeshShape(pp, cp, tp, data_ranks, schedule=schedule, chunks=chunks)
            few = too_few(self.model.L, pp, chunks)
            for microbatch in self.candidates["microbatch"]:
                ranks = self.pods * data_ranks * microbatch
                m, left = divmod(self.batch, ranks)  # microbatches of each rank
                group = Group(shape, self.pods, microbatch, m)
                kind = "stages" if few else "the batch size" if left else "schedule"
                if kind == "schedule" and not scheduled(schedule, pp, m, chunks):
                    yield group
                    continue
                # fewer ranks or chunks are closer to what can be
                distance = ranks if left and not few else pp * chunks
                if self.rejections.count(kind, count, distance):
                    plan = self.plan(**plan_fields(group, Sharing(1, data_ranks)))
                    self.rejections.closest(kind, self._why(kind, plan), plan, distance)

    def _why(self, kind: str, plan: Plan) -> str:
        """Return the message for a rejection of a number of stages, a batch or a schedule."""
        if kind == "stages":
            dp = self.machine.chips // plan.pp
            alone = self.plan(pp=plan.pp, chunks=plan.chunks, schedule=plan.schedule, dp=dp, zero=0)
            return reasons(self.model, alone, self.T, self.machine)[0]
        try:
            return scheduled(plan.schedule, plan.pp, plan.microbatches(self.batch), plan.chunks)
        except PlanError as error:
            return str(error)


def space(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    T: int,
    pods: int,
    fixed: dict[str, Any],
    candidates: dict[str, tuple[Any, ...]],
) -> Space:
    """Return the space of a question, where a fixed field has one candidate.

    Raises a ValueError for names that are not fields of a plan.
    """
    unknown = [n for n in (*fixed, *candidates) if n not in PLAN_FIELDS]
    if unknown:
        raise PlanError(f"a plan has no {unknown[0]!r}; it has {', '.join(PLAN_FIELDS)}")
    if lacks := model.expert_axis_error(**fixed):
        raise PlanError(lacks)
    searched = {*DEGREES, *CANDIDATES, "ep", "expert_tp"}
    alone = {n: (v,) for n, v in fixed.items() if n in searched}
    if stage_layers := fixed.get("stage_layers"):
        alone.setdefault("pp", (len(stage_layers),))
        Plan(pp=alone["pp"][0], stage_layers=stage_layers)  # raises a PlanError if these are other stages
    if fixed.get("chunks") == 1 and "schedule" not in fixed:
        alone["schedule"] = ("1f1b",)
    plan_defaults = {n: v for n, v in fixed.items() if n not in searched and n != "dcn"}
    pods = fixed.get("dcn", pods)
    between_pods(machine.chip, pods)  # raises a ValueError if the catalog has no network for them
    found = {name: tuple(values) for name, values in {**CANDIDATES, **candidates, **alone}.items()}
    # from what does least to what does most, which `is_monotone` counts on
    found["zero"] = tuple(sorted(found["zero"]))
    if set(found["remat"]) <= set(LADDER):
        found["remat"] = tuple(sorted(found["remat"], key=LADDER.index))
    return Space(model, machine, batch, T, pods, found, plan_defaults)


def is_monotone(asked: Space) -> bool:
    """Return whether a higher ZeRO stage (1 to 3) or more recomputation never makes a plan faster."""
    return 0 not in asked.candidates["zero"] and set(asked.candidates["remat"]) <= set(LADDER)


@lru_cache(maxsize=1 << 14)  # a search needs 230 different results 4,100 times
def scheduled(schedule: str, pp: int, M: int, chunks: int) -> str:
    """Return why a schedule does not work with M microbatches; '' if it does."""
    try:
        pipelines.bubble(schedule, pp, M, chunks)
    except pipelines.PipelineError as refused:
        return str(refused)
    return ""
