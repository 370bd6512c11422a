"""Seconds per token, per row of logits and per step on one chip, by class of operation.

They follow from the peaks of the chip and the shares of `ServingEfficiency`, are summed over all layers, and
are the same for all steps. Chapter: Inference.
"""

from dataclasses import dataclass
from math import log

from scalingbook_lib.inference.efficiency import ServingEfficiency
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import STATE_BYTES, ProductClass, ServingShape
from scalingbook_lib.inference.traffic import ServingCollective
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models.arithmetic import sublayers

LOGIT_BYTES = 4  # per logit, in fp32


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductCost:
    """One class of matmuls on one chip: seconds of compute per token, and to read all weights."""

    token_s: float
    read_s: float
    apart: float  # the share of the shorter time that is exposed (`ServingEfficiency.apart`)

    def waits(self, tokens: float, visited: float = 1.0) -> tuple[bool, float]:
        """Return whether reading a share of the weights takes longer than compute, and the seconds."""
        math_s, read_s = tokens * self.token_s, visited * self.read_s
        if read_s > math_s:
            return True, read_s + self.apart * math_s
        return False, math_s + self.apart * read_s


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionCost:
    """Layers with the same kind of attention: seconds per query-key pair and per cached token."""

    window: float
    by_head: bool
    pair_s: float  # decode: one query and one key
    token_s: float  # decode: reading one token's keys and values
    prompt_pair_s: float
    prompt_expanded_s: float  # a pair, with keys and values expanded from latents
    prompt_token_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """The collectives of one class (`ServingCollective.of`): seconds per token, and of hops per step."""

    token_s: float
    hops_s: float

    def seconds(self, tokens: float) -> float:
        """Return the seconds of all of them in one pass."""
        return self.hops_s + tokens * self.token_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Constants:
    """The constants from which the time of a microbatch is computed."""

    layout: Layout

    # weight matmuls
    wide: bool  # `Layout.wide`
    projections: ProductCost
    mlp: ProductCost
    routed: ProductCost
    head: ProductCost
    untouched: float  # 1 - k/E: the probability that a token does not activate an expert
    busiest: float  # routed tokens of the busiest chip's experts over the mean
    varied: float  # the squared random variation of that for one token, 2 ln(ep) · ep / k

    # Attention.
    kinds: tuple[AttentionCost, ...]
    state_token_s: float  # linear attention: compute per token
    state_read_s: float  # linear attention: reading and writing the state
    up_s: float  # to expand one latent vector into keys and values; 0 without latent attention

    # elementwise work: activations between matmuls, and logits
    token_s: float
    row_s: float

    # Collectives.
    sent: Sent  # for all tokens of a step
    decoded_sent: Sent  # for decoded tokens only
    prompt_sent: Sent  # for prompt tokens, including cached ones
    row_sent_s: float  # per row of logits
    overlap: float  # the share of collectives that the rest of a step can hide

    launch_s: float  # kernel launches of all layers


def constants(
    s: ServingShape, machine: Machine, e: ServingEfficiency, traffic: tuple[ServingCollective, ...]
) -> Constants:
    """Return seconds per token, per row, per step and per read of the weights, by class."""
    o, m, chip = s.layout, s.model, machine.chip
    byte_s = 1 / (chip.hbm_bytes_per_s * e.of("memory", o.activations))
    cached_s = 1 / (chip.hbm_bytes_per_s * e.of("kv", o.kv))
    flop_s = 1 / (chip.flops_per_s(o.activations) * e.of("attention", o.activations))
    routed_s = e.of("expert_layer_s", o.stored("experts"))
    return Constants(
        layout=o,
        wide=o.wide,
        projections=_cost(s.projections, "mlp", s, chip, e),
        mlp=_cost(s.mlp, "mlp", s, chip, e),
        routed=_cost(s.experts, "experts", s, chip, e),
        head=_cost(s.head, "unembedding", s, chip, e),
        untouched=1 - m.experts.k / (m.experts.E + o.redundant_experts) if m.experts else 0.0,
        busiest=s.busiest(e.expert_skew),
        # `expert_load.variation`, with k / ep routed tokens per token
        varied=2 * log(o.ep) * o.ep / m.experts.k if m.experts and e.expert_skew is not None else 0.0,
        kinds=_kinds(s, flop_s, o.kv.bytes * cached_s),
        state_token_s=6 * s.state * flop_s,  # written with the key, read with the key and with the query
        state_read_s=2 * s.state * STATE_BYTES * cached_s,
        up_s=2 * s.up / (chip.flops_per_s(o.compute) * e.of("matmul", o.compute)),
        token_s=s.pointwise * o.activations.bytes * byte_s,
        row_s=2 * LOGIT_BYTES * m.V / o.tp * byte_s,  # written, and read by the sampler
        sent=_sent(traffic, "all"),
        decoded_sent=_sent(traffic, "decoded"),
        prompt_sent=_sent(traffic, "prompts"),
        row_sent_s=sum(row.bandwidth_s(0, rows=1) for row in traffic),
        overlap=e.overlap,
        launch_s=sublayers.full_layers(m) * e.of("layer_s", o.weights) + m.moe_layers * routed_s,
    )


_FIGURES = {  # fields of `ServingEfficiency`: the share of the matrix unit's rate, and of the HBM's
    "mlp": ("matmul", "weights"),
    "experts": ("experts", "expert_weights"),
    "unembedding": ("head", "head_weights"),
}


def _cost(part: ProductClass, name: str, s: ServingShape, chip: Chip, e: ServingEfficiency) -> ProductCost:
    """Return the cost of a class: 2 FLOPs per active weight; all weights are read, and dequantized."""
    stored, computed = s.layout.stored(name), s.layout.computed(name)
    math, read = _FIGURES[name]
    read_s = part.stored * stored.bytes / (chip.hbm_bytes_per_s * e.of(read, stored))
    if stored.bytes < computed.bytes:
        read_s += part.stored * e.of("dequantize_s", stored)
    token_s = 2 * part.met / (chip.flops_per_s(computed) * e.of(math, computed))
    return ProductCost(token_s=token_s, read_s=read_s, apart=e.apart)


def _kinds(s: ServingShape, flop_s: float, element_s: float) -> tuple[AttentionCost, ...]:
    """Return the cost of each kind of attention; in a prefill, each ring group has its own queries."""
    tokens, ring = s.layout.kv_sequence, flop_s / s.layout.cp
    return tuple(
        AttentionCost(
            window=kind.window,
            by_head=kind.by_head,
            pair_s=kind.flops * flop_s / tokens,
            token_s=kind.elements * element_s / tokens,
            prompt_pair_s=kind.prompt_flops * ring,
            prompt_expanded_s=kind.expanded_flops * ring,
            prompt_token_s=kind.prompt_elements * element_s,
        )
        for kind in s.kinds
    )


def _sent(traffic: tuple[ServingCollective, ...], of: str) -> Sent:
    """Return the seconds per token and of all hops for the collectives of one class."""
    rows = [row for row in traffic if row.of == of]
    return Sent(token_s=sum(row.token_s for row in rows), hops_s=sum(row.hops_s for row in rows))
