"""Checks of the exercises on the training step: its state, and the collectives over both mesh axes."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models

_MODEL = models.find("Llama 3.2 3B")
_CHIPS, _LAYERS, _MATRICES = 32, _MODEL.L, 7  # q, k, v, o, gate, up and down
_NUMBERS = 3 * 4  # bytes per parameter: itself and two moments, in fp32


def _gathers(passes: int, tables: int = 1) -> int:
    """AllGathers of weight matrices over X in one step."""
    return passes * _MATRICES * _LAYERS + tables


def _scatters(per_layer: int, ends: int = 2) -> int:
    """ReduceScatters over Y in one step."""
    return per_layer * _LAYERS + ends


TRAIN_STEP = (
    Check(
        key="jax.step-state",
        title="The state of one chip",
        answer=lambda: _NUMBERS * _MODEL.params / _CHIPS,
        unit="B",
        rel_tol=0.02,
        difficulty=1,
        hints=(
            "AdamW keeps two numbers for every parameter.",
            "Which of the two mesh axes shard a weight? Multiply their sizes.",
        ),
        mistakes=(
            Mistake(
                lambda: 4 * _MODEL.params / _CHIPS,
                "Those are the parameters alone. AdamW has two moments, too.",
            ),
            Mistake(
                lambda: _NUMBERS * _MODEL.params / 8,
                "The rules shard weights over Y as well: over heads, MLP columns and the vocabulary.",
            ),
        ),
    ),
    Check(
        key="jax.step-gathers",
        title="AllGathers of weights in one step",
        answer=lambda: _gathers(2),
        unit="AllGathers",
        rel_tol=0,
        difficulty=2,
        hints=(
            "How many matrices does a layer gather, and how often does `jax.checkpoint` run a layer?",
            "The embedding is gathered outside the layers.",
        ),
        mistakes=(
            Mistake(
                lambda: _gathers(1),
                "The backward pass runs each layer once more, so it gathers the layer's weights again.",
            ),
            Mistake(
                lambda: _gathers(2, tables=2),
                "The loss gathers the embedding outside `jax.checkpoint`, and uses it at both ends.",
            ),
            Mistake(lambda: _gathers(2, tables=0), "The embedding has to be gathered, too."),
        ),
    ),
    Check(
        key="jax.step-scatters",
        title="ReduceScatters over Y",
        answer=lambda: _scatters(5),
        unit="ReduceScatters",
        rel_tol=0,
        difficulty=2,
        hints=(
            "Attention and the MLP scatter their results, and the gradient of every AllGather scatters, too.",
            "Which of the two results does the recomputation need, and which one does it not need?",
            "The vocabulary is sharded over Y as well: look at both ends of the model.",
        ),
        mistakes=(
            Mistake(
                lambda: _scatters(4),
                "The recomputed MLP needs the result of attention, which is scattered once more for it.",
            ),
            Mistake(
                lambda: _scatters(6),
                "The backward pass does not need the layer's own result, so the last scatter is not "
                "repeated.",
            ),
            Mistake(lambda: _scatters(5, ends=0), "The lookup and the logits add one each."),
        ),
    ),
)
