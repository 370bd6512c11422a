"""What do a growing batch and shared rows cost, and what do they save? The exercises on a batch."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.training import pack

_8B = models.find("LLaMA-3 8B")
_ROW = pack([1200] * 60, 8192)  # documents of one length
_LONG = pack([8192] * 16, 131072)


def _steps(early: float = 2.0, late: float = 8.0) -> float:
    """Of a ramp over those without it, less 1; trillions of tokens at 2^22 and at 2^24."""
    return (early * 4 + late) / (early + late) - 1


def _faster(heads: int = _8B.N, triangle: int = 1, left: float = _LONG.mean_attention) -> float:
    """The step under the causal mask over the step within documents."""
    pairs = triangle * _8B.L * _LONG.row * heads * _8B.H / _8B.params
    return (1 + pairs) / (1 + pairs * left)


BATCH = (
    Check(
        key="training.ramp-steps",
        title="More steps",
        answer=_steps,
        difficulty=2,
        hints=(
            "A stage has as many steps as its tokens over its batch.",
            "Count both stages, and the whole run with the large batch.",
            "The early tokens take several times their steps, the others just theirs.",
        ),
        mistakes=(
            Mistake(
                lambda: _steps() + 1,
                "That is all steps over those without a ramp; how many more are there?",
                slip="ratio-for-excess",
            ),
            Mistake(
                lambda: _steps(8, 2), "The stages are swapped: most tokens are trained with the large batch."
            ),
            Mistake(
                lambda: 1 - 1 / (_steps() + 1),
                "That is of the steps with the ramp. Ask of those without it.",
                slip="inverted-ratio",
            ),
        ),
        right="Right: and they are smaller steps, so the time grows far less.",
    ),
    Check(
        key="training.packed-rows",
        title="What stays empty",
        answer=lambda: _ROW.empty,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Documents stay whole. How many find room in one row?",
            "The rest of the row is padding.",
            "Divide it by the row.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 - 1200 / 8192,
                "That is one document a row. A row has room for more.",
                slip="wrong-count",
            ),
            Mistake(lambda: 1 - _ROW.empty, "That is the share that is used.", slip="complement"),
        ),
        right="Right: with shorter ones among them the gap would be filled.",
    ),
    Check(
        key="training.document-mask",
        title="A mask in a long row",
        answer=_faster,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Attention takes L T N H/P of the products' FLOPs under the causal mask.",
            "Equal documents leave one pair in as many as there are documents.",
            "The step before over the step after: one plus attention, each time.",
        ),
        mistakes=(
            Mistake(
                lambda: _faster(triangle=2), "That counts every pair. The causal mask leaves half of them."
            ),
            Mistake(lambda: _faster(heads=_8B.K), "Every query head has its scores, not only each key head."),
            Mistake(lambda: _faster(left=0.0), "Pairs within the documents stay."),
            Mistake(
                lambda: 1 / _LONG.mean_attention,
                "That is attention alone. The products take as long as before.",
            ),
        ),
        right="Right: and every row has the same work, so that no copy waits.",
    ),
)
