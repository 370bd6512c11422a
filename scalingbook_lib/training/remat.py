"""What does one token leave in memory for the backward pass, and what is recomputed? Policy by policy.

"none" is fused kernels, which store each input of a product, of a norm and of attention once (Korthikanti et
al., arXiv 2205.05198, section 4, without dropout). "alternate" stores every second product of a layer and
attention's output, as PyTorch's torchtitan does ("selective op"). The others are those of
`arithmetic.activations`, "selective" its dots_no_batch. "save:q,k,v,o,context" stores these products (and
attention's output) beside the layers' inputs, "offload:..." has them in the host's memory, with the inputs
where they are named too: "offload:in,q". Scores are recomputed inside the attention kernel,
whatever is stored. Chapter: Training.
"""

from typing import cast

from scalingbook_lib.models import Transformer, Weight, arithmetic
from scalingbook_lib.models.arithmetic.remat import Policy, products
from scalingbook_lib.training.terms import ByClass, Widths
from scalingbook_lib.units import FP32, DType

_WIDE = ("norms", "norm statistics", "layer inputs", "o", "router")  # as wide as the residual stream
# by the names of `arithmetic.activations`
_POLICY = {"selective": "dots_no_batch", "none": "all", "alternate": "all"}


def named(remat: str) -> tuple[str, tuple[str, ...]]:
    """'save' or 'offload' and the names that follow; '' and none for another policy."""
    where, colon, names = remat.partition(":")
    return (where, tuple(names.split(","))) if colon else ("", ())


def stored(m: Transformer, T: int, remat: str, dtype: DType) -> Widths:
    """Bytes for each token in all layers, on the chip."""
    where, names = named(remat)
    if remat == "alternate":
        # torchtitan's rule: every second product of those in a layer's order
        where, names = "save", (*(w.name for w in products(m)[::2]), "context")
    if where:
        saved = _listed(m, dtype.bytes, names) if where == "save" else Widths(0.0, 0.0)
        # Each layer begins anew from its input, which waits here or on the host.
        inputs = 0.0 if where == "offload" and "in" in names else m.L * m.D * dtype.bytes
        return Widths(saved.wide + inputs, saved.split)
    if remat == "none":
        return fused(m, dtype.bytes)
    terms = arithmetic.activations(m, 1, T, _policy(remat), dtype=dtype, flash=True).terms
    wide = sum(t.value for t in terms if t.name in _WIDE)
    return Widths(wide / T, (sum(t.value for t in terms) - wide) / T)


def hosted(m: Transformer, remat: str, dtype: DType) -> Widths:
    """Bytes for each token in all layers that wait in the host's memory."""
    where, names = named(remat)
    if where != "offload":
        return Widths()
    saved = _listed(m, dtype.bytes, names)
    return Widths(saved.wide + ("in" in names) * m.L * m.D * dtype.bytes, saved.split)


def _listed(m: Transformer, size: float, names: tuple[str, ...]) -> Widths:
    saved = {w.name: _outputs(m, w) for w in products(m) if w.name in names}
    wide = sum(n for name, n in saved.items() if name in _WIDE or name.endswith("down"))
    # with attention's output its logsumexp, one in fp32 for each head
    context = size * _attended(m) + FP32.bytes * m.softmax_layers * m.N if "context" in names else 0.0
    return Widths(size * wide, size * (sum(saved.values()) - wide) + context)


def recomputed(m: Transformer, T: int, remat: str, causal: bool) -> ByClass:
    """FLOPs for each token that the backward pass does a second time."""
    where, names = named(remat)
    if where:
        return _recomputed_but(m, T, names, causal)
    policy = _policy(remat)
    counted = arithmetic.flops(m, 1, T, causal=causal)
    scores, values = counted.get("scores"), counted.get("weighted values")
    # a flash kernel recomputes the scores in any case; where its output is not stored, forward runs again
    attention = scores if policy == "all" else 2 * scores + values
    if remat == "alternate":
        again = products(m)[1::2]
        # 2 FLOPs for each element that a token meets
        dense = sum(w.flops_per_token for w in again if w.part != "experts")
        experts = T * sum(w.flops_per_token for w in again if w.part == "experts")
    else:
        extra = arithmetic.activations(m, 1, T, policy, flash=True, causal=causal).extra_flops
        experts = counted.get("experts") if remat == "full" else 0.0
        dense = (extra - attention - experts) / T  # the rest: the layers' dense products
    return ByClass(matmul=dense, attention=attention / T, experts=experts / T)


def _recomputed_but(m: Transformer, T: int, names: tuple[str, ...], causal: bool) -> ByClass:
    """Full rematerialization without the products that are stored."""
    full = recomputed(m, T, "full", causal)
    # the last product of a layer is not recomputed anyway: no gradient needs its output
    spared = [w for w in products(m) if w.name in names and not w.name.endswith("down")]
    routed = sum(w.flops_per_token for w in spared if w.part == "experts")
    dense = sum(w.flops_per_token for w in spared) - routed
    # A kept output spares the forward pass, not the scores of the backward one.
    attention = recomputed(m, T, "none", causal).attention if "context" in names else full.attention
    return ByClass(
        matmul=full.matmul - dense, attention=attention, experts=full.experts - routed, head=full.head
    )


def fused(m: Transformer, size: float) -> Widths:
    """Korthikanti's count: a layer's inputs of norms and products; queries, keys, values, and the MLP's."""
    inputs = 2 if m.norms > 1 else 1  # a parallel block has one input for attention and MLP
    # inputs of attention: N heads of queries, K of keys and K of values
    heads = m.softmax_layers * (m.N + 2 * m.K) * m.H
    return Widths(
        wide=size * (m.L * (m.norms + inputs) * m.D),  # D elements each
        split=size * (heads + _attended(m) + arithmetic.hidden(m)),
    )


def _outputs(m: Transformer, w: Weight) -> int:
    """Elements that a token's product with all copies of a weight gives."""
    # matrices are [D, ...] but for the two that lead back to D; "q down" leads to a latent vector
    back = w.name == "o" or (w.name.endswith("down") and w.shape[-1] == m.D)
    each = m.D if back else w.size // w.shape[0]
    return w.active_copies * each


def _attended(m: Transformer) -> float:
    return m.softmax_layers * m.N * (m.latent.v if m.latent else m.H)


def _policy(remat: str) -> Policy:
    return cast(Policy, _POLICY.get(remat, remat))
