"""How long does one training step take, term by term, which term binds, and what would unbind it?

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
    "Y": "tensor",
    "C": "context",
    "X": "weights and gradients",
    "Z": "experts",
    "P": "stages",
    "R": "gradients of copies",
    "K": "gradients of copied heads",
    "S": "gradients between pods",
    "H": "host",
}
UNBIND = {
    "arithmetic": "more or faster chips, or less to do",
    "again": "a rematerialization that keeps more, if memory allows",
    "memory": "more HBM bandwidth, fused kernels, or wider layers",
    "uneven stages": "a number of stages (times chunks) that divides the layers",
    "tensor": "fewer tensor ways, collective matmul, or a domain that all of them fit in",
    "context": "fewer context ways or more tokens on each chip",
    "weights and gradients": "more tokens to a microbatch, tensor ways that shrink the shards, or ZeRO-1",
    "experts": "fewer expert ways within one domain, wider experts, or a schedule that overlaps them",
    "stages": "larger microbatches or fewer chunks",
    "gradients of copies": "more microbatches between two sums, or fsdp in place of copies",
    "gradients of copied heads": "no more tensor ways than key-value heads",
    "gradients between pods": "more tokens to a pod, or 16-bit gradients",
    "bubble": "more microbatches, more chunks, fewer stages or a schedule that splits the backward pass",
    "optimizer": "its state over more chips (ZeRO)",
    "host": "less in the host's memory, or more arithmetic for each layer",
    "fixed": "longer steps",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep(Result):
    """One step of a plan. `seconds` are numbers, `traffic` the collectives, `memory` what a chip holds."""

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
        """How the step is spread over the chips."""
        return self.shape.plan

    @property
    def batch(self) -> int:
        """Sequences of one step."""
        return self.case.batch

    @property
    def T(self) -> int:
        """Tokens of a sequence."""
        return self.case.T

    @property
    def efficiency(self) -> TrainingEfficiency:
        """What share of its documented peak each class of operation and each link reaches."""
        return self.case.efficiency

    @property
    def work(self) -> Work:
        """FLOPs, bytes and parameters of the model under the plan's rematerialization."""
        return self.shape.work

    @property
    def peak_s(self) -> float:
        """The step of the same plan with every unit and every link at its documented peak."""
        return replace(self.case, efficiency=PEAK).seconds(self.shape).total_s

    @property
    def total_s(self) -> float:
        """The step: the terms added."""
        return self.seconds.total_s

    @property
    def math(self) -> dict[str, float]:
        """The needed arithmetic by class of operation, in seconds of the mean stage."""
        return self.seconds.math._asdict()

    @property
    def exposed(self) -> dict[str, float]:
        """What is waited for, by the kind of collective."""
        return {AXES[axis]: s for axis, s in self.seconds.exposed.items() if s}

    @property
    def terms(self) -> dict[str, float]:
        """All that the step consists of, in seconds; collectives as far as they are waited for."""
        s = self.seconds
        named = {
            "arithmetic": s.math.total,
            "again": s.recomputed_s,
            "memory": s.memory_s,
            "uneven stages": s.uneven_s,
            **self.exposed,
            "bubble": s.bubble_s,
            "optimizer": s.optimizer_s,
            "fixed": s.fixed_s,
        }
        return {name: seconds for name, seconds in named.items() if seconds}

    @property
    def tokens(self) -> int:
        """Those of one step."""
        return self.batch * self.T

    @property
    def chips(self) -> int:
        """All chips, over all pods."""
        return self.plan.chips

    @property
    def useful_flops(self) -> float:
        """What the model needs: forward and backward, nothing twice, whatever the plan."""
        w = self.work
        # Frozen weights need no gradients of their own: one of three products less, attention has none.
        return self.tokens * (w.useful - (w.forward.total - w.forward.attention) * self.plan.frozen)

    @property
    def hardware_flops(self) -> float:
        """What the chips do: with rematerialization, and scores that the attention kernel does again.

        Of more tensor ways than key-value heads, each chip makes the keys and values of a whole head.
        """
        w, passes = self.work, 2 if self.plan.frozen else 3
        # the share of the dense products that only copies of heads make
        copied = (w.again(self.plan.tp) - 1) * (passes * w.forward.matmul + w.recomputed.matmul)
        head_again = w.forward.head if self.plan.loss_tiles > 1 else 0.0
        return self.useful_flops + self.tokens * (w.recomputed.total + head_again + copied)

    @property
    def peak_flops_per_s(self) -> float:
        """Of all chips, in the type that the products are computed in."""
        return self.chips * self.machine.chip.flops_per_s(self.plan.compute)  # dense, documented

    @property
    def mfu(self) -> float:
        """Useful FLOPs over what the chips could have done in the time."""
        # source: chowdhery2023palm, appendix B
        return self.useful_flops / (self.total_s * self.peak_flops_per_s)

    @property
    def hfu(self) -> float:
        """All FLOPs over what the chips could have done in the time."""
        return self.hardware_flops / (self.total_s * self.peak_flops_per_s)

    @property
    def flops_per_s_per_chip(self) -> float:
        """Useful FLOPs each second of each chip, as runs are reported."""
        return self.useful_flops / (self.total_s * self.chips)

    @property
    def tokens_per_s(self) -> float:
        """Of all chips together."""
        return self.tokens / self.total_s

    @property
    def binds(self) -> str:
        """The longest term, all that is not arithmetic taken apart."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def loss(self) -> str:
        """The longest term but the arithmetic; '' where there is none."""
        rest = {name: s for name, s in self.terms.items() if name != "arithmetic"}
        return max(rest, key=lambda name: rest[name]) if rest else ""

    @property
    def unbind(self) -> str:
        """What would shorten the longest term but the arithmetic, or the arithmetic itself."""
        return UNBIND[self.loss or "arithmetic"]

    @property
    def ratios(self) -> dict[str, float]:
        """Every kind of collective, hidden or not, over the arithmetic: above 1 nothing can hide it."""
        busy: dict[str, float] = {}
        for row in self.traffic:
            busy[AXES[row.axes]] = busy.get(AXES[row.axes], 0.0) + row.seconds
        worked = self.seconds.math.total + self.seconds.recomputed_s  # what can hide them
        # rho of the chapter, exactly
        return {name: s / worked for name, s in busy.items()}

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(s, 's')}" for name, s in self.terms.items())
        unfit = "" if self.memory.fits else f"; but {too_large(self.memory.total, self.machine.chip)}"
        return (
            f"{self.model.name}, {count(self.tokens)} tokens, {self.plan}: {si(self.total_s, 's')} a step, "
            f"MFU {percent(self.mfu)}, HFU {percent(self.hfu)} ({terms}); {self.binds} binds, and most would "
            f"be won by {self.unbind}{unfit}"
        )


class PlanEvaluation(NamedTuple):
    """One plan: its step, and the bytes that a chip holds; or why there is none, and then no step."""

    step: TrainingStep | None
    memory_bytes: float
    why: tuple[str, ...] = ()

    @property
    def step_s(self) -> float:
        """Seconds of the step; infinite without one."""
        return self.step.total_s if self.step else float("inf")


def evaluate(case: TrainingCase, plan: Plan, *, memory_first: bool = True) -> PlanEvaluation:
    """The plan's step and a chip's memory; where the plan cannot be, the reasons in `why`.

    With `memory_first`, a plan that does not fit is not timed: it has no step.
    """
    if why := reasons(case.model, plan, case.T, case.machine):
        return PlanEvaluation(None, float("inf"), why)
    try:
        s = case.shape(plan)
        memory = case.held(s)
        # What does not fit needs no time: its collectives are not laid out.
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
    """One step of `batch` sequences of T tokens. A plan that does not divide raises; one too large tells so.

    `causal`: kernels skip what the mask throws away, and MFU counts useful FLOPs without it. A Slice is one
    pod of `plan.dcn`.
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
    """Every collective of one step, at the peak of the links.

    `loop`: of plain JAX that a compiler splits, whether its layers are a loop (True) or written out (False):
    gradients then travel as the activations do, and tokens to the embedding's rows. None, as the published
    systems do it, which all fitted shares rest on.
    """
    known = TrainingCase(model, machine, batch=batch, T=T)
    return tuple(known.traffic(known.shape(plan), loop))


def feasible(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int, headroom: float = 0.0
) -> tuple[str, ...]:
    """Why the plan cannot be, one sentence each; nothing where it can.

    It has to leave the share `headroom` of the HBM free; below 0, it may exceed the HBM by as much.
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
