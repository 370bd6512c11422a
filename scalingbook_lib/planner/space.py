"""Which ways to spread a training step are there at all, and why are the others none?

A spread is a mesh (tp, cp, fsdp, pp, dp), a microbatch and a schedule; ZeRO and rematerialization are tried
within it. Ways are divisors of the number of chips. Chapter: Training LLaMA 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scalingbook_lib.machines import Machine, Slice
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.spread import Group, Sharing, Spread, divisors, tried_ways, ways
from scalingbook_lib.planner.tally import Miss, Tally
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training import Plan, PlanError
from scalingbook_lib.training.feasible import reasons, too_large
from scalingbook_lib.training.plan import PLAN_FIELDS
from scalingbook_lib.training.stages import too_few

WAYS = ("tp", "cp", "fsdp", "pp", "dp")
TRIED: dict[str, tuple[Any, ...]] = {
    "zero": (1, 2, 3),
    "remat": ("none", "selective", "full"),
    "microbatch": (1, 2, 4),
    "schedule": ("1f1b", "interleaved"),
    "chunks": (2, 4, 8),
}
LADDER = ("none", "selective", "full")  # of remat: each does what the one before does, and more


@dataclass(frozen=True, slots=True)
class Space:
    """The question's side of the search: what is given, and what is tried."""

    model: Transformer
    machine: Machine
    batch: int
    T: int
    pods: int
    tried: dict[str, tuple[Any, ...]]
    constant: dict[str, Any]
    tally: Tally = field(default_factory=Tally)
    _splits: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, **ways: Any) -> Plan:
        """A plan of this space; what is not named is the plan's own default."""
        return Plan(**{**self.constant, "dcn": self.pods, **ways})

    def schedules(self, pp: int) -> tuple[tuple[str, int], ...]:
        """Schedules and their chunks; one stage has none to choose from."""
        if pp == 1:
            return (("1f1b", 1),)
        kinds = self.tried["schedule"]
        return tuple((s, v) for s in kinds for v in (self.tried["chunks"] if s == "interleaved" else (1,)))

    def splits(self, rest: int) -> list[int]:
        """The ways of fsdp, of so many chips; dp is what is left."""
        if rest not in self._splits:
            copies = tried_ways(self.tried, "dp", rest)
            self._splits[rest] = [n for n in tried_ways(self.tried, "fsdp", rest) if rest // n in copies]
        return self._splits[rest]

    def zeros(self, shared: int) -> tuple[tuple[int, ...], str]:
        """The kinds of ZeRO that so many chips can share weights by; else why none."""
        tried = self.tried["zero"]
        # nobody to share with: all kinds of ZeRO are the same plan, and one stands for them
        if shared == 1:
            return tried[:1], ""
        if not isinstance(self.machine, Slice) or self.model.D % shared == 0:
            return tried, ""
        plan = self.plan(fsdp=shared, dp=self.machine.chips // shared, zero=1)
        why = reasons(self.model, plan, self.T, self.machine)
        return ((0,), "") if 0 in tried or not why else ((), why[0])

    @property
    def expert_ways(self) -> tuple[int, ...]:
        """The ways of ep to try."""
        # whole experts on each chip
        return self.tried.get("ep", divisors(self.model.experts.E if self.model.experts else 1))

    def shares(self, s: Spread, fsdp: int) -> list[Sharing]:
        """Ways that divide what would hold the same experts; with one way of tp, expert_tp says nothing."""
        kinds = self.tried.get("expert_tp", (None, 1)) if self.model.experts else (None,)
        found = []
        for expert_tp in kinds if s.tp > 1 else kinds[:1]:
            stage = (s.tp if expert_tp == 1 else 1) * s.cp * fsdp  # chips that would hold the same experts
            ways = (ep for ep in self.expert_ways if stage % ep == 0)
            found += [Sharing(fsdp, s.rest // fsdp, ep, expert_tp) for ep in ways]
        return found

    def misses(self, g: Group, fsdp: int, miss: Miss) -> None:
        """Count a spread that has no legal plan; of memory, `far` is that of its smallest."""
        if self.tally.counts(miss.kind, 1, miss.far):
            plan = self.plan(**ways(g, Sharing(fsdp, g.spread.rest // fsdp)))
            self.tally.nearest(miss.kind, miss.why or too_large(miss.far, self.machine.chip), plan, miss.far)

    def groups(self) -> Iterator[Group]:
        """All that divide; what does not is counted in the tally."""
        chips = self.machine.chips
        # what is wrong with the plainest plan is wrong with all
        why = reasons(self.model, self.plan(dp=chips, zero=0), self.T, self.machine)
        if why:
            self.tally.refuse("model", self._all(), why[0])
            return
        for tp in tried_ways(self.tried, "tp", chips):
            # heads and widths first: what tp does not divide, no cp mends
            narrow = self._uneven(tp=tp)
            for cp in tried_ways(self.tried, "cp", chips // tp):
                below = chips // (tp * cp)
                why = narrow or self._uneven(tp=tp, cp=cp)
                if why:
                    kind = "tensor ways" if narrow else "context ways"
                    count = sum(self._under(below, pp) for pp in tried_ways(self.tried, "pp", below))
                    self.tally.refuse(kind, count, why, self.plan(tp=tp, cp=cp, dp=below))
                    continue
                for pp in tried_ways(self.tried, "pp", below):
                    yield from self._stages(tp, cp, pp, below // pp)

    def _all(self) -> int:
        n = self.machine.chips
        return sum(
            self._under(n // (tp * cp), pp)
            for tp in tried_ways(self.tried, "tp", n)
            for cp in tried_ways(self.tried, "cp", n // tp)
            for pp in tried_ways(self.tried, "pp", n // (tp * cp))
        )

    def _under(self, below: int, pp: int) -> int:
        """How many spreads a refused mesh of tp and cp would have had with these stages."""
        return len(self.splits(below // pp)) * len(self.schedules(pp)) * len(self.tried["microbatch"])

    def _uneven(self, tp: int, cp: int = 1) -> str:
        """Why heads, widths or tokens do not divide; '' where they do."""
        plan = self.plan(tp=tp, cp=cp, dp=self.machine.chips // (tp * cp), zero=0, expert_tp=1)
        return next(iter(reasons(self.model, plan, self.T, self.machine)), "")

    def _stages(self, tp: int, cp: int, pp: int, rest: int) -> Iterator[Group]:
        """Layers for the stages, and sequences for the data ranks."""
        count = len(self.splits(rest))
        for schedule, chunks in self.schedules(pp) if count else ():
            spread = Spread(pp, cp, tp, rest, schedule=schedule, chunks=chunks)
            few = too_few(self.model.L, pp, chunks)
            for microbatch in self.tried["microbatch"]:
                ranks = self.pods * rest * microbatch
                m, left = divmod(self.batch, ranks)  # microbatches of each rank
                refused = "stages" if few else "sequences" if left else "schedule"
                if refused == "schedule" and not scheduled(schedule, pp, m, chunks):
                    yield Group(spread, self.pods, microbatch, m)
                    continue
                # fewer ranks or chunks are nearer to what can be
                far = ranks if left and not few else pp * chunks
                if self.tally.counts(refused, count, far):
                    plan = self.plan(**ways(Group(spread, self.pods, microbatch, m), Sharing(1, rest)))
                    self.tally.nearest(refused, self._why(refused, plan), plan, far)

    def _why(self, refused: str, plan: Plan) -> str:
        """In words: layers that are too few, sequences that do not divide, or what the schedule says."""
        if refused == "stages":
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
    tried: dict[str, tuple[Any, ...]],
) -> Space:
    """What is fixed is tried alone; names that no plan has are refused."""
    unknown = [n for n in (*fixed, *tried) if n not in PLAN_FIELDS]
    if unknown:
        raise PlanError(f"a plan has no {unknown[0]!r}; it has {', '.join(PLAN_FIELDS)}")
    if lacks := model.expert_axis_error(**fixed):
        raise PlanError(lacks)
    searched = {*WAYS, *TRIED, "ep", "expert_tp"}
    alone = {n: (v,) for n, v in fixed.items() if n in searched}
    if fixed.get("chunks") == 1 and "schedule" not in fixed:
        alone["schedule"] = ("1f1b",)
    constant = {n: v for n, v in fixed.items() if n not in searched and n != "dcn"}
    pods = fixed.get("dcn", pods)
    found = {name: tuple(values) for name, values in {**TRIED, **tried, **alone}.items()}
    # `has_laws` and the picks of `fast` count on rising order
    found["zero"] = tuple(sorted(found["zero"]))
    if set(found["remat"]) <= set(LADDER):
        found["remat"] = tuple(sorted(found["remat"], key=LADDER.index))
    return Space(model, machine, batch, T, pods, found, constant)


def has_laws(asked: Space) -> bool:
    """Whether plans that do more are never faster: ZeRO's kinds from 1 to 3, and those of LADDER."""
    return 0 not in asked.tried["zero"] and set(asked.tried["remat"]) <= set(LADDER)


def needs_plans(asked: Space) -> bool:
    """Whether every plan is to be made: experts on a torus, two stages on each chip, activations on hosts.

    And weights that are gathered late, or frozen.
    """
    torus = asked.model.experts is not None and isinstance(asked.machine, Slice)
    hosted = any(remat.startswith("offload") for remat in asked.tried["remat"])
    unusual = not asked.constant.get("prefetch", True) or asked.constant.get("frozen", False)
    return torus or hosted or unusual or "dualpipe" in asked.tried["schedule"]


@lru_cache(maxsize=1 << 14)  # 4,100 times of 230: a search takes 1.2 times as long without
def scheduled(schedule: str, pp: int, M: int, chunks: int) -> str:
    """'' where a schedule takes so many microbatches, else why not."""
    try:
        pipelines.bubble(schedule, pp, M, chunks)
    except pipelines.PipelineError as refused:
        return str(refused)
    return ""
