"""The time of one microbatch through all layers of a model, without communication.

Compute is FLOPs over the rate that the efficiency allows. Pointwise operations and reads of weights take the
time of their bytes, and layers with experts wait for the host that launches their kernels. Chapter: Training.
"""

from dataclasses import dataclass
from math import ceil, hypot, prod

from scalingbook_lib.machines.chip import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.layers import pairs
from scalingbook_lib.training.efficiency import TrainingEfficiency
from scalingbook_lib.training.remat import FULL_LAYERS, named, replayed_share
from scalingbook_lib.training.shape import TrainingShape
from scalingbook_lib.training.terms import ByClass

WIDE_HEAD = 128  # head width for which `TrainingEfficiency.attention` is the rate


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTimes:
    """The time of one microbatch through all layers and the head, summed over the pipeline stages."""

    math: ByClass  # forward
    recomputed_s: float  # recomputation, in the backward pass
    memory_s: float  # forward, and twice as much backward
    recomputed_memory_s: float  # once more if layers are recomputed
    relaunched: float  # the share of the layers whose forward kernels are launched again
    read_s: float  # of memory_s: exposed weight reads
    recomputed_attention_s: float  # of recomputed_s: attention
    frozen: bool
    layers: int
    routed_layers: int  # layers with experts
    host_s: float  # host time to launch one layer with experts, forward

    @property
    def forward_s(self) -> float:
        """The seconds of the forward pass, without the head."""
        return self._device_s + self.forward_waited_s

    @property
    def backward_s(self) -> float:
        """The seconds of the backward pass, without the head: two matmuls per forward one (frozen: one)."""
        return self._back_s + self.backward_waited_s

    @property
    def forward_waited_s(self) -> float:
        """The seconds that the forward pass waits for the host."""
        return self._hosted(self._device_s, 1)

    @property
    def backward_waited_s(self) -> float:
        """The seconds that the backward pass waits for the host."""
        return self._hosted(self._back_s, self._launches)

    @property
    def _device_s(self) -> float:
        return self.math.layers + self.memory_s

    @property
    def _back_s(self) -> float:
        spared_s = self.math.matmul + self.math.experts + self.read_s if self.frozen else 0.0
        return 2 * self._device_s + self.recomputed_s + self.recomputed_memory_s - spared_s

    @property
    def _launches(self) -> float:
        return 2 + self.relaunched  # in units of a forward pass; recomputation is launched again

    def _hosted(self, device_s: float, launches: float) -> float:
        """Return the seconds that the host adds to a pass of `device_s` seconds of chip work.

        The longer of the two sets the pace; if they are equal, neither fully hides the other.
        """
        if not self.host_s:
            return 0.0
        layer_s = device_s / self.layers
        return self.routed_layers * (hypot(layer_s, launches * self.host_s) - layer_s)


def layer_times(s: TrainingShape, chip: Chip, e: TrainingEfficiency) -> LayerTimes:
    """Return the compute time by class, FLOPs over C, and the time spent on memory and on the host.

    Every chip computes with its replicas of KV heads. Attention and the unembedding compute in the dtype of
    the activations. Pointwise operations are memory-bound, and so are matmuls with few tokens, whose weights
    take longer to read than to multiply. The host is exposed if it takes longer to launch the kernels of a
    layer with experts than the chip takes to run them.
    """
    plan, w, t = s.plan, s.work, s.t / s.plan.tp  # t: tokens per chip, as if each chip had whole layers
    narrow_s, plain_s = t / chip.flops_per_s(plan.compute), t / chip.flops_per_s(plan.activations)
    of_flop = ByClass(  # seconds for one FLOP per token
        matmul=narrow_s / e.matmul * w.replicated_matmul_ratio(plan.tp),
        attention=plain_s
        / e.attention
        * (1 + e.ramp / w.T)
        * _causal_imbalance(s)
        * _attention_padding(s, e),
        experts=narrow_s / e.experts * s.busiest(e.expert_skew) * _expert_padding(s, e),
        head=plain_s / e.head,
    )
    math = ByClass(
        matmul=w.forward.matmul * of_flop.matmul,
        attention=w.forward.attention * of_flop.attention,
        experts=w.forward.experts * of_flop.experts,
        head=w.forward.head * of_flop.head,
    )
    recomputed_attention_s = w.recomputed.attention * of_flop.attention
    recomputed_s = (
        w.recomputed.matmul * of_flop.matmul + recomputed_attention_s + w.recomputed.experts * of_flop.experts
    )
    bytes_per_s = chip.hbm_bytes_per_s * e.memory
    permuted = e.permutation * w.model.moe_layers * s.routed * w.model.D * plan.activations.bytes
    pointwise = s.t * s.of_token(w.pointwise) + _merged_bytes(s) + e.operands * _operand_bytes(s) + permuted
    passed_s = pointwise / bytes_per_s + sublayers.full_layers(w.model) * e.layer_s
    read_s = _exposed_reads_s(s, w.forward, of_flop, bytes_per_s)
    relaunched = _relaunched_share(w.model, plan.remat)
    reread_s = _exposed_reads_s(s, w.recomputed, of_flop, bytes_per_s) if relaunched else 0.0
    return LayerTimes(
        math=math,
        recomputed_s=recomputed_s,
        memory_s=passed_s + read_s,
        read_s=read_s,
        recomputed_attention_s=recomputed_attention_s,
        frozen=plan.frozen,
        layers=w.model.L,
        routed_layers=w.model.moe_layers,
        host_s=e.expert_layer_s + e.expert_launch_s * s.local_experts if w.model.moe_layers else 0.0,
        recomputed_memory_s=relaunched * passed_s + reread_s,
        relaunched=relaunched,
    )


def _relaunched_share(model: Transformer, remat: str) -> float:
    """Return the share of the layers whose forward kernels run again; single modules launch few kernels."""
    if remat.startswith(FULL_LAYERS):
        return replayed_share(model, remat)
    return 0.0 if remat in ("none", "all") or named(remat).recomputed else 1.0


def _causal_imbalance(s: TrainingShape) -> float:
    """Return the attention work of the chip with the end of a causal sequence over the mean: 2 - 1/cp.

    The last of cp shards attends to all shards, and the first only to itself; in a ring, all chips wait for
    the last one in every step. Zigzag (Brandon et al., arXiv 2311.09431; Llama 3's 2 cp shards) gives each
    chip two shards whose work adds up to the mean, and with Ulysses each chip has the whole sequence. Within
    a window, shards differ less.
    """
    plan, w = s.plan, s.work
    if plan.cp == 1 or plan.zigzag or plan.context == "ulysses" or not w.causal:
        return 1.0
    kinds, piece = w.model.layer_kinds, w.T // plan.cp
    last = sum(k.layers * pairs(piece, w.T, causal=True, window=k.window) for k in kinds)
    return plan.cp * last / sum(k.layers * pairs(w.T, w.T, causal=True, window=k.window) for k in kinds)


def _merged_bytes(s: TrainingShape) -> float:
    """Return the bytes to merge a ring's partial outputs: two are read and one is written per further shard.

    The backward pass does this twice, for the gradients of queries and of keys and values. With zigzag,
    shards from later in the sequence concern only the later half of a chip's queries, so a query attends to
    (3 cp + 1) / 4 shards. The published runs with the shortest shards (1,024 tokens: cp=8 at 8,192) show no
    other loss in attention.
    """
    plan, w = s.plan, s.work
    if plan.cp == 1 or plan.context != "ring":
        return 0.0
    pieces = (3 * plan.cp + 1) / 4 if plan.zigzag and w.causal else plan.cp
    return 3 * plan.activations.bytes * (pieces - 1) * s.t * sublayers.attended(w.model) / plan.tp


def _attention_padding(s: TrainingShape, e: TrainingEfficiency) -> float:
    """The time of an attention kernel over that of its FLOPs at the rate of wide heads without windows."""
    w = s.work
    if not w.model.softmax_layers:  # heads of a recurrence are no heads of attention
        return 1.0
    narrow = (1 + e.head_ramp / w.model.H) / (1 + e.head_ramp / WIDE_HEAD)
    if not e.attention_block or not w.causal or not any(k.window for k in w.model.layer_kinds):
        return narrow

    def met(more: float) -> float:
        windows = ((k.layers, round(k.window + more) if k.window else None) for k in w.model.layer_kinds)
        return sum(layers * pairs(w.T, w.T, causal=True, window=window) for layers, window in windows)

    return narrow * met(e.attention_block) / met(0)


def _expert_padding(s: TrainingShape, e: TrainingEfficiency) -> float:
    """Return the FLOPs of experts in whole tiles over the exact FLOPs (half a tile of rows more)."""
    model, tile = s.work.model, e.expert_tile
    if not model.experts or not tile:
        return 1.0
    rows = 1 + tile * s.local_experts / (2 * s.routed)
    widths = model.D, model.experts.F / s.plan.expert_ways
    return rows * prod(ceil(width / tile) * tile / width for width in widths)


def _operand_bytes(s: TrainingShape) -> float:
    """Return the bytes that matmuls read and write; narrower inputs are first written in two layouts."""
    plan, operands = s.plan, s.work.operands
    wide, narrow = plan.activations.bytes, plan.compute.bytes
    each = (wide + narrow) / 2 + ((wide + 2 * narrow) / 2 if narrow < wide else 0)
    return s.t * (operands.wide + operands.split / plan.tp) * each


def _exposed_reads_s(s: TrainingShape, done: ByClass, of_flop: ByClass, bytes_per_s: float) -> float:
    """Return the seconds by which reading the weights once per microbatch exceeds their matmuls."""
    plan, w = s.plan, s.work
    # w bytes per parameter over W_hbm, per FLOP of a token; compared with t/C
    dense_s = (
        s.moved * (w.split + w.replicated_kv_params(plan.tp)) / (plan.tp * bytes_per_s * w.forward.matmul)
    )
    read_s = max(dense_s - of_flop.matmul, 0.0) * done.matmul
    if not w.expert:
        return read_s
    expert_s = s.moved * w.expert / (plan.expert_ways * plan.ep * bytes_per_s * w.forward.experts)
    return read_s + max(expert_s - of_flop.experts, 0.0) * done.experts
