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
    for block in m.sublayers:
        for kind in block.kinds:
            count[replace(kind, layers=1)] += block.layers * kind.layers
    return tuple(replace(kind, layers=n) for kind, n in count.items())


def state_elements(m: "Transformer") -> int:
    """The elements of the recurrent states of one sequence, without those of short convolutions."""
    return sum(b.layers * b.state for b in m.sublayers)


def convolution_elements(m: "Transformer") -> int:
    """The elements that short convolutions keep of one sequence: all but one token of their length."""
    return sum(b.layers * b.convolution for b in m.sublayers)


def state_flops(m: "Transformer") -> int:
    """FLOPs of all recurrences for one token."""
    return sum(b.layers * b.state_flops for b in m.sublayers)
