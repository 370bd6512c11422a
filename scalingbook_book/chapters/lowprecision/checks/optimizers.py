"""Can a reader count an optimizer? Its bytes, its FLOPs beside a step's, and what its layouts move."""

from scalingbook_book.chapters.lowprecision.case import K2
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training.optimizers import ADAMW, MUON, layouts, newton_schulz, orthogonalized

_M405 = models.find("LLaMA-3 405B")
_CHIPS, _TOKENS = 512, 16e6
_M, _N, _WAYS = 4096, 16_384, Slice.of(chips.V5E, "4x4")


def _share(params: float = K2.active_params, tokens: float = _TOKENS) -> float:
    return orthogonalized(K2) / (6 * params * tokens)


def _sent(way: int) -> float:
    return layouts(_M, _N, _WAYS)[way].sent_bytes


CHECKS = (
    Check(
        key="lowprecision.state-of-muon",
        title="The state of Muon",
        answer=lambda: MUON.state(_M405.params).total / _CHIPS,
        unit="B",
        hints=(
            "Weights, gradient, master copy: which types? And how many moments?",
            "ZeRO-3 shares all of it.",
        ),
        mistakes=(
            Mistake(lambda: ADAMW.state(_M405.params).total / _CHIPS, "AdamW has two moments, Muon one."),
            Mistake(float(_CHIPS), "All chips share it."),
            Mistake(lambda: 8 * _M405.params / _CHIPS, "It keeps a moment, of four bytes."),
        ),
    ),
    Check(
        key="lowprecision.one-expert",
        title="One expert, five iterations",
        answer=lambda: newton_schulz(2048, 7168),
        unit="FLOPs",
        hints=("Three products: X with itself, A with A, and the sum with X.", "m is the shorter side."),
        mistakes=(
            Mistake(0.2, "That is one iteration.", slip="one-for-total"),
            Mistake(0.5, "A multiply and an add are two FLOPs.", slip="factor-two-flops"),
            Mistake(lambda: newton_schulz(7168, 7168), "The Gram matrix is that of the shorter side."),
            Mistake(
                lambda: 20 * 2048**2 * 7168, "The product of A with itself is missing.", slip="term-left-out"
            ),
        ),
    ),
    Check(
        key="lowprecision.share-of-step",
        title="A trillion parameters at once",
        answer=_share,
        difficulty=2,
        hints=(
            "Every expert is orthogonalized, whoever visited it.",
            "optimizers.orthogonalized counts a model; a step, six FLOPs an active parameter and token.",
        ),
        mistakes=(
            Mistake(lambda: _share(K2.params), "A token meets only the active parameters."),
            Mistake(6.0, "A token takes six FLOPs for each active parameter: forward and backward."),
        ),
    ),
    Check(
        key="lowprecision.owner-sends",
        title="What an owner sends",
        answer=lambda: _sent(3),
        unit="B",
        difficulty=2,
        hints=(
            "Sixteen such matrices, one to a chip: an AllToAll there, and one back.",
            "Each chip sends all but its own part of what it holds, once each way: share that by sixteen.",
        ),
        mistakes=(
            Mistake(lambda: _sent(3) / 2, "The result has to go back."),
            Mistake(lambda: _sent(2), "That is to gather one matrix on every chip."),
            Mistake(lambda: 16 * _sent(3), "That is for sixteen matrices."),
        ),
    ),
    Check(
        key="lowprecision.long-and-thin",
        title="Long and thin",
        answer=lambda: 10.0,
        difficulty=3,
        hints=(
            "An AllReduce moves twice what a gather of the same array does.",
            "Five AllReduces of m x m against one gather of m x n.",
        ),
        mistakes=(
            Mistake(lambda: 5.0, "An AllReduce is a scatter and a gather."),
            Mistake(lambda: 2.0, "There are five iterations."),
            Mistake(lambda: 0.1, "That is m over n."),
        ),
    ),
)
