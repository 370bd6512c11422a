"""Which weights does a Transformer have, part by part? Chapter: Transformers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scalingbook_lib.models.weight import Weight

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer


def weights_of(m: "Transformer") -> tuple[Weight, ...]:
    """Every weight of the model, from the embedding to the unembedding."""
    parts = (_vocabulary, _attention, _linear, _dense, _experts, _norms, _biases, _unembedding)
    return tuple(weight for part in parts for weight in part(m) if weight.copies or weight.tied)


def _vocabulary(m: "Transformer") -> Iterator[Weight]:
    yield Weight("embedding", "embed", (m.V, m.D), 1, 1)
    if m.positions:
        yield Weight("positions", "positions", (m.positions, m.D), 1, 1)


def _attention(m: "Transformer") -> Iterator[Weight]:
    layers = m.softmax_layers
    for name, shape in _latent_shapes(m) if m.latent else _head_shapes(m):
        yield Weight("attention", name, shape, layers, layers, matmul=True)
    if m.sinks:
        yield Weight("attention", "sinks", (m.N,), layers, layers)


def _head_shapes(m: "Transformer") -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "q", (m.D, m.N, m.H)
    if m.attention_gate:
        yield "attention gate", (m.D, m.N, m.H)
    yield "k", (m.D, m.K, m.H)
    yield "v", (m.D, m.K, m.H)
    yield "o", (m.N, m.H, m.D)


def _latent_shapes(m: "Transformer") -> Iterator[tuple[str, tuple[int, ...]]]:
    a = m.latent
    assert a
    if a.q_rank is None:
        yield "q", (m.D, m.N, a.qk)
    else:
        yield "q down", (m.D, a.q_rank)
        yield "q up", (a.q_rank, m.N, a.qk)
    yield "kv down", (m.D, a.kv_rank)
    yield "k rope", (m.D, a.rope)  # one for all heads
    yield "k up", (a.kv_rank, m.N, a.nope)
    yield "v up", (a.kv_rank, m.N, a.v)
    yield "o", (m.N, a.v, m.D)


def _linear(m: "Transformer") -> Iterator[Weight]:
    a, layers = m.linear, m.L - m.softmax_layers
    if not a:
        return
    products = {
        "linear q": (m.D, a.k_heads, a.key),
        "linear k": (m.D, a.k_heads, a.key),
        "linear v": (m.D, a.v_heads, a.value),
        "linear gate": (m.D, a.v_heads, a.value),
        "linear beta": (m.D, a.v_heads),
        "linear decay": (m.D, a.v_heads),
        "linear o": (a.v_heads, a.value, m.D),
    }
    for name, shape in products.items():
        yield Weight("linear attention", name, shape, layers, layers, matmul=True)
    channels = 2 * a.k_heads * a.key + a.v_heads * a.value
    for name, shape in {
        "conv": (channels, a.conv),
        "decay rate": (a.v_heads,),
        "time step": (a.v_heads,),
    }.items():
        yield Weight("linear attention", name, shape, layers, layers)


def _mlp(m: "Transformer", width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    if m.gated:
        yield "gate", (m.D, width)
    yield "up", (m.D, width)
    yield "down", (width, m.D)


def _dense(m: "Transformer") -> Iterator[Weight]:
    layers = m.L - m.moe_layers
    for name, shape in _mlp(m, m.F):
        yield Weight("mlp", name, shape, layers, layers, matmul=True)


def _experts(m: "Transformer") -> Iterator[Weight]:
    e, layers = m.experts, m.moe_layers
    if not e:
        return
    yield Weight("router", "router", (m.D, e.E), layers, layers, matmul=True)
    for name, shape in _mlp(m, e.F):
        yield Weight("experts", f"expert {name}", shape, layers * e.E, layers * e.k, matmul=True)
    if e.shared_width:
        for name, shape in _mlp(m, e.shared_width):
            yield Weight("shared experts", f"shared {name}", shape, layers, layers, matmul=True)
        if e.shared_gate:
            yield Weight("shared experts", "shared scale", (m.D, 1), layers, layers, matmul=True)


def _norms(m: "Transformer") -> Iterator[Weight]:
    full = m.softmax_layers
    counted = [
        ("layer norms", m.D, m.norms * m.L),
        ("final norm", m.D, int(m.final_norm)),
        ("embedding norm", m.D, int(m.embedding_norm)),
    ]
    for name, size, copies in counted:
        yield Weight("norms", name, (size,), copies, copies)
        if m.norm_bias:
            yield Weight("norms", f"{name}: shift", (size,), copies, copies)
    inner = [("q norm", m.H if m.qk_norm == "head" else m.N * m.H, full if m.qk_norm else 0)]
    inner += [("k norm", m.H if m.qk_norm == "head" else m.K * m.H, full if m.qk_norm else 0)]
    if m.latent:
        inner += [("q rank norm", m.latent.q_rank or 1, full if m.latent.q_rank else 0)]
        inner += [("kv rank norm", m.latent.kv_rank, full)]
    if m.linear:
        inner += [("linear norm", m.linear.value, m.L - full)]
    for name, size, copies in inner:
        yield Weight("norms", name, (size,), copies, copies)


def _biases(m: "Transformer") -> Iterator[Weight]:
    full, dense = m.softmax_layers, m.L - m.moe_layers
    sizes = {"q": (m.N, m.H), "k": (m.K, m.H), "v": (m.K, m.H), "o": (m.D,)}
    for name in ("q", "k", "v", "o"):
        if name in m.biases:
            yield Weight("biases", f"{name} bias", sizes[name], full, full)
    if "mlp" in m.biases:
        for name, shape in _mlp(m, m.F):
            yield Weight("biases", f"{name} bias", shape[1:], dense, dense)
    yield from _expert_biases(m)
    if "unembedding" in m.biases:
        yield Weight("biases", "unembedding bias", (m.V,), 1, 1)


def _expert_biases(m: "Transformer") -> Iterator[Weight]:
    e, layers = m.experts, m.moe_layers
    if e and "router" in m.biases:
        yield Weight("biases", "router bias", (e.E,), layers, layers)
    if e and "experts" in m.biases:
        for name, shape in _mlp(m, e.F):
            yield Weight("biases", f"expert {name} bias", shape[1:], layers * e.E, layers * e.k)


def _unembedding(m: "Transformer") -> Iterator[Weight]:
    stored = 0 if m.tied else 1
    yield Weight("unembedding", "unembed", (m.D, m.V), stored, stored, matmul=True, tied=m.tied)
