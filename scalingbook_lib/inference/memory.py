"""What does each chip hold while it serves, and how many sequences fit?

Chapter: Inference.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import STATE_BYTES, ServingShape, shape
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.steps.memory import ChipMemory
from scalingbook_lib.units import FP32

FAR = 1 << 30  # sequences, of which steps of whole ones are next to nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingMemory(ChipMemory):
    """Bytes on the fullest chip: weights, KV cache, activations, logits, and a reserve for the runtime."""

    parts: ClassVar[tuple[str, ...]] = ("weights", "kv", "activations", "logits", "reserve")
    weights: float
    kv: float
    activations: float
    logits: float
    reserve: float
    chip: Chip


def memory(
    model: Transformer,
    layout: Layout,
    machine: Machine,
    *,
    batch: int,
    S: int,
    step_tokens: int | None = None,
    reserve: float = 0.0,
) -> ServingMemory:
    """One chip's share of the weights and of the cache of `batch` sequences of S tokens, all at their end.

    `step_tokens` pass the model at once (`batch`, or more where prompts do); `reserve` is the share of the
    HBM that stays free for the runtime.
    """
    return held_by(shape(model, layout), machine, batch=batch, S=S, step_tokens=step_tokens, reserve=reserve)


def held_by(
    s: ServingShape,
    machine: Machine,
    *,
    batch: int,
    S: int,
    step_tokens: int | None = None,
    reserve: float = 0.0,
) -> ServingMemory:
    """`memory` of `batch` sequences of S tokens, of a shape that is known already."""
    working, logits = _working_by_batch(s)(batch, batch if step_tokens is None else step_tokens)
    return ServingMemory(
        weights=_weights(s),
        kv=_cache_by_batch(s, S)(batch),
        activations=working,
        logits=logits,
        reserve=reserve * machine.chip.hbm_bytes,
        chip=machine.chip,
    )


def largest_batch(
    model: Transformer,
    layout: Layout,
    machine: Machine,
    *,
    S: int,
    reserve: float = 0.0,
    step_tokens: int | None = None,
) -> int:
    """The most sequences of S tokens that one copy of the model has room for; 0 where it does not fit."""
    return room_for(shape(model, layout), machine, S=S, reserve=reserve, step_tokens=step_tokens)


def room_for(
    s: ServingShape, machine: Machine, *, S: int, reserve: float = 0.0, step_tokens: int | None = None
) -> int:
    """`largest_batch` of a shape that is known already."""
    room = machine.chip.hbm_bytes * (1 - reserve) - _weights(s)
    cached, worked = _cache_by_batch(s, S), _working_by_batch(s)

    def held(B: int) -> float:
        working, logits = worked(B, B if step_tokens is None or step_tokens < B else step_tokens)
        return cached(B) + (working + logits)

    if (least := held(1)) > room:
        return 0
    # What is held grows with B, in steps around a line: from there by doubled steps past the last that fits.
    low = high = 1 + int((room - least) * FAR / held(FAR))
    step = 1
    while held(high) <= room:
        low, high, step = high, high + step, 2 * step
    while low > 1 and held(low) > room:
        low, high, step = max(low - step, 1), low, 2 * step
    return bisect_right(range(high), room, lo=low, key=held) - 1


def weight_bytes(s: ServingShape) -> float:
    """All layers' weights and both ends on the chips of one tensor group, one chip's share of them."""
    o = s.layout
    # norms and biases stay in the type of the activations: next to the matrices they are small
    layers = (s.projections.stored + s.mlp.stored) * o.weights.bytes + s.other * o.activations.bytes
    layers += s.experts.stored * o.stored("experts").bytes
    return layers + (s.embedding + s.head.stored) * o.stored("embedding").bytes


def _weights(s: ServingShape) -> float:
    """The longest stage with the larger end; without stages both."""
    o = s.layout
    outer = o.stored("embedding").bytes
    ends = (s.embedding + s.head.stored) * outer
    layers = weight_bytes(s) - ends
    # With stages, the embedding lies on the first and the unembedding on the last: no chip has both.
    return s.longest * layers + (ends if o.pp == 1 else outer * max(s.embedding, s.head.stored))


def _cache_by_batch(s: ServingShape, S: float) -> Callable[[int], float]:
    """The stage with most layers holds its part of the cache of all B sequences, whole ones on each chip."""
    o, most = s.layout, s.longest
    cp, dp, ways = o.cp, o.attention_dp, o.kv_batch
    # A window keeps its last tokens alone; `elements` counts heads that are copied.
    each = sum(kind.elements * min(S, kind.kept) for kind in s.kinds) * o.kv.bytes / o.kv_sequence
    state = s.state * STATE_BYTES  # of a sequence, however long it is

    def held(B: int) -> float:
        B = -(-B // cp)  # tensor groups that a prompt is spread over share the sequences of a decode step
        # sequences of a group, then of one of its parts: neither is cut, so the fullest has the ceiling
        return most * (-(B // -dp // ways) * each + state * B / dp)

    return held


def _working_by_batch(s: ServingShape) -> Callable[[int, int], tuple[float, float]]:
    """Two vectors as wide as the model and the widest hidden one; logits of each sequence in fp32."""
    m, o = s.model, s.layout
    # up and gate side by side; a token's k experts are there together
    width = max(m.F, (m.experts.F * m.experts.k) if m.experts else 0) * (2 if m.gated else 1) / o.tp
    # Of the hidden vectors a layer makes one after the other, only the widest is there at its time.
    widest = max(width, (m.N + 2 * m.K) * m.H / o.columns)
    cp, narrow, elements, chips = o.cp, o.activations.bytes, 2 * m.D + widest, o.tp * o.cp
    return lambda B, tokens: (tokens / cp * narrow * elements, B * m.V * FP32.bytes / chips)
