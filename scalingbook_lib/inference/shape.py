"""The weights and cache elements per chip of a layout, by part, counted once for all steps.

Chapter: Inference.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf

from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.models import LayerKind, Transformer
from scalingbook_lib.models.arithmetic import entry_bytes, pointwise
from scalingbook_lib.models.arithmetic.layers import up_projection
from scalingbook_lib.models.arithmetic.memory import index_bytes
from scalingbook_lib.steps.expert_load import busiest_over_mean
from scalingbook_lib.steps.heads import BY_KV_HEAD, whole_heads
from scalingbook_lib.units import DTYPES

STATE_BYTES = 4  # the state of linear attention, in fp32
# q down, kv down and k rope do not belong to a head, so all chips of a group hold them
_BY_HEAD = ("q", "attention gate", "o", "q up", "k up", "v up")
_CLASSES = {
    "attention": "projections",
    "linear attention": "projections",
    "router": "projections",  # its matmuls are as small, and every group has all of it
    "mlp": "mlp",
    "shared experts": "mlp",
    "experts": "experts",
    "unembedding": "head",
    "embedding": "embedding",
    "positions": "embedding",  # looked up, like the embedding
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductClass:
    """One class of matmuls on one chip, in all layers: weights `stored`, and active for a token (`met`)."""

    stored: float
    met: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionKind:
    """Layers with the same kind of attention: the window, FLOPs per pair and elements per token on one chip.

    In decode, a chip has its shard of the cache; a prefill is sharded by heads over all chips of a group.
    """

    window: float  # tokens that a token can attend to, including itself
    kept: float  # tokens that stay in the cache
    by_head: bool  # whether the chips of a group shard the queries by heads
    elements: float  # decode: cache elements per token, including replicated heads
    flops: float  # decode: per query-key pair
    prompt_elements: float  # prefill: cache elements per token
    prompt_flops: float  # prefill: per query-key pair
    expanded_flops: float  # the same, with latent keys and values expanded for each head


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingShape:
    """One chip's share of a model under a layout, summed over all layers as if there were one stage."""

    model: Transformer
    layout: Layout
    projections: ProductClass  # attention's projections and the router
    mlp: ProductClass  # dense MLPs and shared experts
    experts: ProductClass
    head: ProductClass  # the unembedding
    embedding: float
    other: float  # norms and biases, which are replicated
    kinds: tuple[AttentionKind, ...]
    up: float  # weights that expand latent vectors into keys and values
    state: float  # elements of linear attention's state per sequence
    pointwise: float  # elements read and written between matmuls, per token

    def busiest(self, skew: float | None) -> float:
        """Return the tokens of the busiest chip's experts over the mean, with redundant experts (EPLB)."""
        experts, o = self.model.experts, self.layout
        if not experts or not skew:
            return 1.0
        return busiest_over_mean(experts.E, o.ep, skew=skew, redundant=o.redundant_experts)

    @property
    def longest(self) -> float:
        """The share of the layers on the longest stage; surplus layers go to the first stages."""
        return ceil(self.model.L / self.layout.pp) / self.model.L

    @property
    def last(self) -> float:
        """The share of the layers on the last stage."""
        return self.model.L // self.layout.pp / self.model.L


def shape(model: Transformer, layout: Layout) -> ServingShape:
    """Return the shape of a layout; raises a LayoutError if the model's sizes do not allow it."""
    layout.check(model)
    stored, met = defaultdict[str, float](float), defaultdict[str, float](float)
    shares = _shares(model, layout)
    for (part, split), (params, products) in _totals(model).items():
        name, share = _CLASSES.get(part, "other"), shares.get(split, 1.0)
        stored[name] += params * share
        met[name] += products * share
    return ServingShape(
        model=model,
        layout=layout,
        projections=ProductClass(stored=stored["projections"], met=met["projections"]),
        mlp=ProductClass(stored=stored["mlp"], met=met["mlp"]),
        experts=ProductClass(stored=stored["experts"] * _slots(model, layout), met=met["experts"]),
        head=ProductClass(stored=met["head"], met=met["head"]),  # a tied head is stored with the embedding
        embedding=stored["embedding"] + stored["head"] - met["head"],
        other=stored["other"],
        kinds=_kinds(model, layout),
        up=up_projection(model) * whole_heads(model.N, layout.group),
        state=_state(model, layout),
        pointwise=_between(model) / layout.tp,
    )


def resplit(s: ServingShape, layout: Layout) -> ServingShape:
    """Return the shape of a layout that differs only in its stages or in the sharding of a group's cache."""
    same = s.layout.kv_heads == layout.kv_heads
    return replace(s, layout=layout, kinds=s.kinds if same else _kinds(s.model, layout))


def _slots(model: Transformer, layout: Layout) -> float:
    """Return the number of stored experts, including redundant ones, over those of the model."""
    return 1 + layout.redundant_experts / model.experts.E if model.experts else 1.0


@cache
def _totals(model: Transformer) -> dict[tuple[str, str], tuple[int, int]]:
    """Return stored weights and weights active for a token, by part and by what shards them."""
    found = defaultdict[tuple[str, str], list[int]](lambda: [0, 0])
    for w in model.weights():
        by_head = w.part == "attention" and w.name in _BY_HEAD
        by_kv_head = w.part == "attention" and w.name in BY_KV_HEAD
        total = found[w.part, "heads" if by_head else "kv heads" if by_kv_head else w.part]
        total[0] += w.params
        total[1] += w.size * w.matmuls
    return {key: (params, products) for key, (params, products) in found.items()}


def _shares(model: Transformer, layout: Layout) -> dict[str, float]:
    """Return the share of each part on one chip; parts that are not listed are replicated."""
    dense, outer = 1 / (layout.tp if layout.wide else layout.group), 1 / layout.tp
    return {
        "heads": whole_heads(model.N, layout.columns) / layout.rows,
        "kv heads": whole_heads(model.K, layout.columns) / layout.rows,
        "linear attention": 1 / layout.group,
        "mlp": dense,
        "shared experts": dense,
        "experts": outer,
        "unembedding": outer,
        "embedding": outer,
    }


def _kinds(model: Transformer, layout: Layout) -> tuple[AttentionKind, ...]:
    """Per pair: this chip's query heads; per token: its key-value heads, or the whole latent vector.

    An indexer scores every token, with all of its heads on each chip of a group, and attention meets the
    tokens that it selects.
    """
    there, here = layout.kv_heads, layout.group
    indexed = (kind for kind in model.layer_kinds if kind.index)
    return _attention(model, layout, there, here) + tuple(_index(kind, layout) for kind in indexed)


def _attention(model: Transformer, layout: Layout, there: int, here: int) -> tuple[AttentionKind, ...]:
    return tuple(
        AttentionKind(
            window=float(kind.reach or inf),
            kept=float(kind.window or inf),
            by_head=True,
            elements=_elements(kind, layout) * whole_heads(kind.kv_heads, there),
            # queries meet the latent vectors themselves
            flops=_pair_flops(kind, absorbed=True) * whole_heads(kind.heads, there),
            prompt_elements=_elements(kind, layout) * whole_heads(kind.kv_heads, here),
            prompt_flops=_pair_flops(kind, absorbed=True) * whole_heads(kind.heads, here),
            expanded_flops=_pair_flops(kind, absorbed=False) * whole_heads(kind.heads, here),
        )
        for kind in model.layer_kinds
    )


def _index(kind: LayerKind, layout: Layout) -> AttentionKind:
    """Return the indexer of sparse attention: one key per token, shared by the queries of all its heads."""
    flops, elements = kind.layers * kind.index_flops / kind.every, _index_elements(kind, layout)
    return AttentionKind(
        window=float(kind.window or inf),
        kept=float(kind.window or inf),
        by_head=False,
        elements=elements,
        flops=flops,
        prompt_elements=elements,
        prompt_flops=flops,
        expanded_flops=flops,
    )


def _pair_flops(kind: LayerKind, *, absorbed: bool) -> float:
    """FLOPs of a query and one token, in all layers of a kind; an entry of several tokens is met once."""
    return kind.layers * kind.pair_flops(absorbed=absorbed) / kind.every


def _elements(kind: LayerKind, layout: Layout) -> float:
    """Elements of the cache's type for one token, in all layers of a kind; scales are counted as elements.

    Those of an indexer's key are counted apart.
    """
    whole = kind.layers * entry_bytes(kind, layout.kv) / layout.kv.bytes / kind.every
    return whole - _index_elements(kind, layout)


def _index_elements(kind: LayerKind, layout: Layout) -> float:
    """Elements of the keys of an indexer for one token, in all layers of a kind."""
    return kind.layers * index_bytes(kind, layout.kv) / layout.kv.bytes / kind.every


def _state(model: Transformer, layout: Layout) -> float:
    """The elements of recurrent states; each chip of a group has its heads, a narrower type counts less."""
    return model.state_elements * DTYPES[model.state_dtype].bytes / STATE_BYTES / layout.group


def _between(model: Transformer) -> float:
    """Elements read and written between products; outputs of a token's experts are written, then summed."""
    return sum(pointwise(model)) + (2 * model.D * model.experts.k * model.moe_layers if model.experts else 0)
