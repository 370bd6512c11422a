"""The sublayers of a model whose layers have the same shapes, from the fields of its `Transformer`."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from scalingbook_lib.models.blocks import hidden, recurrent
from scalingbook_lib.models.blocks.attention import attention, latent_attention
from scalingbook_lib.models.blocks.block import Block, products, vectors
from scalingbook_lib.models.parts import Experts, Weight

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer


def uniform_blocks(m: "Transformer") -> tuple[Block, ...]:
    """Every kind of sublayer of a model without `blocks`, with the layers that have it."""
    made = (
        *_mixers(m),
        *_mlps(m),
        replace(hidden.norms(m.D, m.norms, shift=m.norm_bias), at=tuple(range(m.L))),
    )
    return tuple(block for block in made if block.at)


def _mixers(m: "Transformer") -> Iterator[Block]:
    """Softmax attention, one block for each window, and the recurrence of the other layers."""
    softmax = [layer for layer in range(m.L) if not m.linear or m.linear.has_softmax(layer)]
    by_window = defaultdict[int | None, list[int]](list)
    for i, layer in enumerate(softmax):
        by_window[m.windows[i % len(m.windows)]].append(layer)
    for window, layers in by_window.items():
        yield replace(_attention(m, window), at=tuple(layers))
    if a := m.linear:
        net = recurrent.delta_net(
            m.D, k_heads=a.k_heads, v_heads=a.v_heads, key=a.key, value=a.value, conv=a.conv
        )
        yield replace(net, at=tuple(layer for layer in range(m.L) if layer not in softmax))


def _attention(m: "Transformer", window: int | None) -> Block:
    if m.latent:
        return latent_attention(m.D, m.N, m.latent, window=window)
    return attention(
        m.D,
        N=m.N,
        K=m.K,
        H=m.H,
        window=window,
        qk_norm=m.qk_norm,
        biases=m.biases,
        sinks=m.sinks,
        gate="element" if m.attention_gate else "",
    )


def _mlps(m: "Transformer") -> Iterator[Block]:
    """Dense MLPs, and experts in the layers that have them."""
    parallel = m.norms < 2  # one norm feeds attention and the MLP of a parallel block
    routed = [layer for layer in range(m.L) if m.experts and m.experts.has(layer)]
    dense = tuple(layer for layer in range(m.L) if layer not in routed)
    mlp = hidden.mlp(m.D, m.F, gated=m.gated, bias="mlp" in m.biases)
    yield replace(mlp, at=dense, parallel=parallel)
    if m.experts:
        yield replace(_experts(m, m.experts), at=tuple(routed), parallel=parallel)


def _experts(m: "Transformer", e: Experts) -> Block:
    block = hidden.experts(m.D, E=e.E, k=e.k, F=e.F, shared=e.shared_width, gated=m.gated)
    more: list[Weight] = []
    if e.shared_gate and e.shared_width:
        more += products("shared experts", {"shared scale": (m.D, 1)})
    if "router" in m.biases:
        more += vectors("biases", {"router bias": (e.E,)})
    if "experts" in m.biases:
        shapes = hidden.mlp_shapes(m.D, e.F, m.gated, "expert ")
        more += [Weight("biases", f"{name} bias", shape[1:], e.E, e.k) for name, shape in shapes.items()]
    return replace(block, weights=(*block.weights, *more))
