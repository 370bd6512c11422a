"""Checks of exercises on inference: sharding, intensity, chunked prefill, prefixes and disaggregation."""

from dataclasses import replace
from math import ceil

from scalingbook_book.chapters.inference.checks.sizes import LLAMA, MODEL, SPARSE, V5E
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, rules
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines.slices import Slice
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT8

_SIXTEEN = Slice.of(V5E, "4x4")
_EXPERTS = SPARSE.L * SPARSE.experts.E * 3 * SPARSE.D * SPARSE.F if SPARSE.experts else 0


def _fit(kv_batch: int = 1, kv_sequence: int = 1) -> float:
    types = Layout(tp=16, weights=INT8, kv=INT8, compute=INT8)
    layout = replace(types, kv_batch=kv_batch, kv_sequence=kv_sequence)
    return inference.largest_batch(MODEL, layout, _SIXTEEN, S=131_072)


def _prefill_ways(axes: int = 2, wrapped: bool = False, bf16: bool = False) -> float:
    kind = BF16 if bf16 else INT8
    return rules.tensor_parallel_degree(
        MODEL.F, V5E, axes=axes, wrapped=wrapped, activations=INT8, dtype=kind
    )


def _read_s(experts: float, rest: float) -> float:
    elements = _EXPERTS / experts + (SPARSE.params - _EXPERTS) / rest
    return elements * INT8.bytes / V5E.hbm_bytes_per_s


def _checked(G: int = 8, e: float = 1.0, S: int = 8192) -> float:
    """T S G · 4 / (2 e S + 4 T G) reaches the ridge R: T = e S R / (2 G (S - R))."""
    R = rules.ridge(V5E)
    return ceil(e * S * R / (2 * G * (S - R)))


MACHINES = (
    Check(
        key="inference.sequences-that-fit",
        title="A KV cache sharded by sequences",
        answer=lambda: _fit(kv_batch=2),
        unit="sequences",
        difficulty=2,
        rel_tol=0,
        hints=(
            "How much of the 16 × 16 GiB do the weights leave free, and "
            "how much of that does each half have?",
            "Each sequence is in one half. How many whole sequences fit into a half?",
        ),
        mistakes=(
            Mistake(
                lambda: _fit(kv_sequence=2),
                "That many fit if each sequence is sharded over all chips. Here each is in one half of them.",
                slip="wrong-formula-halves",
            ),
            Mistake(lambda: _fit(kv_batch=2) / 2, "That is for one half of the chips.", slip="one-for-total"),
        ),
        right="Right: each half has enough memory left for most of another sequence, but not for a whole "
        "one.",
    ),
    Check(
        key="inference.prefill-ways",
        title="Tensor-parallel degree for a prefill",
        answer=_prefill_ways,
        unit="",
        difficulty=2,
        hints=(
            "When do the AllGather of the inputs and the ReduceScatter of "
            "the outputs take as long as the matmuls?",
            "Both axes are used at once. Without wraparound, a chip at "
            "the end of an axis has one link there.",
            "An activation takes one byte here, and C is the int8 rate.",
        ),
        mistakes=(
            Mistake(
                2.0,
                "This is twice the answer: no axis wraps, so a chip at the end has one link per axis. "
                "Also, C is the int8 rate.",
            ),
            Mistake(0.5, "This is half of the answer: both axes of the slice carry the traffic."),
            Mistake(
                lambda: _prefill_ways(bf16=True, wrapped=True),
                "This is four times the answer: no axis wraps here, and the matmuls run in int8.",
            ),
        ),
    ),
    Check(
        key="inference.experts-on-rows",
        title="Expert parallelism on 128 chips",
        answer=lambda: _read_s(128, 8),
        unit="s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bytes of the experts does each of the 128 chips hold?",
            "All other weights are replicated sixteen times; eight chips share one replica.",
        ),
        mistakes=(
            Mistake(
                lambda: _read_s(128, 128),
                "Attention and the embedding are sharded only eight ways.",
                slip="wrong-count",
            ),
            Mistake(lambda: _read_s(16, 8), "Each expert is sharded over eight chips."),
            Mistake(2.0, "An int8 weight takes one byte.", slip="wrong-dtype-size"),
        ),
    ),
    Check(
        key="inference.tokens-to-compute",
        title="Tokens per step that make attention compute-bound",
        answer=_checked,
        unit="tokens",
        difficulty=2,
        rel_tol=0,
        hints=(
            "Per KV head there are 4 T S G H FLOPs. The bytes are S keys and values of H bytes each, and T G "
            "queries and outputs of 2 H bytes each.",
            "Queries and outputs take few bytes, but they raise the answer "
            "a little above the simple estimate.",
        ),
        mistakes=(
            Mistake(lambda: _checked(G=1), "Eight query heads share a key, so each key is used eight times."),
            Mistake(lambda: _checked(e=2), "In int8, an element of the cache takes one byte."),
            Mistake(
                lambda: _checked(e=0.5),
                "A multiply and an add, for the scores and for the values, are four FLOPs.",
            ),
            Mistake(lambda: _checked() - 1, "Almost: one more token is needed to reach the ridge point."),
        ),
        right="Right: this is the number per sequence, and the batch size does not change it.",
    ),
)


_TOKEN = arithmetic.kv_cache(LLAMA, 1, INT8).nbytes
_STEP = rules.decode_step(LLAMA.params, V5E, 16, batch=64, cache_bytes=8192 * _TOKEN, weights=INT8)
_CRITICAL = rules.critical_batch(V5E, weights=INT8).tokens


def _first_s(chunk: float, each_s: float) -> float:
    return ceil(8192 / chunk) * each_s


def _break_even(share: float = 0.4) -> float:
    return _TOKEN / (2 * LLAMA.params / (16 * V5E.bf16_flops_per_s * share))


SERVERS = (
    Check(
        key="inference.free-chunk",
        title="Chunked prefill: the free chunk",
        answer=lambda: _first_s(int(_CRITICAL) - 64, _STEP.total_s),
        unit="s",
        difficulty=2,
        hints=(
            "Up to how many tokens per step does reading the weights take longer than computing?",
            "The 64 sequences in decode use 64 of them. The rest is the chunk. How many chunks does the "
            "prompt have?",
            "Each step reads the caches of 64 sequences and the weights once.",
        ),
        mistakes=(
            Mistake(
                lambda: _first_s(int(_CRITICAL), _STEP.total_s),
                "The sequences in decode take 64 of the tokens.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _first_s(2 * int(_CRITICAL) - 64, _STEP.total_s),
                "With int8 weights that are multiplied in bf16, the critical "
                "batch size is only half of that.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: _first_s(int(_CRITICAL) - 64, _STEP.weights_s),
                "Each step also reads the cache.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="inference.compute-or-load",
        title="Recompute a prefix or load it?",
        answer=_break_even,
        unit="B/s",
        difficulty=2,
        hints=(
            "How long do the sixteen chips take for 2P FLOPs?",
            "The keys and values of one token have to arrive in that time.",
        ),
        mistakes=(
            Mistake(lambda: _break_even(1.0), "The chips reach 40% of the peak, not all of it."),
            Mistake(1 / 16, "All sixteen chips compute, not one."),
            Mistake(2.0, "In int8, an element of the cache takes one byte, and a multiply-add is two FLOPs."),
        ),
    ),
    Check(
        key="inference.prefill-pauses",
        title="Inter-token latency with interleaved prefills",
        answer=lambda: 16e-3 / (1 - 2.5 * 0.12),
        unit="s",
        difficulty=2,
        hints=(
            "What share of each second is left for decode?",
            "Divide it by the step time to get the steps per second. A sequence gets one token per step.",
        ),
        mistakes=(
            Mistake(
                1.3 * 0.7, "Prefills take 30% of the total time, not 30% of the time spent on decode steps."
            ),
            Mistake(
                lambda: 0.136,
                "That is the longest gap, with one prefill in it. The question is about the mean.",
            ),
            Mistake(
                0.7 / 0.3,
                "That is the result if decode ran for only 30% of the time, which is what the prefills take.",
            ),
        ),
    ),
    Check(
        key="inference.prefill-copies",
        title="Prefill and decode pools",
        answer=lambda: inference.pools(0.2, 16e-3, batch=96, G=1024).ratio,
        difficulty=2,
        hints=(
            "How many requests does one decode replica complete per second?",
            "Each of them needs a prefill: how many replicas are busy with that?",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / inference.pools(0.2, 16e-3, batch=96, G=1024).ratio,
                "This is the inverse. The question asks for prefill replicas per decode replica.",
            ),
            Mistake(
                5.0,
                "That is how many requests a decode replica completes per "
                "second. How long does each prefill take?",
            ),
            Mistake(1 / 96, "A step gives a token to each of the 96 sequences, not to one of them."),
        ),
    ),
)
