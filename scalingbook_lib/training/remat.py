"""Saved activations and recomputed FLOPs per token, for each rematerialization policy.

- "none": fused kernels, which save each input of a matmul, of a norm and of attention once (Korthikanti et
  al., arXiv 2205.05198, section 4, without dropout).
- "alternate": every second matmul of a layer and the output of attention, as in torchtitan ("selective op").
- "save:q,k,v,o,context": these matmuls, attention's output ("context") and the layers' inputs.
- "offload:in,q": these matmuls are kept in host memory, and so are the layers' inputs if "in" is listed.
  Both kinds may be combined, "save:context;offload:in,down", as in MaxText's policies by tensor.
- "recompute:...": everything but the outputs of these modules, as in Megatron (see `MODULES`).
- "full:16": 16 layers are recomputed from their inputs, and the others save what "none" saves, as in
  torchtitan's every second layer or Megatron's "block" method.
- All others are those of `arithmetic.activations`; "selective" is its dots_no_batch.

Attention scores are recomputed inside the kernel under every policy. Chapter: Training.
"""

from functools import lru_cache
from typing import NamedTuple, cast

from scalingbook_lib.models import Transformer, Weight, arithmetic
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.remat import Policy, products
from scalingbook_lib.training.terms import ByClass, Widths
from scalingbook_lib.units import FP32, DType

_WIDE = ("norms", "norm statistics", "layer inputs", "o", "router")  # as wide as the residual stream
# by the names of `arithmetic.activations`
_POLICY = {"selective": "dots_no_batch", "none": "all", "alternate": "all"}


CORE_ATTENTION = "core_attn"
MODULES = ("layernorm", "mla_up_proj", "moe_act", "mlp", "shared_experts", CORE_ATTENTION)
"""What "recompute:..." may name: the outputs of norms, the up-projections of latents, the outputs of experts'
activation functions, the hidden layers of dense MLPs and of shared experts, and attention's kernel. The
output of that kernel is saved in any case, as the input of the next matmul, so "core_attn" saves nothing
that a flash kernel stores, and its forward pass runs again."""
USUAL = ("in", "context", "q", "k", "v", "o", "gate", "up", "down", "expert gate", "expert up", "expert down")
"""Names that a policy may list for every model, as those of MaxText do: a model without one skips it."""
FULL_LAYERS = "full:"
"""A policy that begins with this recomputes as many layers as the number behind it."""
_UP = ("q up", "k up", "v up")
_LATENTS = ("q down", "kv down", "k rope")


class NamedTensors(NamedTuple):
    """The tensors that a policy names: saved on the chip, saved in host memory, and recomputed."""

    saved: tuple[str, ...] = ()
    offloaded: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The tensors that are saved although the rest of a layer is recomputed."""
        return self.saved + self.offloaded


@lru_cache(maxsize=256)
def named(remat: str) -> NamedTensors:
    """Return the names in a policy such as "save:q,k;offload:in"; raises a ValueError if it is malformed."""
    found: dict[str, tuple[str, ...]] = {}
    if remat.startswith(FULL_LAYERS):
        count = remat.removeprefix(FULL_LAYERS)
        if not (count.isdecimal() and int(count)):
            raise ValueError(
                f"remat={remat!r}: {count!r} is not a number of layers; write 'full:16', for example"
            )
        return NamedTensors()
    for clause in remat.split(";") if ":" in remat else ():
        where, _, names = clause.partition(":")
        if where not in ("save", "offload", "recompute") or where in found or not names:
            raise ValueError(
                f"remat={remat!r}: {clause!r} is none of save:..., offload:... and recompute:..., once each"
            )
        found[where] = tuple(names.split(","))
    unknown = [name for name in found.get("recompute", ()) if name not in MODULES]
    if unknown or ("recompute" in found and len(found) > 1):
        raise ValueError(
            f"remat={remat!r}: write recompute: alone, with some of {', '.join(MODULES)}; "
            "save: and offload: name the products to keep"
        )
    return NamedTensors(found.get("save", ()), found.get("offload", ()), found.get("recompute", ()))


def unknown(m: Transformer, remat: str) -> str:
    """Return what a policy names that a model lacks, a product or so many layers; '' if it lacks nothing."""
    if remat.startswith(FULL_LAYERS):
        count = int(remat.removeprefix(FULL_LAYERS))
        return f"remat={remat!r}: {m.name} has {m.L} layers; write at most full:{m.L}" if count > m.L else ""
    kept = named(remat).kept
    own = ("in", *(w.name for w in products(m)), "context") if kept else ()
    strange = [name for name in kept if name not in own and name not in USUAL]
    if not strange:
        return ""
    return f"remat={remat!r}: {m.name} has no product {strange[0]!r}; write some of {', '.join(own)}"


def replayed_share(m: Transformer, remat: str) -> float:
    """Return the share of the layers whose forward pass the backward pass repeats."""
    if remat.startswith(FULL_LAYERS):
        return min(int(remat.removeprefix(FULL_LAYERS)) / m.L, 1.0)
    return 1.0 if remat == "full" or named(remat).kept else 0.0


def replayed_attention(m: Transformer, remat: str) -> float:
    """Return the share of the layers whose attention runs forward again in the backward pass."""
    return 1.0 if CORE_ATTENTION in named(remat).recomputed else replayed_share(m, remat)


def stored(m: Transformer, T: int, remat: str, dtype: DType) -> Widths:
    """Return the bytes per token that all layers save on the chip."""
    names = named(remat)
    if remat.startswith(FULL_LAYERS):
        share = replayed_share(m, remat)
        pairs = zip(stored(m, T, "full", dtype), stored(m, T, "none", dtype), strict=True)
        return Widths(*(share * full + (1 - share) * none for full, none in pairs))
    if remat == "alternate":
        # torchtitan's rule: every second matmul, in the order of a layer
        names = NamedTensors(saved=(*(w.name for w in products(m)[::2]), "context"))
    if names.kept:
        saved = _listed(m, dtype.bytes, names.saved)
        # each layer is recomputed from its input, which is saved on the chip or on the host
        inputs = 0.0 if "in" in names.offloaded else m.L * m.D * dtype.bytes
        return Widths(saved.wide + inputs, saved.split)
    if remat == "none" or names.recomputed:
        return _without(m, names.recomputed, dtype.bytes)
    terms = arithmetic.activations(m, 1, T, _policy(remat), dtype=dtype, flash=True).terms
    wide = sum(t.value for t in terms if t.name in _WIDE)
    return Widths(wide / T, (sum(t.value for t in terms) - wide) / T)


def hosted(m: Transformer, remat: str, dtype: DType) -> Widths:
    """Return the bytes per token that all layers save in host memory."""
    names = named(remat).offloaded
    saved = _listed(m, dtype.bytes, names)
    return Widths(saved.wide + ("in" in names) * m.L * m.D * dtype.bytes, saved.split)


def _listed(m: Transformer, size: float, names: tuple[str, ...]) -> Widths:
    saved = {w.name: _outputs(m, w) for w in products(m) if w.name in names}
    wide = sum(n for name, n in saved.items() if name in _WIDE or name.endswith("down"))
    # with attention's output, its log-sum-exp is saved: one fp32 number per head
    context = size * _attended(m) + FP32.bytes * sublayers.query_heads(m) if "context" in names else 0.0
    return Widths(size * wide, size * (sum(saved.values()) - wide) + context)


def recomputed(m: Transformer, T: int, remat: str, causal: bool) -> ByClass:
    """Return the FLOPs per token that the backward pass recomputes."""
    names = named(remat)
    if remat.startswith(FULL_LAYERS):
        share = replayed_share(m, remat)
        pairs = zip(recomputed(m, T, "full", causal), recomputed(m, T, "none", causal), strict=True)
        return ByClass(*(share * full + (1 - share) * none for full, none in pairs))
    if names.kept:
        return _recomputed_but(m, T, names.kept, causal)
    if names.recomputed:
        return _recomputed_modules(m, T, names.recomputed, causal)
    policy = _policy(remat)
    counted = arithmetic.flops(m, 1, T, causal=causal)
    scores, values = counted.get("scores"), counted.get("weighted values")
    # a flash kernel always recomputes the scores; if its output is not saved, its forward pass runs again
    attention = scores if policy == "all" else 2 * scores + values
    if remat == "alternate":
        again = products(m)[1::2]
        # 2 FLOPs per weight that a token is multiplied by
        dense = sum(w.flops_per_token for w in again if w.part != "experts")
        experts = T * sum(w.flops_per_token for w in again if w.part == "experts")
    else:
        extra = arithmetic.activations(m, 1, T, policy, flash=True, causal=causal).extra_flops
        experts = counted.get("experts") if remat == "full" else 0.0
        dense = (extra - attention - experts) / T  # the rest: the layers' dense matmuls
    return ByClass(matmul=dense, attention=attention / T, experts=experts / T)


def _recomputed_but(m: Transformer, T: int, names: tuple[str, ...], causal: bool) -> ByClass:
    """Return the FLOPs of full rematerialization without the matmuls whose results are saved."""
    full = recomputed(m, T, "full", causal)
    # the last matmul of a layer is never recomputed, because no gradient needs its output
    spared = [w for w in products(m) if w.name in names and not w.name.endswith("down")]
    routed = sum(w.flops_per_token for w in spared if w.part == "experts")
    dense = sum(w.flops_per_token for w in spared) - routed
    # a saved output avoids the forward pass of attention, but not the scores of its backward pass
    attention = recomputed(m, T, "none", causal).attention if "context" in names else full.attention
    return ByClass(
        matmul=full.matmul - dense, attention=attention, experts=full.experts - routed, head=full.head
    )


def _recomputed_modules(m: Transformer, T: int, modules: tuple[str, ...], causal: bool) -> ByClass:
    """Return the FLOPs of "none" plus those of the forward pass inside the recomputed modules."""
    parts = {"mla_up_proj": _UP, "mlp": ("gate", "up"), "shared_experts": ("shared gate", "shared up")}
    again = {name for module in modules for name in parts.get(module, ())}
    dense = sum(w.flops_per_token for w in products(m) if w.name in again)
    none = recomputed(m, T, "none", causal)
    # the flash kernel runs forward again, beside the scores that its backward pass always recomputes
    forward = recomputed(m, T, "full", causal).attention - none.attention
    attention = none.attention + (forward if CORE_ATTENTION in modules else 0.0)
    return none._replace(matmul=none.matmul + dense, attention=attention)


def _without(m: Transformer, modules: tuple[str, ...], size: float) -> Widths:
    """Return the bytes that fused kernels save, without the outputs inside these modules."""
    wide, split = fused(m, size)
    each, x = (3 if m.gated else 2), m.experts
    if "layernorm" in modules:
        wide -= size * sublayers.inputs(m) * m.D
    if "mla_up_proj" in modules and m.latent:
        # expanded queries, keys and values are recomputed from their latents, which are saved instead
        split -= size * m.softmax_layers * (m.N + 2 * m.K) * m.H
        wide += size * sum(_outputs(m, w) for w in products(m) if w.name in _LATENTS)
    if "mlp" in modules:
        split -= size * each * (m.L - m.moe_layers) * m.F
    if "moe_act" in modules and x:
        split -= size * m.moe_layers * x.k * x.F
    if "shared_experts" in modules and x:
        split -= size * each * m.moe_layers * x.shared_width
    return Widths(wide, split)


def fused(m: Transformer, size: float) -> Widths:
    """Return the bytes per token that fused kernels save, by Korthikanti's count.

    These are the inputs of norms and matmuls, queries, keys and values, attention's output, and the MLP's
    hidden layer.
    """
    # inputs of attention: N query heads, K key heads and K value heads
    heads = sublayers.queries(m) + 2 * sublayers.keys(m)
    return Widths(
        # D elements each
        wide=size * ((sublayers.layer_norms(m) + sublayers.inputs(m)) * m.D),
        split=size * (heads + _attended(m) + sublayers.recurrent(m) + arithmetic.hidden(m)),
    )


def _outputs(m: Transformer, w: Weight) -> int:
    """Return the elements of a token's results with all active copies of a weight."""
    # weights are [D, ...], except for the two that lead back to D; "q down" leads to a latent vector
    back = sublayers.leads_back(w) or (w.name.endswith("down") and w.shape[-1] == m.D)
    each = m.D if back else w.size // w.shape[0]
    return w.active_copies * each


def _attended(m: Transformer) -> float:
    return sublayers.attended(m)


def _policy(remat: str) -> Policy:
    return cast(Policy, _POLICY.get(remat, remat))
