"""Checks of the exercises on the cost of requests: prompts, prefill and decode workers, and sessions."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import inference, models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT8

_8B, _70B = models.find("Llama 3 8B"), models.find("Llama 3 70B")
_SQUARE = Slice.of(chips.V5E, "4x4")
_SPREAD = inference.Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
_LENGTH = 100_000


def _pools() -> inference.Pools:
    prompt_s = inference.prefill(_70B, _SQUARE, _SPREAD, P=4096).total_s
    step_s = inference.decode(_70B, _SQUARE, _SPREAD, batch=48, S=4096 + 256).total_s
    return inference.pools(prompt_s, step_s, batch=48, G=512)


def _network(mfu: float = 0.5) -> float:
    """Bytes per second at which a token's KV cache is sent while the next token is prefilled."""
    token_s = 2 * _8B.params / (chips.H100.bf16_flops_per_s * mfu)
    return arithmetic.kv_cache(_8B, 1, BF16).nbytes / token_s


def _read(turns: int = 64) -> int:
    """Prompt tokens of a session that is prefilled from the beginning in every turn."""
    return sum(4000 + 1250 + 1500 * turn for turn in range(turns))


def _again_s(scores: bool = True) -> float:
    """Seconds to prefill the whole context on eight H100s at half of their peak."""
    pairs = _LENGTH**2 / 2 * scores
    flops = 2 * _70B.params * _LENGTH + 4 * _70B.L * _70B.N * _70B.H * pairs
    return flops / (8 * chips.H100.bf16_flops_per_s * 0.5)


def _share(weights: bool = True) -> float:
    """Share of the memory for caches (or of all HBM) that the context occupies."""
    room = 8 * chips.H100.hbm_bytes - BF16.bytes * _70B.params * weights
    return arithmetic.kv_cache(_70B, _LENGTH, BF16).nbytes / room


REQUESTS = (
    Check(
        key="inference_llama3.prefill-per-decode",
        title="Prefill servers per decode server",
        answer=lambda: _pools().ratio,
        difficulty=2,
        hints=(
            "How many requests does the decode server complete per second?",
            "Each of them needs a prefill. How many seconds of prefill is that per second?",
        ),
        mistakes=(
            Mistake(lambda: _pools().ratio / 48, "The server decodes 48 sequences at once."),
            Mistake(512.0, "An answer takes 512 steps, not one."),
            Mistake(lambda: 1 / _pools().ratio, "That is the number of decode servers per prefill server."),
        ),
        right="Right. In practice, you need three, because you cannot run a fraction of a server.",
    ),
    Check(
        key="inference_llama3.cache-network",
        title="The network for a KV transfer",
        answer=_network,
        unit="B/s",
        difficulty=2,
        hints=(
            (
                "The prompt length cancels, so take a single token. How long does its prefill take, "
                "and how many bytes of cache does it have?"
            ),
            "It takes 2 · P FLOPs at half of the peak rate, and it has 2 · L · K · H elements of two bytes.",
        ),
        mistakes=(
            Mistake(
                2.0, "The GPU reaches only half of its peak rate, so there is twice as much time to send."
            ),
            Mistake(
                0.5,
                "There are keys and values, and an element takes two bytes: one factor of two is missing.",
            ),
            Mistake(4.0, "Only the eight key-value heads are cached, not the 32 query heads."),
        ),
    ),
    Check(
        key="inference_llama3.agent-session",
        title="Prefix caching in a session of 100,000 tokens",
        answer=lambda: _read() / (4000 + 64 * 1250),
        difficulty=2,
        rel_tol=0.01,
        hints=(
            (
                "Without a cache, a turn processes everything that comes before its answer. Add "
                "this up over the turns."
            ),
            (
                "With a cache, only new tokens are processed. Answers have been in the cache since "
                "they were generated."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _read() / (4000 + 64 * 1500),
                "Answers need no prefill: they are in the cache already.",
            ),
            Mistake(lambda: _read() / (64 * 1250), "The first 4,000 tokens have to be processed once, too."),
            Mistake(lambda: 64.0, "The session starts short and grows with each turn."),
        ),
    ),
    Check(
        key="inference_llama3.keep-or-recompute",
        title="Keep the cache or recompute it?",
        answer=lambda: _again_s() / _share(),
        unit="s",
        difficulty=3,
        hints=(
            (
                "How many seconds of all eight GPUs does it take to recompute the context? "
                "Attention counts here."
            ),
            (
                "What share of the memory for caches does the context occupy? That share of the "
                "eight GPUs is tied up."
            ),
        ),
        mistakes=(
            Mistake(
                lambda: _again_s(scores=False) / _share(),
                "At this length, attention takes nearly as many FLOPs as the weight matmuls.",
            ),
            Mistake(
                lambda: _again_s() / _share(weights=False),
                "The weights are in memory in any case. The caches share the memory that they leave.",
            ),
            Mistake(
                _again_s,
                "That is the time that recomputing takes. Keeping the cache occupies only a share of "
                "the GPUs.",
            ),
        ),
    ),
)
