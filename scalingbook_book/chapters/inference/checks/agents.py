"""Checks of exercises on agent sessions: hit rate, eviction age, interactivity, and bytes of adapters."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, serving

LLAMA = models.find("Llama 3 70B")
FIRST, NEW, TURNS = 15_000, 2_500, 30
GAPS_S = (5.0, 5.0, 5.0, 5.0, 100.0)
TTFT_S, ITL_S, OUTPUT = 2.4, 0.016, 218


def _prompts(turns: int = TURNS) -> list[int]:
    return [FIRST + NEW * i for i in range(turns)]


def _hit_rate(computed: float | None = None) -> float:
    """The fraction of all prompt tokens that earlier turns have computed."""
    prompts = _prompts()
    return 1 - (prompts[-1] if computed is None else computed) / sum(prompts)


def _adapter_bytes(rank: int = 16) -> float:
    """The bytes in bf16 of an adapter of the four attention matrices."""
    m = LLAMA
    query, key = m.N * m.H, m.K * m.H
    return 2 * rank * m.L * (2 * (m.D + query) + 2 * (m.D + key))


def _interactivity(latency_s: float) -> float:
    return OUTPUT / latency_s


AGENTS = (
    Check(
        key="inference.session-hit-rate",
        title="Hit rate of an agent session",
        answer=_hit_rate,
        difficulty=3,
        hints=(
            "How many tokens have the prompts of all turns together?",
            "If nothing is evicted, each token has to be computed once: how many is that?",
        ),
        mistakes=(
            Mistake(lambda: _hit_rate(FIRST), "New tokens of later turns have to be computed, too."),
            Mistake(lambda: 1 - _hit_rate(), "That is the share that has to be computed."),
        ),
        right="Right. Long sessions are mostly known, even though every prompt is sent in full.",
    ),
    Check(
        key="inference.eviction-age",
        title="When is an idle session evicted?",
        answer=lambda: serving.lru_reuse(0.4, GAPS_S).eviction_age_s,
        unit="s",
        difficulty=3,
        hints=(
            "What is the mean gap, and what is 40% of it?",
            "A session occupies the pool for the shorter of its gap and the age that you are looking for.",
        ),
        mistakes=(
            Mistake(lambda: 0.4 * sum(GAPS_S) / 5, "That would be right if all gaps were equally long."),
            Mistake(lambda: sum(GAPS_S) / 5, "That is the mean gap."),
        ),
        right="Right. All short gaps are found, although most of the memory that they would need is missing.",
    ),
    Check(
        key="inference.turn-interactivity",
        title="Interactivity of a turn",
        answer=lambda: _interactivity(TTFT_S + (OUTPUT - 1) * ITL_S),
        unit="tokens/s",
        difficulty=3,
        hints=(
            "How long does the turn take from its start to its last token?",
            "Divide its tokens by that time.",
        ),
        mistakes=(
            Mistake(lambda: 1 / ITL_S, "The time to first token counts as well."),
            Mistake(lambda: _interactivity(TTFT_S), "Add the time of the tokens after the first."),
        ),
        right="Right. With short answers, the time to first token decides.",
    ),
    Check(
        key="inference.adapter-bytes",
        title="Size of a LoRA adapter",
        answer=_adapter_bytes,
        unit="B",
        difficulty=3,
        hints=(
            "How many elements do the two factors of a matrix with D inputs and E outputs have?",
            "Keys and values have only 8 heads of 128 elements.",
        ),
        mistakes=(
            Mistake(
                lambda: 2 * 16 * LLAMA.L * 4 * 2 * LLAMA.D,
                "Keys and values are narrower than queries and outputs.",
            ),
            Mistake(lambda: _adapter_bytes() / LLAMA.L, "That is one layer."),
        ),
        right="Right. That is a thousandth of the weights.",
    ),
)
