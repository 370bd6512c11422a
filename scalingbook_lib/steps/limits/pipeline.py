"""What does it cost to give each group of chips a part of the layers? One hop a stage, and a bubble.

Chapter: GPUs.
"""

from dataclasses import dataclass

from scalingbook_lib import collectives
from scalingbook_lib.machines import ClusterError, Machine, SliceError
from scalingbook_lib.steps.limits.limit import at_least
from scalingbook_lib.units import BF16, DType, Told, percent, si


@dataclass(frozen=True, slots=True)
class Pipeline(Told):
    """A pass of m microbatches through p stages: the work of one stage on one microbatch, and one hop.

    `stage_s` is the mean stage; the longest of its `interleave` pieces takes `piece_s`.
    """

    p: int
    m: int
    interleave: int
    stage_s: float
    piece_s: float
    hop_bytes: float  # what each chip sends on for one microbatch
    hop_s: float

    @property
    def bubble(self) -> float:
        """The share of the time in which the mean stage is idle: (p - 1) / (v m + p - 1) for equal stages."""
        taken = (self.interleave * self.m + self.p - 1) * self.piece_s
        return 1 - self.m * self.stage_s / taken if self.piece_s else 0.0

    @property
    def ratio(self) -> float:
        """A hop over the work that can hide it; above 1 the network sets the pace."""
        return self.hop_s / self.piece_s if self.piece_s else 0.0

    def __str__(self) -> str:
        return (
            f"{self.p} stages, {self.m} microbatches: idle {percent(self.bubble)} of the time; a hop of "
            f"{si(self.hop_bytes, 'B')} a chip takes {si(self.hop_s, 's')} beside {si(self.piece_s, 's')} "
            "of work"
        )


def pipeline_parallel(
    machine: Machine,
    p: int,
    *,
    tokens: float,
    m: int,
    D: int,
    F: int,
    L: int,
    model_parallel: int = 1,
    gated: bool = False,
    interleave: int = 1,
    dtype: DType = BF16,
    moved: DType = BF16,
) -> Pipeline:
    """`tokens` tokens a chip and step in m microbatches, forward, through L layers (MLPs) on p stages.

    Of a step, p times as many tokens as a chip has go through its stage of L/p layers, so a microbatch gives
    each of the `model_parallel` chips of a stage p · tokens / m of them: hop w · D bytes each, work
    2 · matrices · D · F · L / p FLOPs each. B cancels in hop over work: w C p / (2 matrices F L W). The
    bubble does not depend on the network. `interleave`: v pieces of layers a stage, v times the hops; where
    p · v does not divide L, the longest piece sets the pace.
    Source: GPipe's bubble (arXiv 1811.06965), Megatron-LM's with v (arXiv 2104.04473).
    """
    at_least(1, p=p, m=m, D=D, F=F, L=L, model_parallel=model_parallel, interleave=interleave)
    at_least(0, tokens=tokens)
    if p * interleave > L:
        raise ValueError(f"{L} layers are too few for {p * interleave} pieces; lower p · interleave")
    each = p * tokens / m
    layer_s = 2 * (3 if gated else 2) * each * D * F / machine.chip.flops_per_s(dtype)
    hop_bytes = moved.bytes * each * D
    hop_s = _hop_s(machine, model_parallel, p, hop_bytes)
    return Pipeline(p, m, interleave, layer_s * L / p, layer_s * -(-L // (p * interleave)), hop_bytes, hop_s)


def _hop_s(machine: Machine, inside: int, p: int, nbytes: float) -> float:
    """To the same place of the next stage; the slowest level that the stages span sets the pace."""
    if p == 1:
        return 0.0
    if machine.chips % (inside * p):
        kind = SliceError if not hasattr(machine, "nodes") else ClusterError
        raise kind(f"{p} stages of {inside} chips do not divide the {machine.chips:,} of {machine.name}")
    mesh = machine.mesh(Y=inside, P=p, X=machine.chips // (inside * p))
    return max(collectives.permute(nbytes, network).bandwidth_s for network in mesh.axes("P"))
