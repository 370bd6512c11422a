"""What does each chip of a layout hold and multiply by? Elements by part, counted once for all steps.

Chapter: Inference.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.models import Transformer, Weight
from scalingbook_lib.models.arithmetic import pointwise
from scalingbook_lib.models.arithmetic.layers import pair_flops, up_projection

_LOOKED_UP = ("embedding", "positions")
_BY_HEAD = ("q", "attention gate", "o", "q up", "k up", "v up")
_BY_KV_HEAD = ("k", "v")
_WHOLE = ("q down", "kv down", "k rope")  # no head owns them: every chip of a group keeps them
STATE_BYTES = 4  # the state of linear attention, in fp32


@dataclass(frozen=True, slots=True)
class Part:
    """One class of products on one chip, in all layers: elements that are stored, and met by one token."""

    stored: float
    met: float


@dataclass(frozen=True, slots=True)
class Kind:
    """Layers that attend alike: how far back, and what one chip does and reads for each pair and each token.

    Decoding, a chip has the cache's part of some sequences: `elements` for one token, copies of heads
    counted, `flops` for one pair of a query and a key. A prompt is split by heads over all chips of a group:
    `read` elements, `prompt` FLOPs, and `expanded` where latent keys and values are made anew.
    """

    window: float
    elements: float
    flops: float
    read: float
    prompt: float
    expanded: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A model under a layout, as one chip sees it, all layers together as if there were one stage."""

    model: Transformer
    layout: Layout
    projections: Part
    mlp: Part
    experts: Part
    head: Part
    embedding: float
    other: float  # norms and biases, held whole
    kinds: tuple[Kind, ...]
    up: float  # elements that make keys and values of latent vectors
    state: float  # elements of linear attention's state, of one sequence
    state_flops: float  # for one token
    pointwise: float  # elements read and written between products, of one token of a step
    copies: float  # chips of a group that hold the same part of its cache

    @property
    def sequence_ways(self) -> int:
        """Ways over sequences, of one stage's chips."""
        return self.layout.attention_dp * self.layout.kv_batch

    def share(self) -> tuple[float, float]:
        """What the longest stage, and the last, have of all layers."""
        L, pp = self.model.L, self.layout.pp
        each = ceil(L / pp)
        return each / L, max(L - each * (pp - 1), 0) / L


@lru_cache(maxsize=1024)
def shape(model: Transformer, layout: Layout) -> Shape:
    """The shape of a layout for a model; a LayoutError where the sizes do not allow it."""
    layout.check(model)
    names = "projections", "mlp", "experts", "head", "embedding", "other"
    held: dict[str, float] = dict.fromkeys(names, 0.0)
    met = dict(held)
    for w in model.weights():
        name, share = _class(w), _share(w, model, layout)
        held[name] += w.params * share
        met[name] += w.size * w.matmuls * share
    head = Part(met["head"], met["head"])  # a tied one is stored with the embedding
    return Shape(
        model, layout, Part(held["projections"], met["projections"]), Part(held["mlp"], met["mlp"]),
        Part(held["experts"], met["experts"]), head,
        held["embedding"] + held["head"] - met["head"], held["other"], _kinds(model, layout),
        up_projection(model) * _whole_heads(model.N, layout.group),
        *_state(model, layout), _between(model) / layout.tp,
        _whole_heads(1 if model.latent else model.K, layout.kv_heads) * layout.kv_heads,
    )  # fmt: skip


def _class(w: Weight) -> str:
    if w.part in ("attention", "linear attention", "router"):
        return "projections"
    names = {"mlp": "mlp", "shared experts": "mlp", "experts": "experts", "unembedding": "head"}
    return names.get(w.part, "embedding" if w.part in _LOOKED_UP else "other")


def _share(w: Weight, model: Transformer, layout: Layout) -> float:
    """What one chip holds of a weight."""
    if w.part == "attention":
        return _attention_share(w.name, model, layout)
    if w.part == "linear attention":
        return 1 / layout.group
    if w.part in ("mlp", "shared experts"):
        return 1 / (layout.tp if layout.wide else layout.group)
    return 1 / layout.tp if w.part in ("experts", "unembedding", "embedding") else 1.0


def _attention_share(name: str, model: Transformer, layout: Layout) -> float:
    if name in _BY_HEAD:
        return _whole_heads(model.N, layout.columns) / layout.rows
    if name in _BY_KV_HEAD:
        return _whole_heads(model.K, layout.columns) / layout.rows
    return 1.0


def _whole_heads(heads: int, ways: int) -> float:
    """The share of the chip with most heads: heads are not cut, and copied where ways are more."""
    return ceil(heads / ways) / heads


def _kinds(model: Transformer, layout: Layout) -> tuple[Kind, ...]:
    """Per pair: this chip's query heads; per token: its key-value heads, or the whole latent vector."""
    keys, absorbed = 1 if model.latent else model.K, pair_flops(model, absorbed=True)
    there, here = layout.kv_heads, layout.group
    return tuple(
        Kind(
            float(kind.window or "inf"),
            kind.layers * kind.kv_elements_per_token * _whole_heads(keys, there),
            kind.layers * absorbed * _whole_heads(model.N, there),
            kind.layers * kind.kv_elements_per_token * _whole_heads(keys, here),
            kind.layers * absorbed * _whole_heads(model.N, here),
            kind.layers * pair_flops(model) * _whole_heads(model.N, here),
        )
        for kind in model.layer_kinds
    )


def _state(model: Transformer, layout: Layout) -> tuple[float, float]:
    """Elements, and FLOPs for one token: written with the key, read with the key and with the query."""
    if not model.linear:
        return 0.0, 0.0
    a = model.linear
    elements = (model.L - model.softmax_layers) * a.v_heads * a.key * a.value / layout.group
    return elements, 6 * elements


def _between(model: Transformer) -> float:
    """Elements read and written between products; outputs of a token's experts are written, then summed."""
    routed = 2 * model.D * model.experts.k * model.moe_layers if model.experts else 0
    return sum(pointwise(model)) + routed
