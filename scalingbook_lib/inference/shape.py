"""What does each chip of a layout hold and multiply by? Elements by part, counted once for all steps.

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
# no head owns q down, kv down, k rope: all chips of a group hold them
_BY_HEAD = ("q", "attention gate", "o", "q up", "k up", "v up")
_CLASSES = {
    "attention": "projections",
    "linear attention": "projections",
    "router": "projections",  # counted with them: its products are as small, and every group has it whole
    "mlp": "mlp",
    "shared experts": "mlp",
    "experts": "experts",
    "unembedding": "head",
    "embedding": "embedding",
    "positions": "embedding",  # looked up, as the embedding is
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductClass:
    """One class of products on one chip, in all layers: elements that are stored, and met by one token."""

    stored: float
    met: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionKind:
    """Layers that attend alike: how far back, and what one chip does and reads for each pair and each token.

    Decoding, a chip has the cache's part of some sequences; a prompt is split by heads over all chips of a
    group.
    """

    window: float  # tokens that one can attend to, itself included
    kept: float  # tokens that the cache keeps
    by_head: bool  # whether the chips of a group split the queries by heads
    elements: float  # decoding: of the cache, for one token; copies of heads counted
    flops: float  # decoding: for one pair of a query and a key
    prompt_elements: float  # of the cache, for one token of a prompt
    prompt_flops: float  # for one pair of a prompt
    expanded_flops: float  # the same, where latent keys and values are made anew for each head


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingShape:
    """A model under a layout, as one chip sees it, all layers together as if there were one stage."""

    model: Transformer
    layout: Layout
    projections: ProductClass  # of attention, and the router
    mlp: ProductClass  # dense MLPs and shared experts
    experts: ProductClass
    head: ProductClass  # the unembedding
    embedding: float
    other: float  # norms and biases, held whole
    kinds: tuple[AttentionKind, ...]
    up: float  # elements that make keys and values of latent vectors
    state: float  # elements of linear attention's state, of one sequence
    pointwise: float  # elements read and written between products, of one token of a step

    def busiest(self, skew: float | None) -> float:
        """The tokens of the busiest chip's experts over the mean, with EPLB's redundant experts, if any."""
        experts, o = self.model.experts, self.layout
        if not experts or not skew:
            return 1.0
        return busiest_over_mean(experts.E, o.ep, skew=skew, redundant=o.redundant_experts)

    @property
    def longest(self) -> float:
        """The share of the layers that the longest stage has: what is left over goes to the first ones."""
        return ceil(self.model.L / self.layout.pp) / self.model.L

    @property
    def last(self) -> float:
        """The share of the layers that the last stage has."""
        return self.model.L // self.layout.pp / self.model.L


def shape(model: Transformer, layout: Layout) -> ServingShape:
    """The shape of a layout for a model; a LayoutError where the sizes do not allow it."""
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
        head=ProductClass(stored=met["head"], met=met["head"]),  # a tied one is stored with the embedding
        embedding=stored["embedding"] + stored["head"] - met["head"],
        other=stored["other"],
        kinds=_kinds(model, layout),
        up=up_projection(model) * whole_heads(model.N, layout.group),
        state=_state(model, layout),
        pointwise=_between(model) / layout.tp,
    )


def resplit(s: ServingShape, layout: Layout) -> ServingShape:
    """The shape of a layout that differs in its stages, or in how a group splits its cache, alone."""
    same = s.layout.kv_heads == layout.kv_heads
    return replace(s, layout=layout, kinds=s.kinds if same else _kinds(s.model, layout))


def _slots(model: Transformer, layout: Layout) -> float:
    """Experts that are held, redundant ones included, over those of the model."""
    return 1 + layout.redundant_experts / model.experts.E if model.experts else 1.0


@cache
def _totals(model: Transformer) -> dict[tuple[str, str], tuple[int, int]]:
    """Elements that are stored, and that a token meets, by part and by what splits them."""
    found = defaultdict[tuple[str, str], list[int]](lambda: [0, 0])
    for w in model.weights():
        by_head = w.part == "attention" and w.name in _BY_HEAD
        by_kv_head = w.part == "attention" and w.name in BY_KV_HEAD
        total = found[w.part, "heads" if by_head else "kv heads" if by_kv_head else w.part]
        total[0] += w.params
        total[1] += w.size * w.matmuls
    return {key: (params, products) for key, (params, products) in found.items()}


def _shares(model: Transformer, layout: Layout) -> dict[str, float]:
    """What one chip holds of what is split; all of the rest."""
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
    """The indexer of layers: one key per token, which the queries of all its heads meet."""
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
