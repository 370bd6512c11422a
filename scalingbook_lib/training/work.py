"""What does one token cost, and what does a layer hold? A model's constants, counted once for all plans.

FLOPs are those of `arithmetic.flops`; what is stored and recomputed is in `remat`. Chapter: Training.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib.models import Transformer, arithmetic
from scalingbook_lib.steps.heads import BY_KV_HEAD, whole_heads
from scalingbook_lib.training import remat as policies
from scalingbook_lib.training.terms import ByClass, Widths
from scalingbook_lib.units import BF16, DType

_WHOLE = ("norms", "router", "positions")  # weights that tensor parallelism copies
_OUTER = ("embedding", "unembedding", "experts", "positions")  # not among a layer's dense weights


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Per token where not said otherwise, all layers together, undivided by any parallelism."""

    model: Transformer
    T: int
    causal: bool
    forward: ByClass  # FLOPs: 2 for each parameter that a token meets, and attention's own
    recomputed: ByClass  # FLOPs that the backward pass does a second time
    stored: Widths  # bytes of activations that wait on the chip for the backward pass
    hosted: Widths  # bytes of them that wait in the host's memory
    working: Widths  # bytes that one layer holds while it is recomputed
    pointwise: Widths  # bytes that norms and activation functions read and write, forward
    operands: Widths  # elements that the layers' products read and write, forward
    split: int  # parameters of all layers that tensor parallelism splits
    copied: int  # those that it copies
    by_kv_head: int  # of those that it splits: for keys and values
    expert: int  # those of routed experts
    embedding: int
    head: int
    pairs: float  # inputs gathered and outputs scattered, by tensor parallelism: how often in all layers
    expert_pairs: float
    kv: float  # elements of keys and values
    heads: float  # elements of queries, keys, values and outputs

    @property
    def useful(self) -> float:
        """Forward and backward, nothing twice: three times the forward pass."""
        return 3 * self.forward.total  # backward every product has two: 4 FLOPs for 2

    def beyond(self, tp: int) -> float:
        """Keys' and values' parameters that tp chips hold together beyond the model's, in copies of heads."""
        return self.by_kv_head * tp * (whole_heads(self.model.K, tp) - 1 / tp)  # 0.0 where they divide

    def again(self, tp: int) -> float:
        """FLOPs of the layers' products over the model's: every chip multiplies by the copies that it has."""
        return 1 + 2 * self.beyond(tp) / self.forward.matmul

    @property
    def put_off(self) -> float:
        """The weights' part of the backward pass, which a schedule may put off: a share of its FLOPs.

        Attention has no weights, and what is done again comes first. Of what the pass waits for, it has the
        same share: were it seconds of arithmetic alone, faster chips would wait longer for it.
        """
        weights = self.forward.total - self.forward.attention
        return weights / (2 * self.forward.total + self.recomputed.total)


@lru_cache(maxsize=256)  # a step takes 3.3 times as long without
def work(model: Transformer, T: int, remat: str, dtype: DType, causal: bool) -> Work:
    """The constants of a model under one policy of rematerialization, `dtype` that of the activations."""
    part = model.by_part
    copied = sum(n for name, n in part.items() if name in _WHOLE and name not in _OUTER)
    dense = sum(n for name, n in part.items() if name not in _OUTER)
    experts = model.experts
    shared = bool(experts and experts.shared_width)
    value_width = model.latent.v if model.latent else model.H
    kv = model.softmax_layers * model.K * (model.H + value_width)  # expanded, as attention uses them
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
        # attention and MLP are a pair each, one together in a parallel block; experts are counted apart
        pairs=(model.L - model.moe_layers) * (2 if model.norms > 1 else 1)
        + model.moe_layers * (2 if shared else 1),
        expert_pairs=float(model.moe_layers),
        kv=kv,
        heads=kv + model.softmax_layers * model.N * (model.H + value_width),
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
    """All that one layer's products read, but what waits for them; nothing where nothing is recomputed."""
    if remat in ("none", "all"):
        return Widths()
    read, waits = policies.fused(m, dtype.bytes), policies.stored(m, T, remat, dtype)
    inputs = policies.stored(m, T, "full", dtype)  # the layers' own: made anew is what lies within
    wide, split = (max(r - max(w - i, 0.0), 0.0) / m.L for r, w, i in zip(read, waits, inputs, strict=True))
    return Widths(wide, split)


def _operands(m: Transformer) -> Widths:
    """Every product has D elements on one side; tensor parallelism splits the other."""
    products = policies.products(m)
    return Widths(
        wide=sum(w.active_copies * m.D for w in products),
        split=sum(w.active_copies * w.size / m.D for w in products),
    )


def effective_width(model: Transformer) -> float:
    """F_eff = P_l / (2 s D), elements: a real layer's parameters P_l and s pairs of gather and scatter.

    Derived in Training ("Real layers").
    """
    found = work(model, 1, "none", BF16, False)
    # all L layers over all L layers' pairs: L cancels
    return (found.split + found.expert) / (2 * (found.pairs + found.expert_pairs) * model.D)
