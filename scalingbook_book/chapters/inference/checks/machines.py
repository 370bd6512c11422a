"""Can a reader spread a model and its cache over chips, and say what schedules and stored prefixes cost?"""

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
        title="Two halves",
        answer=lambda: _fit(kv_batch=2),
        unit="sequences",
        difficulty=2,
        rel_tol=0,
        hints=(
            "What is left of 16 × 16 GiB beside the weights, and how much of it has each half of the chips?",
            "A sequence lies in one half. How many whole ones fit into a half?",
        ),
        mistakes=(
            Mistake(
                lambda: _fit(kv_sequence=2),
                "So many fit if each is spread over all chips. Here each lies in one half of them.",
                slip="wrong-formula-halves",
            ),
            Mistake(lambda: _fit(kv_batch=2) / 2, "That is one half of the chips.", slip="one-for-total"),
        ),
        right="Right: the room of half a sequence is left in each half, and nobody can use it.",
    ),
    Check(
        key="inference.prefill-ways",
        title="How many ways for a prompt?",
        answer=_prefill_ways,
        unit="ways",
        difficulty=2,
        hints=(
            "When do a gather of the inputs and a scatter of the outputs take as long as the products?",
            "Both axes send at once; without wraparound an end chip takes in over one link of an axis.",
            "An activation is one byte here, and C is the rate of int8.",
        ),
        mistakes=(
            Mistake(
                2.0,
                "Twice too many: no axis wraps, so an end chip has one link of it; and C is that of int8.",
            ),
            Mistake(0.5, "Both axes of the slice carry the traffic."),
            Mistake(
                lambda: _prefill_ways(bf16=True, wrapped=True),
                "Four times too many: no axis wraps here, and the multiplication runs in int8.",
            ),
        ),
    ),
    Check(
        key="inference.experts-on-rows",
        title="Experts over a larger slice",
        answer=lambda: _read_s(128, 8),
        unit="s",
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "How many bytes of the experts has each of the 128 chips?",
            "All other weights are there sixteen times; eight chips share one copy.",
        ),
        mistakes=(
            Mistake(
                lambda: _read_s(128, 128),
                "Attention and embedding are split eight ways only.",
                slip="wrong-count",
            ),
            Mistake(lambda: _read_s(16, 8), "The eight chips of an expert split it."),
            Mistake(2.0, "An int8 weight is one byte.", slip="wrong-dtype-size"),
        ),
    ),
    Check(
        key="inference.tokens-to-compute",
        title="Enough tokens at once",
        answer=_checked,
        unit="tokens",
        difficulty=2,
        rel_tol=0,
        hints=(
            "For one key-value head: 4 T S G H FLOPs; S keys and values of H bytes each, T G queries and "
            "outputs of 2 H bytes each.",
            "The queries and outputs matter little, and keep the answer a little above its round estimate.",
        ),
        mistakes=(
            Mistake(lambda: _checked(G=1), "Eight query heads share a key."),
            Mistake(lambda: _checked(e=2), "In int8 an element of the cache is one byte."),
            Mistake(lambda: _checked(e=0.5), "A multiply and an add, for scores and for values: four FLOPs."),
            Mistake(lambda: _checked() - 1, "Not quite: the last one is needed to get over the ridge."),
        ),
        right="Right: only then does attention compute rather than wait, whatever the batch.",
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
        title="A chunk that costs nothing",
        answer=lambda: _first_s(int(_CRITICAL) - 64, _STEP.total_s),
        unit="s",
        difficulty=2,
        hints=(
            "Up to which number of tokens a step do the weights take longer than the arithmetic?",
            "64 of them are decoded. The rest can be the chunk; how many chunks is the prompt?",
            "Each step is the cache of 64 sequences and one reading of the weights.",
        ),
        mistakes=(
            Mistake(
                lambda: _first_s(int(_CRITICAL), _STEP.total_s),
                "The sequences that decode take 64 of the tokens.",
                slip="term-left-out",
            ),
            Mistake(
                lambda: _first_s(2 * int(_CRITICAL) - 64, _STEP.total_s),
                "With int8 weights that are multiplied in bf16, the critical batch is half of it.",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: _first_s(int(_CRITICAL) - 64, _STEP.weights_s),
                "Each step reads the cache as well.",
                slip="term-left-out",
            ),
        ),
    ),
    Check(
        key="inference.compute-or-load",
        title="Compute it or load it?",
        answer=_break_even,
        unit="B/s",
        difficulty=2,
        hints=(
            "How long do the sixteen chips take for 2 · P FLOPs?",
            "In that time the keys and values of one token have to arrive.",
        ),
        mistakes=(
            Mistake(lambda: _break_even(1.0), "At 40% of the peak, not all of it."),
            Mistake(1 / 16, "All sixteen chips compute."),
            Mistake(2.0, "In int8 an element of the cache is one byte, and a multiply-add is two FLOPs."),
        ),
    ),
    Check(
        key="inference.prefill-pauses",
        title="Prompts between the steps",
        answer=lambda: 16e-3 / (1 - 2.5 * 0.12),
        unit="s",
        difficulty=2,
        hints=(
            "Which share of each second is left for decoding?",
            "So many steps does a second have; a sequence gets one token in each.",
        ),
        mistakes=(
            Mistake(1.3 * 0.7, "30% of the whole time is lost, which is more than 30% of the steps' time."),
            Mistake(lambda: 0.136, "That is the longest gap, with a prompt in it; asked is the mean."),
            Mistake(0.7 / 0.3, "That is as if only the prompts' share were left for decoding."),
        ),
    ),
    Check(
        key="inference.prefill-copies",
        title="A pool for each",
        answer=lambda: inference.pools(0.2, 16e-3, batch=96, G=1024).ratio,
        difficulty=2,
        hints=(
            "How many requests does one decoding copy end in a second?",
            "Each needs a prompt to be read: how many copies are busy with that?",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / inference.pools(0.2, 16e-3, batch=96, G=1024).ratio,
                "The other way round: copies that read prompts for each that decodes.",
            ),
            Mistake(5.0, "That is how many requests a copy ends in a second. How long is each prompt?"),
            Mistake(1 / 96, "A step gives all 96 sequences a token, not one of them."),
        ),
    ),
)
