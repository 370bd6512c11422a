"""Work that is not in the list of weights: query-key pairs, and the elementwise operations between matmuls.

The pairs of a query and a key, the FLOPs of one pair, and the elements that a forward pass reads and writes
between matmuls. Chapters: Transformers; Training; Inference.
"""

from scalingbook_lib.models import LayerKind, Transformer
from scalingbook_lib.models.arithmetic import sublayers


def score_width(model: Transformer, *, absorbed: bool = False) -> int:
    """The length of a query, and of the key it is multiplied by; `absorbed` is MLA's form for decoding."""
    return model.latent.cached if model.latent and absorbed else model.H


def value_width(model: Transformer, *, absorbed: bool = False) -> int:
    """The length of a value as the attention probabilities weight it."""
    if model.latent is None:
        return model.H
    return model.latent.kv_rank if absorbed else model.latent.v


def pair_flops(model: Transformer, *, absorbed: bool = False) -> int:
    """FLOPs of one query position and one key position in one layer, all heads: QKᵀ and PV."""
    # 2 FLOPs an element of a query, and of a value
    return 2 * model.N * (score_width(model, absorbed=absorbed) + value_width(model, absorbed=absorbed))


def met_pairs(model: Transformer, T: int, S: int, *, causal: bool) -> list[tuple[LayerKind, int]]:
    """The pairs of a query and a cached entry that all layers of a kind compute, by kind of layer."""
    # an entry that stands for several tokens meets a query once for all of them
    return [
        (kind, kind.layers * pairs(T, S, causal=causal, window=kind.reach) // kind.every)
        for kind in model.layer_kinds
    ]


def index_flops(model: Transformer, T: int, S: int, *, causal: bool) -> int:
    """FLOPs of the indexers, which score every entry before they choose."""
    return sum(
        kind.index_flops * kind.layers * pairs(T, S, causal=causal, window=kind.window) // kind.every
        for kind in model.layer_kinds
        if kind.index_flops
    )


def up_projection(model: Transformer) -> int:
    """The weights, in all layers, that make keys and values of latent vectors; 0 without latent attention."""
    return sum(w.params for w in model.weights() if w.name in ("k up", "v up"))


def pairs(T: int, S: int, *, causal: bool = False, window: int | None = None) -> int:
    """The number of query-key pairs for T queries at the end of S positions.

    Without `causal`, every query meets min(S, window) keys, as in a program that computes what the mask
    discards. With it, each meets those up to its own position.
    """
    if not 1 <= T <= S:
        raise ValueError(f"T = {T} and S = {S}: the T new positions are among all S; write 1 ≤ T ≤ S")
    width = min(S, window or S)
    if not causal:
        return T * width
    first = S - T + 1  # what the first query meets
    growing = min(max(width - first + 1, 0), T)  # queries whose window is not yet full
    # first, first + 1, ...: an arithmetic series; then full windows
    return growing * (2 * first + growing - 1) // 2 + (T - growing) * width


def pointwise(m: Transformer) -> tuple[float, float]:
    """Elements per token in all layers: those as wide as the residual stream, and those that TP shards.

    A norm reads and writes; a residual addition reads two and writes one; queries and keys are rotated, MLPs
    have their activation function.
    """
    rotated = 2 * (sublayers.queries(m) + sublayers.keys(m))  # read and written
    wide = m.D * (2 * sublayers.layer_norms(m) + 3 * sublayers.inputs(m))
    return wide, rotated + hidden(m)


def hidden(m: Transformer) -> float:
    """Elements per token read and written by the MLPs' activation functions in all layers."""
    return sublayers.mlp_elements(m)
