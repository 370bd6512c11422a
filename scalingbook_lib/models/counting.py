"""The weights of a Transformer, part by part. Chapter: Transformers."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from scalingbook_lib.models.blocks.attention import index_shapes, latent_norms, latent_shapes
from scalingbook_lib.models.blocks.block import weights_of_blocks
from scalingbook_lib.models.blocks.hidden import mlp_shapes
from scalingbook_lib.models.parts import Weight

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer

type Shape = tuple[int, ...]
type Weights = tuple[Weight, ...]


def weights_of(m: "Transformer") -> Weights:
    """Every weight of the model, from the embedding to the unembedding."""
    if m.blocks:
        return tuple(w for w in _of_blocks(m) if w.copies or w.tied)
    parts = (_vocabulary, _attention, _linear, _mlps, _norms, _biases, _unembedding)
    counted = (weight for part in parts for weight in part(m))
    return tuple(weight for weight in (*counted, *m.extra) if weight.copies or weight.tied)


def _of_blocks(m: "Transformer") -> Iterator[Weight]:
    yield from _vocabulary(m)
    yield from weights_of_blocks(m.blocks)
    yield from m.extra
    yield from _ends(m)
    yield from _unembedding(m)


def _each(
    part: str, shapes: Mapping[str, Shape], copies: int, active: int | None = None, matmul: bool = False
) -> Iterator[Weight]:
    """`copies` of each shape; a token uses all of them, unless `active` says how many."""
    for name, shape in shapes.items():
        yield Weight(part, name, shape, copies, copies if active is None else active, matmul)


_products = partial(_each, matmul=True)


def _vocabulary(m: "Transformer") -> Weights:
    learned = int(m.positions > 0)
    return (
        Weight("embedding", "embed", (m.V, m.D), 1, 1),
        Weight("positions", "positions", (m.positions, m.D), learned, learned),
    )


def _attention(m: "Transformer") -> Weights:
    return (
        *_products("attention", _latent_shapes(m) if m.latent else _head_shapes(m), m.softmax_layers),
        # a sink is one learned logit a head, which takes part in the softmax and has no value
        *_each("attention", {"sinks": (m.N,)}, m.softmax_layers * m.sinks),
    )


def _head_shapes(m: "Transformer") -> dict[str, Shape]:
    gate = {"attention gate": (m.D, m.N, m.H)} if m.attention_gate else {}
    kv = (m.D, m.K, m.H)  # K heads: those of grouped queries share one
    return {"q": (m.D, m.N, m.H), **gate, "k": kv, "v": kv, "o": (m.N, m.H, m.D)}


def _latent_shapes(m: "Transformer") -> dict[str, Shape]:
    a = m.latent
    assert a
    return latent_shapes(m.D, m.N, a) | (index_shapes(m.D, a) if a.index_heads else {})


def _linear(m: "Transformer") -> Weights:
    a, layers = m.linear, m.L - m.softmax_layers
    if not a:
        return ()
    products = {
        "linear q": (m.D, a.k_heads, a.key),
        "linear k": (m.D, a.k_heads, a.key),
        "linear v": (m.D, a.v_heads, a.value),
        "linear gate": (m.D, a.v_heads, a.value),
        "linear beta": (m.D, a.v_heads),  # how strongly a step writes, one number a head
        "linear decay": (m.D, a.v_heads),  # how much of the state is left, one number a head
        "linear o": (a.v_heads, a.value, m.D),
    }
    channels = 2 * a.k_heads * a.key + a.v_heads * a.value  # a short convolution over q, k and v
    others = {"conv": (channels, a.conv), "decay rate": (a.v_heads,), "time step": (a.v_heads,)}
    return (
        *_products("linear attention", products, layers),
        *_each("linear attention", others, layers),
    )


def _mlp(m: "Transformer", width: int, prefix: str = "") -> dict[str, Shape]:
    return mlp_shapes(m.D, width, m.gated, prefix)


def _mlps(m: "Transformer") -> Weights:
    # all E experts are stored, k of them serve a token; the router's product has a column for each
    e, sparse = m.experts, m.moe_layers
    dense = (*_products("mlp", _mlp(m, m.F), m.L - sparse),)
    if not e:
        return dense
    scale = {"shared scale": (m.D, 1)} if e.shared_gate else {}
    shared = sparse if e.shared_width else 0  # layers with shared experts
    return (
        *dense,
        *_products("router", {"router": (m.D, e.E)}, sparse),
        *_products("experts", _mlp(m, e.F, "expert "), sparse * e.E, sparse * e.k),
        *_products("shared experts", _mlp(m, e.shared_width, "shared ") | scale, shared),
    )


def _norms(m: "Transformer") -> Iterator[Weight]:
    # a norm has one scale for each element, and a shift too where it is a layer norm (not RMS)
    yield from _wide(m, "layer norms", m.norms * m.L)
    yield from _ends(m)
    full = m.softmax_layers
    if m.qk_norm:  # one for each head's elements, or over all heads together
        q, k = (m.H, m.H) if m.qk_norm == "head" else (m.N * m.H, m.K * m.H)
        yield from _each("norms", {"q norm": (q,), "k norm": (k,)}, full)
    if m.latent:
        yield from _each("norms", latent_norms(m.latent), full)
    if m.linear:
        yield from _each("norms", {"linear norm": (m.linear.value,)}, m.L - full)


def _ends(m: "Transformer") -> Iterator[Weight]:
    yield from _wide(m, "final norm", int(m.final_norm))
    yield from _wide(m, "embedding norm", int(m.embedding_norm))


def _wide(m: "Transformer", name: str, copies: int) -> Iterator[Weight]:
    shift = {f"{name}: shift": (m.D,)} if m.norm_bias else {}
    yield from _each("norms", {name: (m.D,), **shift}, copies)  # D scales each


def _biases(m: "Transformer") -> Iterator[Weight]:
    """A bias per named matmul, as long as its output: the last dimension, or heads times their width."""
    attention, sparse = m.softmax_layers, m.moe_layers
    E, k, F = (m.experts.E, m.experts.k, m.experts.F) if m.experts else (0, 0, 0)
    for name, shapes, copies, active in (
        ("q", {"q bias": (m.N, m.H)}, attention, attention),
        ("k", {"k bias": (m.K, m.H)}, attention, attention),
        ("v", {"v bias": (m.K, m.H)}, attention, attention),
        ("o", {"o bias": (m.D,)}, attention, attention),
        ("mlp", _added(_mlp(m, m.F)), m.L - sparse, m.L - sparse),
        ("router", {"router bias": (E,)}, sparse, sparse),
        ("experts", _added(_mlp(m, F, "expert ")), sparse * E, sparse * k),
        ("unembedding", {"unembedding bias": (m.V,)}, 1, 1),
    ):
        if name in m.biases:
            yield from _each("biases", shapes, copies, active)


def _added(products: Mapping[str, Shape]) -> dict[str, Shape]:
    return {f"{name} bias": shape[1:] for name, shape in products.items()}


def _unembedding(m: "Transformer") -> Iterator[Weight]:
    stored = 0 if m.tied else 1  # a tied matrix is multiplied by all the same
    yield Weight("unembedding", "unembed", (m.D, m.V), stored, stored, matmul=True, tied=m.tied)
