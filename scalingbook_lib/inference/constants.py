"""What do a token, a row of logits and a step cost on one chip, class by class? Seconds, once for all steps.

Chapter: Inference.
"""

from typing import NamedTuple

from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.inference.shape import STATE_BYTES, Part, Shape
from scalingbook_lib.inference.traffic import Traffic
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.chip import Chip

LOGIT_BYTES = 4  # a logit, in fp32


class Cost(NamedTuple):
    """One class of products on one chip: seconds for a token, and for reading all its weights."""

    token_s: float
    read_s: float


class Constants(NamedTuple):
    """What `step_s` needs of a case, in one go."""

    cp: int
    groups: int
    kv_batch: int
    wide: bool
    ramp: float
    projections: Cost
    mlp: Cost
    routed: Cost
    untouched: float  # chance that one token does not visit an expert
    head: Cost
    state: tuple[float, float]  # of linear attention: seconds for a token, for reading and writing it
    kinds: tuple[tuple[float, float, float], ...]  # decoding: window, seconds for a pair, for a token
    prompts: tuple[tuple[float, float, float, float], ...]  # of prompts: window, a pair, expanded, a token
    up: float  # seconds to make keys and values of one latent vector, 0 where nothing is latent
    token_s: float  # activations and collectives
    row_s: float  # those of rows that need logits
    token_sent_s: float
    decode_sent_s: float  # of collectives for decoded tokens alone
    row_sent_s: float
    prompt_sent_s: float  # of those for prompts, a token of which
    hops_s: float
    decode_hops_s: float
    prompt_hops_s: float
    launch_s: float
    overlap: float


def constants(s: Shape, machine: Machine, e: Efficiency, traffic: tuple[Traffic, ...]) -> Constants:
    """Seconds for a token, a row, a step and a read of the weights, class by class."""
    o, m, chip = s.layout, s.model, machine.chip
    byte_s = 1 / (chip.hbm_bytes_per_s * e.of("memory", o.activations))
    rate = chip.flops_per_s(o.compute) * e.of("matmul", o.compute)
    routed_s = e.of("expert_layer_s", o.stored("experts"))
    return Constants(
        o.cp, o.attention_dp, o.kv_batch, o.wide, e.of("ramp", o.compute),
        _cost(s, chip, e, s.projections, "mlp", "matmul", "weights"),
        _cost(s, chip, e, s.mlp, "mlp", "matmul", "weights"),
        _cost(s, chip, e, s.experts, "experts", "experts", "expert_weights"),
        1 - m.experts.k / m.experts.E if m.experts else 0.0,
        _cost(s, chip, e, s.head, "unembedding", "head", "head_weights"), *_attention(s, chip, e),
        2 * s.up / rate, s.pointwise * o.activations.bytes * byte_s,
        2 * LOGIT_BYTES * m.V / o.tp * byte_s,  # written, and read by the sampler
        sum(row.bandwidth_s(1) for row in traffic if row.of == "all"),
        sum(row.bandwidth_s(1) for row in traffic if row.of == "decoded"),
        sum(row.bandwidth_s(0, 1) for row in traffic),
        sum(row.bandwidth_s(0, 0, 0, 1) for row in traffic if row.of == "prompts"),
        sum(row.hops_s for row in traffic if row.of == "all"),
        sum(row.hops_s for row in traffic if row.of == "decoded"),
        sum(row.hops_s for row in traffic if row.of == "prompts"),
        m.L * e.of("layer_s", o.weights) + m.moe_layers * routed_s, e.overlap,
    )  # fmt: skip


def _cost(s: Shape, chip: Chip, e: Efficiency, part: Part, name: str, math: str, read: str) -> Cost:
    """Seconds for a token and for reading the weights, of one class."""
    o = s.layout
    stored, computed = o.stored(name), o.computed(name)
    token_s = 2 * part.met / (chip.flops_per_s(computed) * e.of(math, computed))
    read_s = part.stored * stored.bytes / (chip.hbm_bytes_per_s * e.of(read, stored))
    if stored.bytes < computed.bytes:
        read_s += part.stored * e.of("dequantize_s", stored)
    return Cost(token_s, read_s)


def _attention(s: Shape, chip: Chip, e: Efficiency) -> tuple[
    tuple[float, float], tuple[tuple[float, float, float], ...], tuple[tuple[float, float, float, float], ...]
]:  # fmt: skip
    """The state's seconds, and those of each kind of layers for sequences and for prompts."""
    o = s.layout
    pair_s = 1 / (chip.flops_per_s(o.activations) * e.of("attention", o.activations))
    byte_s = 1 / (chip.hbm_bytes_per_s * e.of("kv", o.kv))
    state = s.state_flops * pair_s, 2 * s.state * STATE_BYTES * byte_s  # read and written
    element_s, ways = o.kv.bytes * byte_s, o.kv_sequence
    decoding = ((k.window, k.flops * pair_s / ways, k.elements * element_s / ways) for k in s.kinds)
    own_s = pair_s / o.cp  # all groups attend to all keys, each with its own tokens
    reading = ((k.window, k.prompt * own_s, k.expanded * own_s, k.read * element_s) for k in s.kinds)
    return state, tuple(decoding), tuple(reading)
