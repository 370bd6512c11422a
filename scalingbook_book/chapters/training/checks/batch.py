"""Checks of the exercises on the batch: what a growing batch and packed rows cost and save."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models
from scalingbook_lib.training import pack

_8B = models.find("Llama 3 8B")
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
        title="Steps of a batch ramp",
        answer=_steps,
        difficulty=2,
        hints=(
            "The number of steps in a stage is its number of tokens divided by its batch.",
            "Count the steps of both stages, and the steps of the whole run with the large batch.",
            "The early tokens take several times as many steps as without the ramp, and the others take "
            "the same number.",
        ),
        mistakes=(
            Mistake(
                lambda: _steps() + 1,
                "That is the number of steps divided by the number without a ramp. How many more are there?",
                slip="ratio-for-excess",
            ),
            Mistake(
                lambda: _steps(8, 2),
                "You have swapped the stages. Most tokens are trained with the large batch.",
            ),
            Mistake(
                lambda: 1 - 1 / (_steps() + 1),
                "That is a fraction of the steps with the ramp. Divide by the steps without it.",
                slip="inverted-ratio",
            ),
        ),
        right="Right. These additional steps are small, so the time grows far less.",
    ),
    Check(
        key="training.packed-rows",
        title="Padding after packing",
        answer=lambda: _ROW.empty,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Documents are not divided. How many of them fit into one row?",
            "The rest of the row is padding.",
            "Divide the padding by the length of the row.",
        ),
        mistakes=(
            Mistake(
                lambda: 1 - 1200 / 8192,
                "That is with one document per row. A row has room for more.",
                slip="wrong-count",
            ),
            Mistake(lambda: 1 - _ROW.empty, "That is the fraction that is used.", slip="complement"),
        ),
        right="Right. Shorter documents could fill the gap.",
    ),
    Check(
        key="training.document-mask",
        title="Speedup from a document mask",
        answer=_faster,
        difficulty=2,
        rel_tol=0.01,
        hints=(
            "Under the causal mask, attention takes L T N H/P times the FLOPs of the other matmuls.",
            "With 16 documents of equal length, one pair in 16 remains.",
            "Divide the step time without the mask by the step time with it. Each is 1 plus its attention.",
        ),
        mistakes=(
            Mistake(
                lambda: _faster(triangle=2), "That counts all pairs. The causal mask leaves half of them."
            ),
            Mistake(
                lambda: _faster(heads=_8B.K), "Every query head computes scores, not only every KV head."
            ),
            Mistake(lambda: _faster(left=0.0), "The pairs within each document remain."),
            Mistake(
                lambda: 1 / _LONG.mean_attention,
                "That is for attention alone. The other matmuls take as long as before.",
            ),
        ),
        right="Right. Every row also takes the same amount of work, so no replica has to wait.",
    ),
)
