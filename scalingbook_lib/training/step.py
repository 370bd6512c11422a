"""The time of one training step by term, its bottleneck, and what would shorten it.

Chapter: Training.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.case import TrainingCase
from scalingbook_lib.training.efficiency import PEAK, TrainingEfficiency
from scalingbook_lib.training.feasible import reasons, too_large
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.training.memory import TrainingMemory, held
from scalingbook_lib.training.plan import Plan
from scalingbook_lib.training.shape import TrainingShape
from scalingbook_lib.training.times import Seconds
from scalingbook_lib.training.work import Work
from scalingbook_lib.units import Result, count, percent, si

AXES = {
    "Y": "tensor parallelism",
    "C": "context parallelism",
    "X": "weights and gradients",
    "Z": "expert parallelism",
    "P": "pipeline sends",
    "R": "gradients of replicas",
    "K": "gradients of replicated KV heads",
    "S": "gradients between pods",
    "H": "host transfers",
}
"""The term of a step to which the exposed time of collectives over each mesh axis belongs."""
REMEDIES = {
    "compute": "more or faster chips, or fewer FLOPs",
    "recomputation": "a rematerialization policy that saves more activations, if memory allows",
    "HBM traffic": "more HBM bandwidth, fused kernels, or a wider model",
    "uneven stages": "a number of stages (times chunks) that divides the number of layers",
    "tensor parallelism": "a smaller tensor-parallel degree, collective matmuls, or a larger NVLink domain",
    "context parallelism": "a smaller context-parallel degree, or more tokens per chip",
    "weights and gradients": "more tokens per microbatch, a larger tensor-parallel degree, or ZeRO-1",
    "expert parallelism": "expert parallelism within one domain, wider experts, or overlapped all-to-alls",
    "pipeline sends": "larger microbatches or fewer chunks",
    "gradients of replicas": "more microbatches per step, or FSDP instead of replicas",
    "gradients of replicated KV heads": "a tensor-parallel degree of at most the number of KV heads",
    "gradients between pods": "more tokens per pod, or 16-bit gradients",
    "bubble": "more microbatches, more chunks, fewer stages, or a schedule that splits the backward pass",
    "optimizer": "an optimizer state sharded over more chips (ZeRO)",
    "host transfers": "less offloading to host memory, or more compute per layer",
    "fixed overhead": "longer steps",
}
"""What would shorten each term of a step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep(Result):
    """One training step of a plan: its time by term, its collectives (`traffic`), and a chip's `memory`."""

    case: TrainingCase
    shape: TrainingShape
    seconds: Seconds
    traffic: tuple[TrainingCollective, ...]
    memory: TrainingMemory

    @property
    def model(self) -> Transformer:
        """The model that is trained."""
        return self.case.model

    @property
    def machine(self) -> Machine:
        """The machine, or one pod of it."""
        return self.case.machine

    @property
    def plan(self) -> Plan:
        """The parallelism plan of the step."""
        return self.shape.plan

    @property
    def batch(self) -> int:
        """The global batch size in sequences."""
        return self.case.batch

    @property
    def T(self) -> int:
        """The sequence length in tokens."""
        return self.case.T

    @property
    def efficiency(self) -> TrainingEfficiency:
        """The share of its documented peak that each class of operation and each link reaches."""
        return self.case.efficiency

    @property
    def work(self) -> Work:
        """FLOPs, bytes and parameters of the model under the plan's rematerialization."""
        return self.shape.work

    @property
    def peak_s(self) -> float:
        """The time in seconds of the same plan with every unit and every link at its documented peak."""
        return replace(self.case, efficiency=PEAK).seconds(self.shape).total_s

    @property
    def total_s(self) -> float:
        """The time of the step in seconds: the sum of its terms."""
        return self.seconds.total_s

    @property
    def math(self) -> dict[str, float]:
        """The time of forward and backward compute by class of operation, in seconds of the mean stage."""
        return self.seconds.math._asdict()

    @property
    def exposed(self) -> dict[str, float]:
        """The exposed time of collectives in seconds, by term."""
        return {AXES[axis]: s for axis, s in self.seconds.exposed.items() if s}

    @property
    def terms(self) -> dict[str, float]:
        """Every term of the step in seconds; collectives count as far as they are exposed."""
        s = self.seconds
        named = {
            "compute": s.math.total,
            "recomputation": s.recomputed_s,
            "HBM traffic": s.memory_s,
            "uneven stages": s.uneven_s,
            **self.exposed,
            "bubble": s.bubble_s,
            "optimizer": s.optimizer_s,
            "fixed overhead": s.fixed_s,
        }
        return {name: seconds for name, seconds in named.items() if seconds}

    @property
    def tokens(self) -> int:
        """The tokens of one step."""
        return self.batch * self.T

    @property
    def chips(self) -> int:
        """The chips of all pods."""
        return self.plan.chips

    @property
    def useful_flops(self) -> float:
        """The FLOPs that the model needs: forward and backward, without recomputation, whatever the plan."""
        w = self.work
        # Frozen weights need no gradients of their own: one of three products less, attention has none.
        return self.tokens * (w.useful - (w.forward.total - w.forward.attention) * self.plan.frozen)

    @property
    def hardware_flops(self) -> float:
        """The FLOPs that the chips do, including rematerialization and recomputed attention scores.

        With a tensor-parallel degree above the number of KV heads, each chip computes the keys and values of
        a whole head.
        """
        w, passes = self.work, 2 if self.plan.frozen else 3
        recomputed_head = w.forward.head if self.plan.loss_tiles > 1 else 0.0
        added = w.recomputed.total + recomputed_head + w.replicated_flops(self.plan.tp, passes)
        return self.useful_flops + self.tokens * added

    @property
    def peak_flops_per_s(self) -> float:
        """The documented dense peak of all chips in FLOP/s, in the dtype of the matmuls."""
        return self.chips * self.machine.chip.flops_per_s(self.plan.compute)  # dense, documented

    @property
    def mfu(self) -> float:
        """Model FLOPs utilization: useful FLOPs over the FLOPs of the chips' peak rate in that time."""
        # source: chowdhery2023palm, appendix B
        return self.useful_flops / (self.total_s * self.peak_flops_per_s)

    @property
    def hfu(self) -> float:
        """Hardware FLOPs utilization: all FLOPs over the FLOPs of the chips' peak rate in that time."""
        return self.hardware_flops / (self.total_s * self.peak_flops_per_s)

    @property
    def flops_per_s_per_chip(self) -> float:
        """Useful FLOP/s per chip, as runs are reported."""
        return self.useful_flops / (self.total_s * self.chips)

    @property
    def tokens_per_s(self) -> float:
        """The throughput of all chips in tokens per second."""
        return self.tokens / self.total_s

    @property
    def bottleneck(self) -> str:
        """The name of the longest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def largest_overhead(self) -> str:
        """The name of the longest term other than compute; "" if there is none."""
        rest = {name: s for name, s in self.terms.items() if name != "compute"}
        return max(rest, key=lambda name: rest[name]) if rest else ""

    @property
    def remedy(self) -> str:
        """What would shorten the largest overhead, or compute if there is none."""
        return REMEDIES[self.largest_overhead or "compute"]

    @property
    def ratios(self) -> dict[str, float]:
        """The time of each kind of collective over that of compute; above 1, compute cannot hide it."""
        busy: dict[str, float] = {}
        for row in self.traffic:
            busy[AXES[row.axes]] = busy.get(AXES[row.axes], 0.0) + row.seconds
        compute_s = self.seconds.math.total + self.seconds.recomputed_s
        # rho of the chapter, exactly
        return {name: s / compute_s for name, s in busy.items()}

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(s, 's')}" for name, s in self.terms.items())
        unfit = "" if self.memory.fits else f"; {too_large(self.memory.total, self.machine.chip)}"
        return (
            f"{self.model.name}, {count(self.tokens)} tokens per step, {self.plan}: step time "
            f"{si(self.total_s, 's')}, MFU {percent(self.mfu)}, HFU {percent(self.hfu)} ({terms}){unfit}"
        )


class PlanEvaluation(NamedTuple):
    """The step of a plan and its memory on a chip, or the reasons why the plan is impossible."""

    step: TrainingStep | None
    memory_bytes: float
    why: tuple[str, ...] = ()

    @property
    def step_s(self) -> float:
        """The time of the step in seconds; infinite if there is none."""
        return self.step.total_s if self.step else float("inf")


def evaluate(case: TrainingCase, plan: Plan, *, memory_first: bool = True) -> PlanEvaluation:
    """Evaluate a plan: its step and its memory on a chip, or the reasons in `why` if it is impossible.

    With `memory_first`, a plan that does not fit in memory is not timed and has no step.
    """
    if why := reasons(case.model, plan, case.T, case.machine):
        return PlanEvaluation(None, float("inf"), why)
    try:
        s = case.shape(plan)
        memory = case.held(s)
        # a plan that does not fit needs no time, so its collectives are not listed
        if memory_first and not memory.fits:
            why = too_large(memory.total, case.machine.chip, case.headroom)
            return PlanEvaluation(None, memory.total, (why,))
        return PlanEvaluation(_timed(case, s, memory), memory.total)
    except ValueError as refused:
        return PlanEvaluation(None, float("inf"), (str(refused),))


def _timed(case: TrainingCase, s: TrainingShape, memory: TrainingMemory) -> TrainingStep:
    rows = tuple(case.traffic(s))
    return TrainingStep(case=case, shape=s, seconds=case.seconds(s, rows), traffic=rows, memory=memory)


def step(
    model: Transformer,
    machine: Machine,
    plan: Plan,
    *,
    batch: int,
    T: int,
    efficiency: TrainingEfficiency = PEAK,
    causal: bool = True,
) -> TrainingStep:
    """The time and memory of one training step of `batch` sequences of `T` tokens.

    With `causal`, attention kernels skip masked blocks, and MFU does not count their FLOPs. A `Slice` is one
    pod of `plan.dcn`. A plan whose memory is too large is timed, and its text says that it does not fit.

    Raises a ValueError if the plan does not divide the model, the batch or the machine.
    """
    case = TrainingCase(model, machine, batch=batch, T=T, efficiency=efficiency, causal=causal)
    if why := reasons(model, plan, T, machine):
        raise ValueError(f"{plan}: {'; '.join(why)}")
    s = case.shape(plan)
    return _timed(case, s, held(s, machine))


def traffic(
    model: Transformer,
    plan: Plan,
    machine: Machine,
    *,
    batch: int,
    T: int,
    loop: bool | None = None,
) -> tuple[TrainingCollective, ...]:
    """Every collective of one step, at the peak rate of the links.

    `loop` describes plain JAX that a compiler partitions, whose layers are a loop (True) or unrolled (False):
    gradients then have the dtype of the activations, and tokens are sent to the rows of the embedding. None
    stands for published training systems, to which all shares were fitted.
    """
    known = TrainingCase(model, machine, batch=batch, T=T)
    return tuple(known.traffic(known.shape(plan), loop))


def feasible(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int, headroom: float = 0.0
) -> tuple[str, ...]:
    """The reasons why the plan is impossible, one sentence each; empty if it is possible.

    The plan has to leave the share `headroom` of the HBM free; below 0, it may exceed the HBM by as much.
    """
    found = list(reasons(model, plan, T, machine))
    known = TrainingCase(model, machine, batch=batch, T=T)
    try:
        s = known.shape(plan)
        known.seconds(s)
    except ValueError as refused:
        return (*found, str(refused))
    memory = held(s, machine, headroom=headroom)
    return (*found, *(() if memory.fits else (too_large(memory.total, machine.chip, headroom),)))
