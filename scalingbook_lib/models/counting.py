"""The weights of a Transformer, part by part. Chapter: Transformers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scalingbook_lib.models.blocks.block import weights_of_blocks
from scalingbook_lib.models.parts import Weight

if TYPE_CHECKING:
    from scalingbook_lib.models.transformer import Transformer

# the order in which tables list the parts; other parts come before the norms
_FIRST = ("embedding", "positions", "attention", "linear attention", "mlp", "router", "experts")
_LAST = ("norms", "biases", "unembedding")


def weights_of(m: "Transformer") -> tuple[Weight, ...]:
    """Every weight of the model, part by part, from the embedding to the unembedding."""
    counted = (*_vocabulary(m), *weights_of_blocks(m.sublayers), *m.extra, *_ends(m), *_unembedding(m))
    return tuple(sorted((w for w in counted if w.copies or w.tied), key=_place))


def _place(w: Weight) -> int:
    if w.part in _LAST:
        return len(_FIRST) + 1 + _LAST.index(w.part)
    return _FIRST.index(w.part) if w.part in _FIRST else len(_FIRST)


def _vocabulary(m: "Transformer") -> Iterator[Weight]:
    learned = int(m.positions > 0)
    yield Weight("embedding", "embed", (m.V, m.D), 1, 1)
    yield Weight("positions", "positions", (m.positions, m.D), learned, learned)


def _ends(m: "Transformer") -> Iterator[Weight]:
    """The norms before the first layer and after the last one."""
    for name, copies in (("final norm", int(m.final_norm)), ("embedding norm", int(m.embedding_norm))):
        yield Weight("norms", name, (m.D,), copies, copies)
        if m.norm_bias:
            yield Weight("norms", f"{name}: shift", (m.D,), copies, copies)


def _unembedding(m: "Transformer") -> Iterator[Weight]:
    stored = 0 if m.tied else 1  # a tied matrix is multiplied by all the same
    yield Weight("unembedding", "unembed", (m.D, m.V), stored, stored, matmul=True, tied=m.tied)
    if "unembedding" in m.biases:
        yield Weight("biases", "unembedding bias", (m.V,), 1, 1)
