"""The candidates of a search for a training plan, group by group, and why the others do not divide.

A spread is a mesh (tp, cp, fsdp, pp, dp), a microbatch and a schedule; ZeRO and rematerialization are varied
within it. Degrees are divisors of the number of chips. Chapter: Training Llama 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.meshes import Group, MeshShape, Sharing, degrees, divisors, plan_fields
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
    """What a search is asked: what is given, the candidates for each field, and the plan's other fields."""

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
        """A plan of this space; what is not named is as `fixed` says, or the plan's own default."""
        return Plan(**{**self.plan_defaults, "dcn": self.pods, **fields})

    def schedules(self, pp: int) -> tuple[tuple[str, int], ...]:
        """Schedules and their chunks; one stage has none to choose from."""
        if pp == 1:
            return (("1f1b", 1),)
        kinds = self.candidates["schedule"]
        return tuple(
            (s, v) for s in kinds for v in (self.candidates["chunks"] if s == "interleaved" else (1,))
        )

    def splits(self, data_ranks: int) -> list[int]:
        """The FSDP degrees of so many data ranks, ascending; dp is what is left."""
        if data_ranks not in self._splits:
            copies = degrees(self.candidates, "dp", data_ranks)
            found = degrees(self.candidates, "fsdp", data_ranks)
            self._splits[data_ranks] = [n for n in found if data_ranks // n in copies]
        return self._splits[data_ranks]

    def zeros(self, shared: int) -> tuple[tuple[int, ...], str]:
        """The kinds of ZeRO by which so many chips can share weights; else why there is none."""
        kinds = self.candidates["zero"]
        # one chip shares with no other: all kinds of ZeRO are the same plan, and one stands for them
        if shared == 1:
            return kinds[:1], ""
        if not isinstance(self.machine, Slice) or self.model.D % shared == 0:
            return kinds, ""
        plan = self.plan(fsdp=shared, dp=self.machine.chips // shared, zero=1)
        why = reasons(self.model, plan, self.T, self.machine)
        return ((0,), "") if 0 in kinds or not why else ((), why[0])

    def sharings(self, shape: MeshShape, fsdp: int) -> list[Sharing]:
        """How experts can be spread over the chips of a stage; one way without experts, none if none divides.

        Those that put fewest parameters on a chip come first.
        """
        if not self.model.experts:
            return [Sharing(fsdp, shape.data_ranks // fsdp)]
        found = [Sharing(fsdp, shape.data_ranks // fsdp, *how) for how in self._experts(shape, fsdp)]
        return sorted(found, key=lambda one: -one.ep * (1 if one.expert_tp == 1 else shape.tp))

    def _experts(self, shape: MeshShape, fsdp: int) -> Iterator[tuple[int, int | None]]:
        """Degrees of ep, with expert_tp, that divide the chips which would hold the same experts."""
        # without tensor parallelism, expert_tp says nothing
        kinds = self.candidates.get("expert_tp", (None, 1))
        for expert_tp in kinds if shape.tp > 1 else kinds[:1]:
            stage = (shape.tp if expert_tp == 1 else 1) * shape.cp * fsdp
            yield from ((ep, expert_tp) for ep in self.expert_degrees if stage % ep == 0)

    @property
    def expert_degrees(self) -> tuple[int, ...]:
        """The candidates for ep: whole experts on each chip."""
        return self.candidates.get("ep", divisors(self.model.experts.E if self.model.experts else 1))

    def groups(self) -> Iterator[Group]:
        """All groups that divide; what does not is counted in `rejections`."""
        chips = self.machine.chips
        # what is wrong with the plainest plan is wrong with all
        why = reasons(self.model, self.plan(dp=chips, zero=0), self.T, self.machine)
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

    def _all(self) -> int:
        n = self.machine.chips
        return sum(
            self._under(n // (tp * cp), pp)
            for tp in degrees(self.candidates, "tp", n)
            for cp in degrees(self.candidates, "cp", n // tp)
            for pp in degrees(self.candidates, "pp", n // (tp * cp))
        )

    def _under(self, below: int, pp: int) -> int:
        """How many spreads a refused mesh of tp and cp would have had with these stages."""
        return len(self.splits(below // pp)) * len(self.schedules(pp)) * len(self.candidates["microbatch"])

    def _uneven(self, tp: int, cp: int = 1) -> str:
        """Why heads, widths or tokens do not divide; '' where they do."""
        plan = self.plan(tp=tp, cp=cp, dp=self.machine.chips // (tp * cp), zero=0, expert_tp=1)
        return next(iter(reasons(self.model, plan, self.T, self.machine)), "")

    def _stages(self, tp: int, cp: int, pp: int, data_ranks: int) -> Iterator[Group]:
        """Layers for the stages, and sequences for the data ranks."""
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
        """In words: layers that are too few, sequences that do not divide, or what the schedule says."""
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
    """The space of a question. A fixed field has one candidate; names that no plan has are refused."""
    unknown = [n for n in (*fixed, *candidates) if n not in PLAN_FIELDS]
    if unknown:
        raise PlanError(f"a plan has no {unknown[0]!r}; it has {', '.join(PLAN_FIELDS)}")
    if lacks := model.expert_axis_error(**fixed):
        raise PlanError(lacks)
    searched = {*DEGREES, *CANDIDATES, "ep", "expert_tp"}
    alone = {n: (v,) for n, v in fixed.items() if n in searched}
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
    """Whether no plan of a spread is faster than one with less of ZeRO (1 to 3) and of LADDER."""
    return 0 not in asked.candidates["zero"] and set(asked.candidates["remat"]) <= set(LADDER)


@lru_cache(maxsize=1 << 14)  # a search asks 4,100 times for 230 answers
def scheduled(schedule: str, pp: int, M: int, chunks: int) -> str:
    """'' where a schedule takes so many microbatches, else why not."""
    try:
        pipelines.bubble(schedule, pp, M, chunks)
    except pipelines.PipelineError as refused:
        return str(refused)
    return ""
