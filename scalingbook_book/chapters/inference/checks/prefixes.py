"""Checks of exercises on cached prefixes: the hit rate of a round, and the cost of many descriptors."""

from scalingbook_book.reader.checks.check import Check, Mistake

TOKENS, BLOCK, LAYERS, EACH, NIC = 32_768, 16, 61, 576, 50e9


def _hit_rate(earlier: int = 5, answers: int | None = None) -> float:
    """The share of the prompt after so many rounds that is known, with all answers but the newest."""
    kept = earlier - 1 if answers is None else answers
    return (earlier * 1024 + kept * 256) / ((earlier + 1) * 1024 + earlier * 256)


def _factor(pieces: float) -> float:
    return pieces * 1e-6 / (TOKENS * LAYERS * EACH / NIC)


PREFIXES = (
    Check(
        key="inference.round-hit-rate",
        title="Hit rate of a long conversation",
        answer=_hit_rate,
        difficulty=3,
        hints=(
            "How many tokens has the prompt of the sixth round, and which of them were part of the fifth?",
            "New are the question of this round and the answer of the one before.",
        ),
        mistakes=(
            Mistake(lambda: _hit_rate(answers=5), "The newest answer is not in the cache."),
            Mistake(lambda: _hit_rate(4), "In the sixth round, there are five rounds before it."),
            Mistake(lambda: 1 - _hit_rate(), "That is the share that has to be computed."),
        ),
        right="Right. Without evictions, long conversations are mostly known.",
    ),
    Check(
        key="inference.descriptor-time",
        title="Many small pieces",
        answer=lambda: _factor(TOKENS / BLOCK * LAYERS),
        difficulty=3,
        hints=(
            "How many blocks are there in a layer, and in all layers together?",
            "Compare the time to post all descriptors with the bytes over the bandwidth.",
        ),
        mistakes=(
            Mistake(lambda: _factor(TOKENS / BLOCK), "Each layer has blocks of its own."),
            Mistake(
                lambda: _factor(TOKENS * LAYERS), "A descriptor covers a block of tokens, not one token."
            ),
            Mistake(
                lambda: 1 / _factor(TOKENS / BLOCK * LAYERS),
                "That is the time of the bytes over that of posting.",
            ),
        ),
        right="Right. Larger blocks, or blocks that hold all layers, cost nothing and save most of the time.",
    ),
)
