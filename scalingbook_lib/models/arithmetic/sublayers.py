"""What the sublayers of all layers hold for one token, whether layers are alike or of several kinds.

Elements of queries, keys, values and outputs of softmax attention; of recurrences; of norms and MLPs; and how
often the residual stream enters a sublayer. Chapter: Training.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache

from scalingbook_lib.models import Block, LayerKind, Transformer, Weight

_MLPS = "mlp", "experts", "shared experts"
_BACK = (
    "o",
    "linear o",
    "delta o",
    "mamba out",
    "conv out",
    "lru out",
)  # their outputs join the residual stream


def leads_back(w: Weight) -> bool:
    """Whether a token mixer's matrix of this name leads back to the width of the residual stream."""
    return w.name in _BACK


def attentions(m: Transformer) -> Iterator[tuple[int, LayerKind]]:
    """The softmax attention of all layers: how many layers have it, and the widths of its heads."""
    for block in m.sublayers:
        if block.kinds:  # a sublayer that caches entries of two kinds has one set of queries
            yield block.layers * block.kinds[0].layers, block.kinds[0]


def key_heads(kind: LayerKind) -> int:
    """The heads of keys and values as attention uses them: latent vectors are expanded for every head."""
    expands = kind.absorbed is not None and kind.absorbed != (kind.query, kind.value)
    return kind.heads if expands else kind.kv_heads


def attended(m: Transformer) -> int:
    """The elements of attention's outputs, before the output projection."""
    return sum(n * kind.heads * kind.value for n, kind in attentions(m))


def query_heads(m: Transformer) -> int:
    """The query heads of all layers."""
    return sum(n * kind.heads for n, kind in attentions(m))


def queries(m: Transformer) -> int:
    """The elements of queries."""
    return sum(n * kind.heads * kind.query for n, kind in attentions(m))


def keys(m: Transformer) -> int:
    """The elements of keys."""
    return sum(n * key_heads(kind) * kind.query for n, kind in attentions(m))


def values(m: Transformer) -> int:
    """The elements of values."""
    return sum(n * key_heads(kind) * kind.value for n, kind in attentions(m))


def recurrent(m: Transformer) -> int:
    """The elements that recurrent sublayers keep: outputs of their products and convolution, and the result.

    The states between chunks are computed again in the backward pass. Source: the kernels of
    fla-org/flash-linear-attention, which save queries, keys, values, decays and gates.
    """
    kept = 0
    for w in m.weights():
        if w.part == "linear attention" and w.name == "conv":
            kept += w.active_copies * w.shape[0]
        elif w.part == "linear attention" and w.matmul:
            # the result of the recurrence, and again after its norm and gate
            each = 2 * w.size // m.D if leads_back(w) else w.size // w.shape[0]
            kept += w.active_copies * each
    return kept


def layer_norms(m: Transformer) -> int:
    """The norms as wide as the residual stream in all layers."""
    return sum(w.copies for w in m.weights() if w.name == "layer norms")


def mixers(m: Transformer) -> int:
    """The token mixers of all layers that read the residual stream one after the other."""
    return sum(_by_layer(m, _mixes).values())


def dense_mlps(m: Transformer) -> int:
    """The MLPs that all tokens meet, shared experts among them, that read the residual stream in turn."""
    return sum(_by_layer(m, _feeds).values())


def inputs(m: Transformer) -> int:
    """How often a sublayer of the layers reads the residual stream; parallel sublayers count once."""
    return mixers(m) + sum(_by_layer(m, _feeds_any).values())


def paired_layers(m: Transformer) -> int:
    """The layers whose token mixer is followed by an MLP."""
    return len(_by_layer(m, _mixes).keys() & _by_layer(m, _feeds_any).keys())


def mixer_sums(m: Transformer) -> int:
    """The outputs of token mixers that are added on their own, without that of a parallel MLP."""
    return mixers(m) - len(_by_layer(m, _parallel))


def mlp_sums(m: Transformer) -> int:
    """The outputs of dense MLPs in layers that have no experts."""
    routed = _by_layer(m, _routes)
    return sum(n for layer, n in _by_layer(m, _is_mlp).items() if layer not in routed)


def layers_with_mlp(m: Transformer) -> int:
    """The layers that have an MLP or experts."""
    return len(_by_layer(m, _is_mlp) | _by_layer(m, _routes))


def full_layers(m: Transformer) -> float:
    """The layers of a token mixer and an MLP that have as many sublayers; a lone sublayer is half a layer."""
    return (mixers(m) + sum((_by_layer(m, _is_mlp) | _by_layer(m, _routes)).values())) / 2


def _mixes(block: Block) -> bool:
    return bool(block.kinds or block.state or block.convolution) or block.name == "attention to pictures"


def _is_mlp(block: Block) -> bool:
    """Whether all tokens meet an MLP of the block: a dense one, or shared experts."""
    return not _mixes(block) and any(
        w.part in ("mlp", "shared experts") and w.name.endswith("up") for w in block.weights
    )


def _routes(block: Block) -> bool:
    return block.name == "experts"


def _parallel(block: Block) -> bool:
    return block.parallel


def _feeds(block: Block) -> bool:
    return _is_mlp(block) and not block.parallel


def _feeds_any(block: Block) -> bool:
    return (_is_mlp(block) or _routes(block)) and not block.parallel


@lru_cache(maxsize=1 << 10)  # a search asks thousands of times
def _by_layer(m: Transformer, chosen: Callable[[Block], bool]) -> Counter[int]:
    """How many of the chosen sublayers follow each other in each layer; different ones are side by side."""
    found = Counter[int]()
    for block in m.sublayers:
        if chosen(block):
            # the larger count: two equal sublayers of a layer are one after the other
            found |= Counter(block.at)
    return found


def layer_flops(m: Transformer, block: Block) -> int:
    """Forward FLOPs for each token of one layer with this sublayer, but those of pairs of tokens."""
    return sum(w.flops_per_token for w in block.weights) + block.state_flops


def mlp_elements(m: Transformer) -> float:
    """Elements read and written by the activation functions of MLPs, and tokens copied for their experts."""
    # gated: both products are read and one written; else one read, one written
    each, found = (3 if m.gated else 2), 0
    for w in m.weights():
        if w.part in _MLPS and w.matmul and w.name.endswith("up"):
            found += w.active_copies * (each * w.shape[-1] + (w.shape[0] if w.part == "experts" else 0))
    return found


def recurs(m: Transformer) -> bool:
    """Whether a layer keeps a state instead of a cache."""
    return any(block.state or block.convolution for block in m.sublayers)


@lru_cache
def splits(m: Transformer) -> tuple[tuple[str, int], ...]:
    """What tensor parallelism has to divide: heads and widths of every kind of sublayer, with their names."""
    return tuple(dict.fromkeys(_splits(m)))


@lru_cache
def kv_heads(m: Transformer) -> tuple[int, ...]:
    """The different numbers of key-value heads."""
    return tuple(dict.fromkeys(kind.kv_heads for _, kind in attentions(m)))


def _splits(m: Transformer) -> Iterator[tuple[str, int]]:
    for _, kind in attentions(m):
        yield "heads", kind.heads
    for w in m.weights():
        if w.part == "linear attention" and w.matmul and leads_back(w):
            yield ("recurrent heads", w.shape[0]) if len(w.shape) == 3 else ("recurrent channels", w.shape[0])
        elif w.part == "mlp" and w.name == "up":
            yield "MLP columns", w.shape[-1]
