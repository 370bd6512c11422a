"""Exercises on optimizers: training state, FLOPs of Muon, and the bytes that its layouts move."""

from scalingbook_book.chapters.lowprecision.case import K2
from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training.optimizers import ADAMW, MUON, layouts, newton_schulz, orthogonalized

_M405 = models.find("Llama 3.1 405B")
_CHIPS, _TOKENS = 512, 16e6
_M, _N, _WAYS = 4096, 16_384, Slice.of(chips.V5E, "4x4")


def _share(params: float = K2.active_params, tokens: float = _TOKENS) -> float:
    return orthogonalized(K2) / (6 * params * tokens)


def _sent(way: int) -> float:
    return layouts(_M, _N, _WAYS)[way].sent_bytes


CHECKS = (
    Check(
        key="lowprecision.state-of-muon",
        title="Training state with Muon",
        answer=lambda: MUON.state(_M405.params).total / _CHIPS,
        unit="B",
        hints=(
            "How many bytes do weight, gradient, master copy and moment take per parameter?",
            "ZeRO-3 shards all of it.",
        ),
        mistakes=(
            Mistake(
                lambda: ADAMW.state(_M405.params).total / _CHIPS,
                "That is for AdamW, which has two moments. Muon has one.",
            ),
            Mistake(float(_CHIPS), "That is the whole state. It is sharded over 512 chips."),
            Mistake(lambda: 8 * _M405.params / _CHIPS, "You left out the moment, which takes four bytes."),
        ),
    ),
    Check(
        key="lowprecision.one-expert",
        title="One expert, five iterations",
        answer=lambda: newton_schulz(2048, 7168),
        unit="FLOPs",
        hints=(
            "An iteration has three matmuls: X with its transpose, A with A, and their combination with X.",
            "A is square, with the shorter side of X.",
        ),
        mistakes=(
            Mistake(0.2, "That is for one iteration. There are five.", slip="one-for-total"),
            Mistake(0.5, "A multiply and an add are two FLOPs.", slip="factor-two-flops"),
            Mistake(
                lambda: newton_schulz(7168, 7168),
                "You used the longer side for A = XXᵀ. It has the shorter one.",
            ),
            Mistake(
                lambda: 20 * 2048**2 * 7168, "You left out the matmul of A with itself.", slip="term-left-out"
            ),
        ),
    ),
    Check(
        key="lowprecision.share-of-step",
        title="Muon's share for a trillion parameters",
        answer=_share,
        difficulty=2,
        hints=(
            "Every expert is orthogonalized, however many tokens were routed to it.",
            "optimizers.orthogonalized counts a model. A step is 6 FLOPs per active parameter and token.",
        ),
        mistakes=(
            Mistake(
                lambda: _share(K2.params),
                "You used all parameters for the step. A token uses only the active ones.",
            ),
            Mistake(
                6.0,
                "You left out the factor of 6: the FLOPs of both passes per active parameter and token.",
            ),
        ),
    ),
    Check(
        key="lowprecision.owner-sends",
        title="Bytes sent with one owner per matrix",
        answer=lambda: _sent(3),
        unit="B",
        difficulty=2,
        hints=(
            "There are sixteen matrices, one for each chip, and two AllToAlls.",
            "In each one, a chip sends 15/16 of what it holds. Divide by sixteen for one matrix.",
        ),
        mistakes=(
            Mistake(lambda: _sent(3) / 2, "You counted one direction. The results have to be sent back."),
            Mistake(lambda: _sent(2), "That is what it takes to gather one matrix on every chip."),
            Mistake(lambda: 16 * _sent(3), "That is for all sixteen matrices. The question asks for one."),
        ),
    ),
    Check(
        key="lowprecision.long-and-thin",
        title="Long and thin matrices",
        answer=lambda: 10.0,
        difficulty=3,
        hints=(
            "An AllReduce moves twice as many bytes as an AllGather of the same array.",
            "Compare five AllReduces of D × D with one AllGather of D × F.",
        ),
        mistakes=(
            Mistake(
                lambda: 5.0, "An AllReduce moves its array twice: it is a ReduceScatter and an AllGather."
            ),
            Mistake(lambda: 2.0, "That is for one iteration. There are five."),
            Mistake(lambda: 0.1, "That is D/F. The question asks for F/D."),
        ),
    ),
)
