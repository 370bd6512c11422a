"""What does one token leave in memory for the backward pass, and what is done again? Policy by policy.

"none" is fused kernels, which keep each input of a product, of a norm and of attention once (Korthikanti et
al., arXiv 2205.05198, section 4, without dropout). "alternate" keeps every second product of a layer and
attention's output, as PyTorch's torchtitan does ("selective op"). The others are those of
`arithmetic.activations`, "selective" its dots_no_batch. "save:q,k,v,o,context" keeps these products (and
attention's output) beside the layers' inputs, "offload:..." has them in the host's memory, with the inputs
where they are named too: "offload:in,q". Scores are done again inside the attention kernel,
whatever is kept. Chapter: Training.
"""

from typing import cast

from scalingbook_lib.models import Transformer, Weight, arithmetic
from scalingbook_lib.models.arithmetic import Policy
from scalingbook_lib.units import FP32, DType

type Pair = tuple[float, float]  # as wide as the residual stream; split by tensor parallelism
_WIDE = ("norms", "norm statistics", "layer inputs", "o", "router")
_POLICY = {"selective": "dots_no_batch", "none": "all", "alternate": "all"}


def named(remat: str) -> tuple[str, tuple[str, ...]]:
    """'save' or 'offload' and the names that follow; '' and none for another policy."""
    where, colon, names = remat.partition(":")
    return (where, tuple(names.split(","))) if colon else ("", ())


def kept(m: Transformer, T: int, remat: str, dtype: DType) -> Pair:
    """Bytes for each token in all layers, on the chip."""
    where, names = named(remat)
    if where:
        wide, split = _listed(m, dtype.bytes, names) if where == "save" else (0.0, 0.0)
        return wide + (0.0 if where == "offload" and "in" in names else m.L * m.D * dtype.bytes), split
    if remat == "none":
        return fused(m, dtype.bytes)
    if remat == "alternate":
        return _alternate(m, dtype.bytes)
    terms = arithmetic.activations(m, 1, T, _policy(remat), dtype=dtype, flash=True).terms
    wide = sum(t.value for t in terms if t.name in _WIDE)
    return wide / T, (sum(t.value for t in terms) - wide) / T


def hosted(m: Transformer, remat: str, dtype: DType) -> Pair:
    """Bytes for each token in all layers that wait in the host's memory."""
    where, names = named(remat)
    if where != "offload":
        return 0.0, 0.0
    wide, split = _listed(m, dtype.bytes, names)
    return wide + ("in" in names) * m.L * m.D * dtype.bytes, split


def _listed(m: Transformer, size: float, names: tuple[str, ...]) -> Pair:
    saved = {w.name: w.active_copies * _outputs(m, w) for w in _products(m) if w.name in names}
    wide = sum(n for name, n in saved.items() if name in _WIDE or name.endswith("down"))
    context = size * _attended(m) + FP32.bytes * m.softmax_layers * m.N if "context" in names else 0.0
    return size * wide, size * (sum(saved.values()) - wide) + context


def again(m: Transformer, T: int, remat: str, causal: bool) -> tuple[float, float, float, float]:
    """FLOPs for each token that the backward pass does a second time: matmul, attention, experts, head."""
    where, names = named(remat)
    if where:
        return _again_but(m, T, names, causal)
    counted = arithmetic.flops(m, 1, T, causal=causal)
    scores, values = counted.get("scores"), counted.get("weighted values")
    extra = arithmetic.activations(m, 1, T, _policy(remat), flash=True, causal=causal).extra_flops
    attention = scores if _policy(remat) == "all" else 2 * scores + values
    experts = counted.get("experts") if remat == "full" else 0.0
    rest = (extra - attention - experts) / T
    if remat == "alternate":
        rest = sum(w.flops_per_token for w in _products(m)[1::2] if w.part != "experts")
        experts = T * sum(w.flops_per_token for w in _products(m)[1::2] if w.part == "experts")
    return rest, attention / T, experts / T, 0.0


def _again_but(
    m: Transformer, T: int, names: tuple[str, ...], causal: bool
) -> tuple[float, float, float, float]:
    """Full rematerialization without the products that are kept."""
    matmul, attention, experts, head = again(m, T, "full", causal)
    spared = [w for w in _products(m) if w.name in names and not w.name.endswith("down")]
    routed = sum(w.flops_per_token for w in spared if w.part == "experts")
    dense = sum(w.flops_per_token for w in spared) - routed
    if "context" in names:
        attention = again(m, T, "none", causal)[1]
    return matmul - dense, attention, experts - routed, head


def fused(m: Transformer, size: float) -> Pair:
    """Korthikanti's count: a layer's inputs of norms and products; queries, keys, values, and the MLP's."""
    products = 2 if m.norms > 1 else 1  # a parallel block has one input for attention and MLP
    wide = m.L * (m.norms + products) * m.D
    return size * wide, size * (
        m.softmax_layers * (m.N + 2 * m.K) * m.H + _attended(m) + arithmetic.hidden(m)
    )


def _alternate(m: Transformer, size: float) -> Pair:
    """The inputs of layers, the first, third, ... product of each, attention's output and its statistics."""
    saved = [(w.name, w.active_copies * _outputs(m, w)) for w in _products(m)[::2]]
    wide = sum(n for name, n in saved if name in _WIDE or name.endswith("down"))
    split = sum(n for _, n in saved) - wide + _attended(m)
    return size * (m.L * m.D + wide), size * split + FP32.bytes * m.softmax_layers * m.N


def _products(m: Transformer) -> list[Weight]:
    return [w for w in m.weights() if w.matmul and w.part != "unembedding"]


def _outputs(m: Transformer, w: Weight) -> int:
    return m.D if w.name == "o" or w.name.endswith("down") else w.size // w.shape[0]


def _attended(m: Transformer) -> float:
    return m.softmax_layers * m.N * (m.latent.v if m.latent else m.H)


def _policy(remat: str) -> Policy:
    return cast(Policy, _POLICY.get(remat, remat))
