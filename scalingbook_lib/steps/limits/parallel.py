"""The limits of tensor, data and pipeline parallelism: sharding the weights, the tokens or the layers.

Tensor parallelism of an MLP over Y chips: X[B, D] · W_in[D, F_Y], then · W_out[F_Y, D]. The input is gathered
and the output scattered, w · B · D bytes each, while every chip does 2 · matrices · B · D · F / Y FLOPs; B
and D cancel.

Data parallelism: FSDP gathers every weight in the forward pass, w bytes for 2 FLOPs per token; in the
backward pass both are doubled, and plain data parallelism, which all-reduces gradients there, has the same
ratio.

Pipelines: one P2P send per stage, and a bubble. Chapter: GPUs.
"""

from dataclasses import dataclass, replace

from scalingbook_lib import collectives
from scalingbook_lib.machines import ClusterError, Machine, Slice, SliceError
from scalingbook_lib.steps.limits.limit import Limit, inner, limit, noun, outer
from scalingbook_lib.units import BF16, DType, Result, count, percent, require_min, si


def tensor_parallel(
    machine: Machine, Y: int, *, gated: bool = False, dtype: DType = BF16, moved: DType = BF16
) -> Limit:
    """The width F > Y · w · C · t / matrices, with t the seconds that one byte takes to gather over Y.

    In a domain F > (Y - 1) C/W; over Y/g domains of g both F > (Y - Y/g) C/W and F > (Y - g) C/W_n. With a
    third matrix (`gated`) compute is 1.5 times as much, and two thirds of that F is enough. Source: derived
    from `collectives`; the scaling book has F > Y C/W and, over domains, only the second term.
    """
    require_min(1, Y=Y)
    matrices = 3 if gated else 2
    # 2 · w B D bytes (in and out) against 2 · matrices · B D F / Y FLOPs: F as a multiple of t
    per_byte = Y * moved.bytes / matrices * machine.chip.flops_per_s(dtype)
    what = f"tensor parallelism over {machine.chip.counted(Y)}"
    return limit(what, "F", per_byte, collectives.all_gather, inner(machine, Y))


@dataclass(frozen=True, slots=True)
class Widest(Result):
    """The most chips over which an MLP of width F can be sharded, and the next number, which is too large."""

    F: int
    Y: int
    limit: Limit
    beyond: Limit | None

    def __str__(self) -> str:
        chips = self.limit.what.removeprefix("tensor parallelism over ")
        said = f"F = {count(self.F)} can be sharded over at most {chips}"
        if self.limit.least:
            said += f", which need F > {count(round(self.limit.least))}"
        if self.beyond is None:
            return f"{said}; the machine has no more chips"
        more = self.beyond.what.removeprefix("tensor parallelism over ")
        return (
            f"{said}; {more} would need F > {count(round(self.beyond.least))}, and the bottleneck would be "
            f"{self.beyond.bound}"
        )


def widest_tensor_parallel(
    machine: Machine, F: int, *, gated: bool = False, dtype: DType = BF16, moved: DType = BF16
) -> Widest:
    """The largest group Y that divides the machine, fits its levels, and needs at most the width F."""
    require_min(1, F=F)
    best = tensor_parallel(machine, 1, gated=gated, dtype=dtype, moved=moved)
    ways = 1
    # sizes that the innermost mesh axis can have
    for Y in (n for n in range(2, machine.chips + 1) if machine.chips % n == 0 and _fits(machine, n)):
        found = tensor_parallel(machine, Y, gated=gated, dtype=dtype, moved=moved)
        if not found.holds(F):
            return Widest(F, ways, best, found)
        best, ways = found, Y
    return Widest(F, ways, best, None)


def _fits(machine: Machine, n: int) -> bool:
    try:
        machine.mesh(Y=n, X=machine.chips // n)
    except ValueError:  # a ClusterError or SliceError
        return False
    return not isinstance(machine, Slice) or bool(inner(machine, n))


def data_parallel(
    machine: Machine,
    *,
    model_parallel: int = 1,
    sparsity: float = 1.0,
    in_switch: bool = False,
    overlap: bool = True,
    dtype: DType = BF16,
    moved: DType = BF16,
) -> Limit:
    """The tokens per chip B/N > E/k · w/2 · C · t/m, with t the seconds that one byte takes to gather.

    `model_parallel`: the m innermost chips that share the weights of one replica (TP · EP · PP); data
    parallelism runs over the others. `sparsity`: E/k, experts in memory over experts that a token activates.
    `in_switch`: only gradients move, and switches reduce if they can. `moved`: w bytes per element. With
    pipeline stages use ZeRO-1: gathering weights again for each microbatch would multiply t by their number.

    For a cluster of domains of g chips with W each, on a network with W_n per domain, m_i = min(m, g) and m_n
    = max(1, m/g): t/m = max[(1 - m_i/g) / (W m_i), (1 - 1/k') / (W_n m_n)], with k' domains over m_n. Source:
    derived from `collectives`, which a message simulator confirms; the scaling book's C/W_n is the limit of
    the second term for m = g.
    """
    require_min(1, model_parallel=model_parallel, sparsity=sparsity)
    # w bytes per weight of all experts, against 2 FLOPs per token for the activated ones
    per_byte = sparsity * moved.bytes / 2 * machine.chip.flops_per_s(dtype) / model_parallel

    def cost(nbytes: float, *networks: collectives.Network) -> collectives.Transfer:
        if in_switch:
            both = collectives.all_reduce(nbytes, *networks, in_switch=True, overlap=overlap)
            # compared with the backward pass, which has twice the FLOPs
            return replace(both, bandwidth_s=both.bandwidth_s / 2)
        return collectives.all_gather(nbytes, *networks, overlap=overlap)

    groups = f", {model_parallel:,} chips per replica" if model_parallel > 1 else ""
    what = f"data parallelism over {noun(machine)}{groups}"
    return limit(what, "tokens per chip", per_byte, cost, outer(machine, model_parallel))


@dataclass(frozen=True, slots=True)
class PipelineLimit(Result):
    """A pass of m microbatches through p stages: the compute of one stage on one microbatch, and one send.

    `stage_s` is the mean stage; the longest of its `interleave` chunks takes `piece_s`.
    """

    p: int
    m: int
    interleave: int
    stage_s: float
    piece_s: float
    hop_bytes: float  # the bytes that each chip sends on for one microbatch
    hop_s: float

    @property
    def bubble(self) -> float:
        """The fraction of time in which the mean stage is idle: (p - 1) / (v m + p - 1) for equal stages."""
        # v m chunks of work, and p - 1 until the last stage has begun
        taken = (self.interleave * self.m + self.p - 1) * self.piece_s
        return 1 - self.m * self.stage_s / taken if self.piece_s else 0.0

    @property
    def ratio(self) -> float:
        """The send time over the compute time that can hide it; above 1 the step is network-bound."""
        return self.hop_s / self.piece_s if self.piece_s else 0.0

    def __str__(self) -> str:
        return (
            f"{self.p} stages, {self.m} microbatches: bubble {percent(self.bubble)}; a P2P send of "
            f"{si(self.hop_bytes, 'B')} per chip takes {si(self.hop_s, 's')}, "
            f"against {si(self.piece_s, 's')} of compute"
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
) -> PipelineLimit:
    """The forward pass of `tokens` tokens per chip per step in m microbatches through L MLPs on p stages.

    Per step, p times a chip's tokens pass through its stage of L/p layers, so a microbatch gives each of the
    `model_parallel` chips of a stage p · tokens / m of them: w · D bytes each per send, and 2 · matrices · D
    · F · L / p FLOPs each. B cancels in send over compute: w C p / (2 matrices F L W). The bubble does not
    depend on the network. `interleave`: v chunks of layers per stage, and v times the sends; if p · v does
    not divide L, the longest chunk sets the pace. Source: GPipe's bubble (arXiv 1811.06965), Megatron-LM's
    with v (arXiv 2104.04473).
    """
    require_min(1, p=p, m=m, D=D, F=F, L=L, model_parallel=model_parallel, interleave=interleave)
    require_min(0, tokens=tokens)
    if p * interleave > L:
        raise ValueError(f"{L} layers are too few for {p * interleave} chunks; lower p · interleave")
    # the n/p chips of a stage process the tokens of all n chips, in m microbatches
    each = p * tokens / m
    layer_s = 2 * (3 if gated else 2) * each * D * F / machine.chip.flops_per_s(dtype)
    hop_bytes = moved.bytes * each * D  # of one chip, for one microbatch
    hop_s = _hop_s(machine, model_parallel, p, hop_bytes)
    return PipelineLimit(
        p, m, interleave, layer_s * L / p, layer_s * -(-L // (p * interleave)), hop_bytes, hop_s
    )


def _hop_s(machine: Machine, inside: int, p: int, nbytes: float) -> float:
    """The seconds of a send to the same position of the next stage, over the slowest level in between."""
    if p == 1:
        return 0.0
    if machine.chips % (inside * p):
        kind = SliceError if not hasattr(machine, "nodes") else ClusterError
        raise kind(f"{p} stages of {inside} chips do not divide the {machine.chips:,} of {machine.name}")
    mesh = machine.mesh(Y=inside, P=p, X=machine.chips // (inside * p))
    return max(collectives.permute(nbytes, network).bandwidth_s for network in mesh.axes("P"))
