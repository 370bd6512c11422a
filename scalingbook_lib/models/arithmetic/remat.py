"""Activations saved for the backward pass under a checkpointing
policy, and the FLOPs of recomputing the rest.

The layer is the plain one: norms and softmax in fp32, SiLU as x · sigmoid(x), dropless experts. The count is
of the arrays of the layers that JAX saves, not of what a compiler may save besides, and has no logits; what
the norms broadcast over tokens is left out. Chapter: Transformers.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal

from scalingbook_lib.models import Transformer, Weight
from scalingbook_lib.models.arithmetic import sublayers
from scalingbook_lib.models.arithmetic.terms import Bytes, Term
from scalingbook_lib.models.arithmetic.training import INDEX, SCORES, VALUES, Flops, flops
from scalingbook_lib.units import BF16, FP32, DType, percent, require_min, si

Policy = Literal["all", "dots", "dots_no_batch", "full"]
POLICIES: tuple[Policy, ...] = ("all", "dots", "dots_no_batch", "full")
type Stored = dict[str, float]  # by name, bytes for each token in all layers


@dataclass(frozen=True)
class Activations(Bytes):
    """The bytes saved for the backward pass, by array, and the FLOPs that are recomputed."""

    model: Transformer
    tokens: int
    policy: Policy
    dtype: DType
    extra_flops: float
    training_flops: float

    @property
    def units(self) -> float:
        """The saved activations of one layer, in arrays [B, T, D]: 1 is the layer's input alone."""
        m = self.model
        return self.total / (self.dtype.bytes * self.tokens * m.D * m.L)

    @property
    def extra_share(self) -> float:
        """The recomputed FLOPs over the training FLOPs without recomputation."""
        return self.extra_flops / self.training_flops

    def __str__(self) -> str:
        return (
            f"{self.policy}: {si(self.nbytes, 'B')}, {self.units:.4g} arrays [B, T, D] a layer, "
            f"{percent(self.extra_share)} more FLOPs"
        )


def activations(
    model: Transformer,
    sequences: int,
    T: int,
    policy: Policy = "all",
    *,
    dtype: DType = BF16,
    flash: bool = False,
    causal: bool = False,
) -> Activations:
    """What `jax.checkpoint` around each layer saves: everything,
    matmuls, those without batch, or layer inputs.

    With `flash`, scores never leave the chip: the kernel saves its output and one number per query per head,
    recomputes the scores in its backward pass, and is not a matmul for a policy. ValueError for an unknown
    policy.
    """
    if policy not in POLICIES:
        raise ValueError(f"{policy!r} is not a policy; write one of {', '.join(POLICIES)}")
    require_min(1, sequences=sequences, T=T)
    tokens = sequences * T
    stored = _all(model, T, dtype, flash) if policy == "all" else _saved(model, T, dtype, policy, flash)
    terms = tuple(Term(k, tokens * n, f"{n:,.10g} bytes for each token") for k, n in stored.items() if n)
    forward = flops(model, sequences, T, causal=causal)
    return Activations(
        terms, model, tokens, policy, dtype, _recomputed_flops(forward, policy, flash), 3 * forward.total
    )


def _saved(m: Transformer, T: int, dtype: DType, policy: Policy, flash: bool) -> Stored:
    """Bytes per token of the layer inputs and of what a policy adds to them."""
    a = dtype.bytes
    stored: Stored = {"layer inputs": m.L * m.D * a}
    if policy != "full":
        stored |= _outputs_saved(products(m), m, a)
    if policy == "dots" and not flash:
        stored |= {SCORES: sublayers.query_heads(m) * T * a, VALUES: sublayers.attended(m) * a}
    return stored


def _all(m: Transformer, T: int, dtype: DType, flash: bool) -> Stored:
    """Bytes per token of all arrays that the derivative of some operation needs, each once."""
    a, mlp = dtype.bytes, [w for w in products(m) if w.part in _MLP]
    heads = sublayers.query_heads(m)
    norms = sublayers.layer_norms(m)
    ranks = [w for w in m.weights() if w.name in ("q rank norm", "kv rank norm")]
    latents, latent = sum(w.copies * w.size for w in ranks), sum(w.copies for w in ranks)
    # the widths of the MLPs that a token meets
    hidden = sum(w.active_copies * _outputs(m, w) for w in mlp if w.name.endswith("up"))
    return {
        "norms": (norms * m.D + latents) * (2 * FP32.bytes + a),  # input, scaled; output
        # two for each norm
        "norm statistics": FP32.bytes * 2 * (norms + latent),
        "queries, keys": (sublayers.queries(m) + sublayers.keys(m)) * a,  # turned by their positions
        "values": sublayers.values(m) * a,
        "recurrences": sublayers.recurrent(m) * a,
        # exp(scores) in fp32, and rounded for the product
        "probabilities": 0 if flash else heads * T * (FP32.bytes + a),
        "softmax statistics": FP32.bytes * heads * (1 if flash else 2),
        VALUES: sublayers.attended(m) * a,
        **_outputs_saved([w for w in products(m) if w.part in ("router", *_MLP)], m, a),
        # between the MLP's products: sigmoid, its derivative, SiLU, gated product; ungated, two
        "MLP, pointwise": hidden * (4 if m.gated else 2) * a,
    }


_MLP = ("mlp", "experts", "shared experts")


def _outputs_saved(made_by: list[Weight], m: Transformer, a: float) -> Stored:
    """Bytes per token of these matmuls' outputs.

    No gradient needs what is only added to the residual stream.
    """
    return {w.name: w.active_copies * _outputs(m, w) * a for w in made_by if not _is_last(m, w)}


def _recomputed_flops(forward: Flops, policy: Policy, flash: bool) -> float:
    """The matmul FLOPs that the backward pass does a second time."""
    m = forward.model
    extra = forward.get(SCORES) if flash else 0  # inside the kernel, whatever the policy
    if policy == "full":
        unused = sum(w.flops_per_token for w in products(m) if w.name != "o" and _is_last(m, w))
        return extra + forward.total - forward["unembedding"] - forward.tokens * unused
    if policy == "dots_no_batch" or (policy == "dots" and flash):
        extra += forward.get(SCORES) + forward.get(VALUES) + forward.get(INDEX)
    return extra


def products(m: Transformer) -> list[Weight]:
    """The weights that a layer multiplies by, in order."""
    return [w for w in m.weights() if w.matmul and w.part != "unembedding"]


def _is_last(m: Transformer, w: Weight) -> bool:
    """Whether the output of this matmul is only added to the residual stream at the end of the layer."""
    scaled = w.part == "experts" or bool(w.part == "shared experts" and m.experts and m.experts.shared_gate)
    return w.part in _MLP and w.name.endswith("down") and not scaled


def _outputs(m: Transformer, w: Weight) -> int:
    """The number of elements per token of this matmul's output."""
    back = sublayers.leads_back(w) or (w.part in _MLP and w.name.endswith("down"))
    return m.D if back else prod(w.shape[1:])
