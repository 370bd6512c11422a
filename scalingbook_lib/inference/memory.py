"""The memory of each chip of a server, and the largest batch that fits.

Chapter: Inference.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from scalingbook_lib.inference.drafting import PLAIN, Drafting
from scalingbook_lib.inference.layout import Layout
from scalingbook_lib.inference.shape import STATE_BYTES, ServingShape, shape
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.steps.memory import ChipMemory
from scalingbook_lib.units import FP32

FAR = 1 << 30  # sequences: so many that rounding to whole ones is negligible


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingMemory(ChipMemory):
    """Bytes on the fullest chip: weights, KV cache, activations, logits, and a reserve for the runtime.

    A draft model has weights and a KV cache of its own. Its activations take the place of the model's.
    """

    parts: ClassVar[tuple[str, ...]] = (
        *("weights", "kv", "draft_weights", "draft_kv", "activations", "logits", "reserve"),
    )
    weights: float
    kv: float
    draft_weights: float = 0.0
    draft_kv: float = 0.0
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
    drafting: Drafting = PLAIN,
) -> ServingMemory:
    """Return the memory of the fullest chip for `batch` sequences, each at its full length of S tokens.

    `step_tokens` is the number of tokens in a step: `batch` by default, or more if prompts are prefilled.
    `reserve` is the share of the HBM that is left free for the runtime. The draft model of `drafting`, if it
    has one, is on the same chips.
    """
    s, draft = shape(model, layout), drafting.shape(layout)
    return held_by(s, machine, batch=batch, S=S, step_tokens=step_tokens, reserve=reserve, draft=draft)


def held_by(
    s: ServingShape,
    machine: Machine,
    *,
    batch: int,
    S: int,
    step_tokens: int | None = None,
    reserve: float = 0.0,
    draft: ServingShape | None = None,
) -> ServingMemory:
    """Return the memory of the fullest chip as `memory` does, for known shapes."""
    working, logits = _working_by_batch(s)(batch, batch if step_tokens is None else step_tokens)
    return ServingMemory(
        weights=_weights(s),
        kv=_cache_by_batch(s, S)(batch),
        draft_weights=_weights(draft) if draft else 0.0,
        draft_kv=_cache_by_batch(draft, S)(batch) if draft else 0.0,
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
    drafting: Drafting = PLAIN,
) -> int:
    """Return the largest number of sequences of S tokens that fit on one replica; 0 if none does."""
    s, draft = shape(model, layout), drafting.shape(layout)
    return room_for(s, machine, S=S, reserve=reserve, step_tokens=step_tokens, draft=draft)


def concurrency(
    model: Transformer,
    layout: Layout,
    machine: Machine,
    *,
    S: int,
    reserve: float = 0.0,
    drafting: Drafting = PLAIN,
) -> float:
    """Return how many sequences of S tokens the KV cache of one replica holds, and the part of another one.

    Servers print this number for the longest context. Times S, it is the number of tokens in the cache.
    """
    s, draft = shape(model, layout), drafting.shape(layout)
    B = room_for(s, machine, S=S, reserve=reserve, draft=draft)
    working, logits = _working_by_batch(s)(max(B, 1), max(B, 1))
    room = machine.chip.hbm_bytes * (1 - reserve) - _all_weights(s, draft) - working - logits
    each = _all_caches(s, draft, S)(FAR) / FAR
    return max(room / each, 0.0) if each else float(B)


def room_for(
    s: ServingShape,
    machine: Machine,
    *,
    S: int,
    reserve: float = 0.0,
    step_tokens: int | None = None,
    draft: ServingShape | None = None,
) -> int:
    """Return the largest batch as `largest_batch` does, for known shapes."""
    room = machine.chip.hbm_bytes * (1 - reserve) - _all_weights(s, draft)
    cached, worked = _all_caches(s, draft, S), _working_by_batch(s)

    def held(B: int) -> float:
        working, logits = worked(B, B if step_tokens is None or step_tokens < B else step_tokens)
        return cached(B) + (working + logits)

    if (least := held(1)) > room:
        return 0
    # memory grows with B, in steps around a line: start on the line, and double the step past the last fit
    low = high = 1 + int((room - least) * FAR / held(FAR))
    step = 1
    while held(high) <= room:
        low, high, step = high, high + step, 2 * step
    while low > 1 and held(low) > room:
        low, high, step = max(low - step, 1), low, 2 * step
    return bisect_right(range(high), room, lo=low, key=held) - 1


def weight_bytes(s: ServingShape) -> float:
    """Return the bytes of all weights per chip of a TP group, as if there were a single stage."""
    o = s.layout
    # norms and biases keep the dtype of the activations; they are small compared with the matrices
    layers = (s.projections.stored + s.mlp.stored) * o.weights.bytes + s.other * o.activations.bytes
    layers += s.experts.stored * o.stored("experts").bytes
    return layers + (s.embedding + s.head.stored) * o.stored("embedding").bytes


def _weights(s: ServingShape) -> float:
    """Return the weights of the longest stage with the larger of embedding and unembedding."""
    o = s.layout
    outer = o.stored("embedding").bytes
    ends = (s.embedding + s.head.stored) * outer
    layers = weight_bytes(s) - ends
    # with stages, the embedding is on the first and the unembedding on the last, so no chip has both
    return s.longest * layers + (ends if o.pp == 1 else outer * max(s.embedding, s.head.stored))


def _cache_by_batch(s: ServingShape, S: float) -> Callable[[int], float]:
    """Return the bytes of cache for B sequences on the stage with the most layers, as a function of B."""
    o, most = s.layout, s.longest
    cp, dp, ways = o.cp, o.attention_dp, o.kv_batch
    # a window keeps only its last tokens; `elements` includes replicated heads
    each = sum(kind.elements * min(S, kind.kept) for kind in s.kinds) * o.kv.bytes / o.kv_sequence
    state = s.state * STATE_BYTES  # per sequence, at any length

    def held(B: int) -> float:
        B = -(-B // cp)  # the TP groups that share a prompt divide the sequences of a decode step
        # sequences of a group, and of a part of it; sequences are not divided, so the fullest has the ceiling
        return most * (-(B // -dp // ways) * each + state * B / dp)

    return held


def _all_weights(s: ServingShape, draft: ServingShape | None) -> float:
    """Return the weights of the model, and those of a draft model."""
    return _weights(s) + (_weights(draft) if draft else 0.0)


def _all_caches(s: ServingShape, draft: ServingShape | None, S: float) -> Callable[[int], float]:
    """Return the bytes of the model's cache as a function of B, with those of a draft model."""
    own = _cache_by_batch(s, S)
    if draft is None:
        return own
    drafted = _cache_by_batch(draft, S)
    return lambda B: own(B) + drafted(B)


def _working_by_batch(s: ServingShape) -> Callable[[int, int], tuple[float, float]]:
    """Return a function for the bytes of activations (two of width D, one hidden) and of fp32 logits."""
    m, o = s.model, s.layout
    dp, gates = o.attention_dp, 2 if m.gated else 1  # up and gate exist together
    k, F = (m.experts.k, m.experts.F) if m.experts else (0, 0)
    # elements per token; copies of other groups' tokens arrive for a chip's experts, and leave it again
    copies = 0 if o.wide else 2 * k * m.D / o.ep
    experts = k * F * gates / o.tp + copies
    mlp = m.F * gates / (o.tp if o.wide else o.group)
    heads = (m.N + 2 * m.K) * m.H / o.columns
    cp, vectors, chips = o.cp, 2 * m.D, o.tp * o.cp

    def held(B: int, tokens: int) -> tuple[float, float]:
        own = max(tokens / dp, 1)  # of the fullest group
        seen = tokens if o.wide else own  # a shared MLP gathers the tokens of all groups
        # hidden vectors of a layer are computed one after another, so only the widest counts
        hidden = max(seen * mlp, tokens * experts, own * heads)
        return (vectors * seen + hidden) / cp * o.activations.bytes, B * m.V * FP32.bytes / chips

    return held
