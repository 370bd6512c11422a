"""Can a reader say what schedules, pools and stored prefixes cost? Checks of exercises on inference."""

from math import ceil

from scalingbook_lib import inference
from scalingbook_lib.chapters.inference.checks.subjects import LLAMA, V5E
from scalingbook_lib.inference import rules
from scalingbook_lib.models import arithmetic
from scalingbook_lib.reader.checks.check import Check, Mistake
from scalingbook_lib.units import INT8

_TOKEN = arithmetic.kv_cache(LLAMA, 1, INT8).nbytes
_STEP = rules.step(LLAMA.params, V5E, 16, B=64, cache_bytes=8192 * _TOKEN, weights=INT8)
_CRITICAL = inference.critical_batch(LLAMA, V5E, weights=INT8).tokens


def _first_s(chunk: float, each_s: float) -> float:
    return ceil(8192 / chunk) * each_s


def _break_even(share: float = 0.4) -> float:
    return _TOKEN / (2 * LLAMA.params / (16 * V5E.bf16_flops_per_s * share))


SERVERS = (
    Check(
        key="inference.13",
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
            ),
            Mistake(
                lambda: _first_s(2 * int(_CRITICAL) - 64, _STEP.total_s),
                "With int8 weights that are multiplied in bf16, the critical batch is half of it.",
            ),
            Mistake(
                lambda: _first_s(int(_CRITICAL) - 64, _STEP.weights_s), "Each step reads the cache as well."
            ),
        ),
    ),
    Check(
        key="inference.14",
        title="Compute it or load it?",
        answer=_break_even,
        unit="B/s",
        difficulty=2,
        hints=(
            "How long do the sixteen chips take for 2 · P FLOPs?",
            "In that time the keys and values of one token have to arrive.",
        ),
        mistakes=(
            Mistake(lambda: _break_even(1.0), "At 40 % of the peak, not all of it."),
            Mistake(1 / 16, "All sixteen chips compute."),
            Mistake(2.0, "In int8 an element of the cache is one byte, and a multiply-add is two FLOPs."),
        ),
    ),
    Check(
        key="inference.15",
        title="Prompts between the steps",
        answer=lambda: 16e-3 / (1 - 2.5 * 0.12),
        unit="s",
        difficulty=2,
        hints=(
            "Which share of each second is left for decoding?",
            "So many steps does a second have; a sequence gets one token in each.",
        ),
        mistakes=(
            Mistake(1.3 * 0.7, "30 % of the whole time is lost, which is more than 30 % of the steps' time."),
            Mistake(lambda: 0.136, "That is the longest gap, with a prompt in it; asked is the mean."),
            Mistake(0.7 / 0.3, "That is as if only the prompts' share were left for decoding."),
        ),
    ),
    Check(
        key="inference.16",
        title="A pool for each",
        answer=lambda: inference.pools(0.2, 16e-3, B=96, G=1024).ratio,
        difficulty=2,
        hints=(
            "How many requests does one decoding copy end in a second?",
            "Each needs a prompt to be read: how many copies are busy with that?",
        ),
        mistakes=(
            Mistake(
                lambda: 1 / inference.pools(0.2, 16e-3, B=96, G=1024).ratio,
                "The other way round: copies that read prompts for each that decodes.",
            ),
            Mistake(5.0, "That is how many requests a copy ends in a second. How long is each prompt?"),
            Mistake(1 / 96, "A step gives all 96 sequences a token, not one of them."),
        ),
    ),
)
