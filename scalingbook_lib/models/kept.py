"""What a model keeps of a sequence: cached entries by kind of layer, and the states of recurrences."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from scalingbook_lib.models.blocks.block import LayerKind

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer


def layer_kinds(m: "Transformer") -> tuple[LayerKind, ...]:
    """The softmax layers, grouped by their window and by what they cache."""
    count = Counter[LayerKind]()
    if m.blocks:
        for block in m.blocks:
            for kind in block.kinds:
                count[replace(kind, layers=1)] += block.layers * kind.layers
    else:
        one = _uniform_kind(m)
        cycles, more = divmod(m.softmax_layers, len(m.windows))
        for at, window in enumerate(m.windows):
            # the cycle begins anew until the layers are used up
            count[replace(one, window=window)] += cycles + (at < more)
    return tuple(replace(kind, layers=n) for kind, n in count.items() if n)


def _uniform_kind(m: "Transformer") -> LayerKind:
    """The attention of a layer, where all layers have the same but for their window."""
    a = m.latent
    if a is None:
        cached = 2 * m.K * m.H  # a key and a value per head
        return LayerKind(1, None, cached, heads=m.N, kv_heads=m.K, query=m.H, value=m.H)
    return LayerKind(
        1,
        None,
        a.cached + a.index_width,
        heads=m.N,
        kv_heads=1,  # a latent vector is one head, which all queries share
        query=m.H,
        value=a.v,
        absorbed=(a.cached, a.kv_rank),
        chosen=a.index_topk or None,
        index=a.index_width,
        index_flops=2 * a.index_heads * a.index_width,
    )


def state_elements(m: "Transformer") -> int:
    """The elements of the recurrent states of one sequence, without those of short convolutions."""
    if a := m.linear:
        return (m.L - m.softmax_layers) * a.v_heads * a.key * a.value
    return sum(b.layers * b.state for b in m.blocks)


def convolution_elements(m: "Transformer") -> int:
    """The elements that short convolutions keep of one sequence: all but one token of their length."""
    if a := m.linear:
        channels = 2 * a.k_heads * a.key + a.v_heads * a.value
        return (m.L - m.softmax_layers) * channels * (a.conv - 1)
    return sum(b.layers * b.convolution for b in m.blocks)


def state_flops(m: "Transformer") -> int:
    """FLOPs of all recurrences for one token."""
    if m.linear:
        return 6 * m.state_elements  # read with the key, write, read with the query
    return sum(b.layers * b.state_flops for b in m.blocks)
