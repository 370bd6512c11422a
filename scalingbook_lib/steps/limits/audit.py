"""Does a plan keep the chips busy? Every term of one forward pass, and what waits for what.

Tensor parallelism innermost, then experts, then pipeline stages, and data parallelism over the rest.
Chapter: GPUs.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Experts, Transformer
from scalingbook_lib.steps.limits.expert import exchange_over
from scalingbook_lib.steps.limits.parallel import pipeline_parallel
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min, si


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Result):
    """What each chip does in a forward pass over the tokens of a step, by term, in seconds.

    `data_s` moves weights (FSDP), `tensor_s` activations within an MLP, `expert_s` tokens to experts and
    back, `hop_s` activations to the next stage. Backward, all but the hop are doubled.
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
        """The terms by name: 'compute', 'data', 'tensor', 'expert', 'pipeline'."""
        return {
            "compute": self.math_s,
            "data": self.data_s,
            "tensor": self.tensor_s,
            "expert": self.expert_s,
            "pipeline": self.hop_s,
        }

    @property
    def bound(self) -> str:
        """The term that takes longest."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def lower_s(self) -> float:
        """Everything overlaps; weights also move during the bubble, the rest does not."""
        # a stage is busy for 1 - bubble of the time
        within = max(s for name, s in self.terms.items() if name != "data")
        return max(within / (1 - self.bubble), self.data_s)

    @property
    def upper_s(self) -> float:
        """Nothing overlaps."""
        within = sum(s for name, s in self.terms.items() if name != "data")
        return within / (1 - self.bubble) + self.data_s

    @property
    def utilization(self) -> float:
        """The most that the arithmetic can be of the time: math over `lower_s`."""
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
    """A forward pass over `tokens` tokens in m microbatches; the MLPs (or experts) stand for the layers.

    All L layers count as those with experts where a model has them, shared experts split as the others.
    Attention's products, the embedding and HBM are left out. The ratios of the terms are those of
    `data_parallel` and the other limits.
    """
    require_min(1, tp=tp, pp=pp, ep=ep, m=m)
    require_min(0, tokens=tokens)
    mlp, dp = _mlp(model), _copies(machine, model, tp * pp * ep, ep)
    mesh, layers = machine.mesh(Y=tp, Z=ep, P=pp, X=dp), model.L
    each, weights = tokens / machine.chips, (3 if model.gated else 2) * model.D * mlp.F  # of one MLP
    passed = moved.bytes * each * model.D * layers  # a chip's tokens, through all layers
    held = moved.bytes * weights * (mlp.E + mlp.shared) * layers / (tp * pp * ep)  # every expert's
    shape = {"D": model.D, "F": mlp.F, "L": layers, "gated": model.gated, "model_parallel": tp * ep}
    pipe = pipeline_parallel(machine, pp, tokens=each, m=m, moved=moved, **shape)
    visited = mlp.k + mlp.shared  # matrices that a token is multiplied by
    return Audit(
        machine=machine.name,
        **{"dp": dp, "tp": tp, "pp": pp, "ep": ep},
        tokens_per_chip=each,
        math_s=2 * each * weights * visited * layers / machine.chip.flops_per_s(dtype),
        data_s=collectives.all_gather(held, *mesh.axes("X")).bandwidth_s,  # forward alone
        tensor_s=2 * collectives.all_gather(passed * tp * visited, *mesh.axes("Y")).bandwidth_s,
        expert_s=2 * exchange_over(mesh.axes("Z"), passed, mlp.k, E=mlp.E, once=once).total_s,
        hop_s=m * pipe.hop_s,
        bubble=pipe.bubble,
    )


def _copies(machine: Machine, model: Transformer, ways: int, ep: int) -> int:
    """The data ranks that are left when `ways` chips share a copy."""
    if ep > (E := _mlp(model).E):
        raise ValueError(f"{model.name} has {E} experts, not enough for ep={ep}; write at most {E}")
    if machine.chips % ways:
        raise ValueError(
            f"{ways:,} = tp · pp · ep does not divide {machine.chips:,} chips; lower one of them, "
            "or take powers of two"
        )
    return machine.chips // ways


def _mlp(model: Transformer) -> Experts:
    """The experts of a layer; a dense MLP is one that every token visits."""
    return model.experts or Experts(E=1, k=1, F=model.F)
