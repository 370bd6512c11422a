"""FLOPs, bytes and parameters of a model per token, counted once for all plans.

FLOPs are those of `arithmetic.flops`; saved and recomputed activations come from `remat`. Chapter: Training.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.steps.heads import BY_KV_HEAD, whole_heads
from scalingbook_lib.training import remat as policies
from scalingbook_lib.training.terms import ByClass, Widths
from scalingbook_lib.units import BF16, DType

_WHOLE = ("norms", "router", "positions")  # weights that tensor parallelism replicates
_OUTER = ("embedding", "unembedding", "experts", "positions")  # not among a layer's dense weights


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Amounts per token unless stated otherwise, summed over all layers, before any sharding."""

    model: Transformer
    T: int
    causal: bool
    forward: ByClass  # FLOPs: 2 per active parameter, and attention's
    recomputed: ByClass  # FLOPs that the backward pass recomputes
    stored: Widths  # bytes of activations saved on the chip
    hosted: Widths  # bytes of activations saved in host memory
    working: Widths  # bytes that one layer holds while it is recomputed
    pointwise: Widths  # bytes that norms and activation functions read and write, forward
    operands: Widths  # elements that the layers' matmuls read and write, forward
    split: int  # parameters of all layers that tensor parallelism shards
    copied: int  # parameters that it replicates
    by_kv_head: int  # of those that it shards: for keys and values
    expert: int  # parameters of routed experts
    embedding: int
    head: int
    pairs: float  # pairs of a gather and a scatter by tensor parallelism, in all layers
    paired_layers: int  # layers whose token mixer is followed by an MLP
    expert_pairs: float
    kv: float  # elements of keys and values
    heads: float  # elements of queries, keys, values and outputs

    @property
    def useful(self) -> float:
        """The model FLOPs of a training step: three times those of the forward pass."""
        return 3 * self.forward.total  # the backward pass has two matmuls per forward one: 4 FLOPs for 2

    def replicated_kv_params(self, tp: int) -> float:
        """Return the parameters of replicated KV heads that tp chips hold in addition to the model's."""
        return self.by_kv_head * tp * (whole_heads(self.model.K, tp) - 1 / tp)  # 0.0 if the heads divide

    def replicated_matmul_ratio(self, tp: int) -> float:
        """Return the FLOPs of dense matmuls, including those with replicated KV heads, over the model's."""
        return 1 + 2 * self.replicated_kv_params(tp) / self.forward.matmul

    def replicated_flops(self, tp: int, passes: int) -> float:
        """Return the FLOPs per token that replicated KV heads add in these passes and in recomputation."""
        added = self.replicated_matmul_ratio(tp) - 1
        return added * (passes * self.forward.matmul + self.recomputed.matmul)

    @property
    def deferrable_backward_fraction(self) -> float:
        """The share of the backward FLOPs for weight gradients, which a schedule may postpone.

        Attention has no weights, and recomputation has to come first. The same share of the exposed
        communication is postponed; otherwise faster chips would wait longer.
        """
        weights = self.forward.total - self.forward.attention
        return weights / (2 * self.forward.total + self.recomputed.total)


@lru_cache(maxsize=256)  # without the cache, a step takes 3.3 times as long to evaluate
def work(model: Transformer, T: int, remat: str, dtype: DType, causal: bool) -> Work:
    """Return the amounts of a model under one rematerialization policy; `dtype` is the activations'."""
    part = model.by_part
    copied = sum(n for name, n in part.items() if name in _WHOLE and name not in _OUTER)
    dense = sum(n for name, n in part.items() if name not in _OUTER)
    kv = sublayers.keys(model) + sublayers.values(model)  # expanded, as attention uses them
    wide, split = arithmetic.pointwise(model)
    return Work(
        model=model,
        T=T,
        causal=causal,
        forward=_forward(model, T, causal),
        recomputed=policies.recomputed(model, T, remat, causal),
        stored=policies.stored(model, T, remat, dtype),
        hosted=policies.hosted(model, remat, dtype),
        working=_working(model, T, remat, dtype),
        pointwise=Widths(wide=dtype.bytes * wide, split=dtype.bytes * split),
        operands=_operands(model),
        split=dense - copied,
        copied=copied,
        by_kv_head=sum(w.params for w in model.weights() if w.part == "attention" and w.name in BY_KV_HEAD),
        expert=part.get("experts", 0),
        embedding=part.get("embedding", 0) + part.get("positions", 0),
        head=part.get("unembedding", 0),
        # attention and MLP are one pair each, or together in a parallel block; experts are separate
        pairs=float(sublayers.mixers(model) + sublayers.dense_mlps(model)),
        paired_layers=sublayers.paired_layers(model),
        expert_pairs=float(model.moe_layers),
        kv=kv,
        heads=kv + sublayers.queries(model) + sublayers.attended(model),
    )


def _forward(m: Transformer, T: int, causal: bool) -> ByClass:
    counted = arithmetic.flops(m, 1, T, causal=causal)
    experts, head, attention = counted.get("experts"), counted.get("unembedding"), counted.attention
    return ByClass(
        matmul=(counted.total - experts - head - attention) / T,
        attention=attention / T,
        experts=experts / T,
        head=head / T,
    )


def _working(m: Transformer, T: int, remat: str, dtype: DType) -> Widths:
    """Return the bytes per token of one layer's recomputed matmul inputs; 0 without recomputation."""
    if remat in ("none", "all"):
        return Widths()
    remat = "full" if remat.startswith(policies.FULL_LAYERS) else remat
    read, waits = policies.fused(m, dtype.bytes), policies.stored(m, T, remat, dtype)
    inputs = policies.stored(m, T, "full", dtype)  # the rest of a layer is recomputed from these
    wide, split = (max(r - max(w - i, 0.0), 0.0) / m.L for r, w, i in zip(read, waits, inputs, strict=True))
    return Widths(wide, split)


def _operands(m: Transformer) -> Widths:
    """Return the elements per token of all matmul operands: D on one side; TP shards the other side."""
    products = policies.products(m)
    return Widths(
        wide=sum(w.active_copies * m.D for w in products),
        split=sum(w.active_copies * w.size / m.D for w in products),
    )


def effective_width(model: Transformer) -> float:
    """Return F_eff = P_l / (2 s D) in elements, for a layer with P_l parameters and s gather-scatter pairs.

    It is derived in the chapter on training ("Effective width").
    """
    found = work(model, 1, "none", BF16, False)
    # all L layers over all L layers' pairs: L cancels
    return (found.split + found.expert) / (2 * (found.pairs + found.expert_pairs) * model.D)
