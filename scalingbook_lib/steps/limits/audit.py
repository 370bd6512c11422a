"""The times of compute and of every communication term in one forward pass of a plan, and the bottleneck.

Tensor parallelism is innermost, then experts, then pipeline stages, and data parallelism over the rest.
Chapter: GPUs.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Experts, Transformer
from scalingbook_lib.steps.limits.expert import exchange_over
from scalingbook_lib.steps.limits.limit import noun
from scalingbook_lib.steps.limits.parallel import pipeline_parallel
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Result):
    """The terms of a forward pass over the tokens of a step on each chip, in seconds.

    `data_s` moves weights (FSDP), `tensor_s` activations within an MLP, `expert_s` tokens to experts and
    back, `hop_s` activations to the next stage. In the backward pass, all but the hop are doubled.
    """

    machine: str
    dp: int
    tp: int
    pp: int
    ep: int
    tokens_per_chip: float
    math_s: float
    data_s: float
    tensor_s: float
    expert_s: float
    hop_s: float
    bubble: float

    @property
    def terms(self) -> dict[str, float]:
        """The terms in seconds by name: 'compute', 'data', 'tensor', 'expert', 'pipeline'."""
        return {
            "compute": self.math_s,
            "data": self.data_s,
            "tensor": self.tensor_s,
            "expert": self.expert_s,
            "pipeline": self.hop_s,
        }

    @property
    def bound(self) -> str:
        """The name of the longest term."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def lower_s(self) -> float:
        """The time in seconds if everything overlaps.

        Weights also move during the bubble, other data does not.
        """
        # a stage is busy for 1 - bubble of the time
        within = max(s for name, s in self.terms.items() if name != "data")
        return max(within / (1 - self.bubble), self.data_s)

    @property
    def upper_s(self) -> float:
        """The time in seconds if nothing overlaps."""
        within = sum(s for name, s in self.terms.items() if name != "data")
        return within / (1 - self.bubble) + self.data_s

    @property
    def utilization(self) -> float:
        """The maximum share of compute in the time: math over `lower_s`."""
        return self.math_s / self.lower_s if self.lower_s else 0.0

    def __str__(self) -> str:
        ways = {"DP": self.dp, "TP": self.tp, "PP": self.pp, "EP": self.ep}
        plan = ", ".join(f"{name} {n:,}" for name, n in ways.items() if n > 1) or "one chip"
        terms = ", ".join(f"{name} {si(s, 's')}" for name, s in self.terms.items() if s)
        return (
            f"{self.machine} as {plan}, {count(round(self.tokens_per_chip))} tokens per chip: bottleneck "
            f"{self.bound} ({terms}; bubble {percent(self.bubble)}), at most "
            f"{percent(self.utilization)} of peak FLOP/s"
        )


def audit(
    machine: Machine,
    model: Transformer,
    *,
    tokens: float,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    m: int = 1,
    once: bool = True,
    dtype: DType = BF16,
    moved: DType = BF16,
) -> Audit:
    """The audit of a forward pass over `tokens` tokens in m microbatches, for the MLPs (or experts) only.

    If a model has experts, all L layers count as layers with experts, with shared experts sharded like the
    others. Attention, the embedding and HBM traffic are left out. The ratios of the terms are those of
    `data_parallel` and the other limits. Raises a ValueError if tp · pp · ep does not divide the chips, or if
    there are fewer experts than `ep`.
    """
    require_min(1, tp=tp, pp=pp, ep=ep, m=m)
    require_min(0, tokens=tokens)
    mlp, dp = _mlp(model), _replicas(machine, model, tp * pp * ep, ep)
    mesh, layers = machine.mesh(Y=tp, Z=ep, P=pp, X=dp), model.L
    # parameters of one MLP
    each, weights = tokens / machine.chips, (3 if model.gated else 2) * model.D * mlp.F
    passed = moved.bytes * each * model.D * layers  # one chip's tokens, through all layers
    # the weights of all experts
    held = moved.bytes * weights * (mlp.E + mlp.shared) * layers / (tp * pp * ep)
    shape = {"D": model.D, "F": mlp.F, "L": layers, "gated": model.gated, "model_parallel": tp * ep}
    pipe = pipeline_parallel(machine, pp, tokens=each, m=m, moved=moved, **shape)
    visited = mlp.k + mlp.shared  # the experts that a token activates
    return Audit(
        machine=noun(machine),
        **{"dp": dp, "tp": tp, "pp": pp, "ep": ep},
        tokens_per_chip=each,
        math_s=2 * each * weights * visited * layers / machine.chip.flops_per_s(dtype),
        data_s=collectives.all_gather(held, *mesh.axes("X")).bandwidth_s,  # in the forward pass only
        tensor_s=2 * collectives.all_gather(passed * tp * visited, *mesh.axes("Y")).bandwidth_s,
        expert_s=2 * exchange_over(mesh.axes("Z"), passed, mlp.k, E=mlp.E, once=once).total_s,
        hop_s=m * pipe.hop_s,
        bubble=pipe.bubble,
    )


def _replicas(machine: Machine, model: Transformer, ways: int, ep: int) -> int:
    """The number of data-parallel replicas if `ways` chips share one replica."""
    if ep > (E := _mlp(model).E):
        raise ValueError(f"{model.name} has {E} experts, not enough for ep={ep}; write at most {E}")
    if machine.chips % ways:
        raise ValueError(
            f"{ways:,} = tp · pp · ep does not divide {machine.chips:,} chips; lower one of them, "
            "or use powers of two"
        )
    return machine.chips // ways


def _mlp(model: Transformer) -> Experts:
    """The experts of a layer; a dense MLP counts as one expert that every token activates."""
    return model.experts or Experts(E=1, k=1, F=model.F)
