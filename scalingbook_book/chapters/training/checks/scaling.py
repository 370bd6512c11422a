"""Checks of the exercises on scaling laws: model size, serving, and the noise of gradients."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib.rules.scaling_laws import CHINCHILLA, CHINCHILLA_REFIT, noise_scale

_BUDGET = 1e25
_SMALL, _LARGE = (32, 5.0), (2048, 1.2)  # examples, mean squared norm of their gradient


def _pays_off(saved: float = 0.5) -> float:
    """Served tokens per training token of the optimum after which half the size has fewer FLOPs."""
    more = CHINCHILLA_REFIT.same_loss(_BUDGET, 0.5).flops / _BUDGET - 1
    return 6 * more / (2 * saved)


def _noise() -> float:
    return noise_scale(*_SMALL, *_LARGE).examples


SCALING = (
    Check(
        key="training.compute-optimal",
        title="Compute-optimal size for a budget",
        answer=lambda: CHINCHILLA_REFIT.optimum(_BUDGET).params,
        difficulty=2,
        rel_tol=0.02,
        hints=(
            "The optimal size is a power of the budget. What is the exponent?",
            "The exponent is β/(α + β), and what is raised to it is a sixth of the budget.",
            "In front of it stands α A_P over β A_tok, to the power of 1/(α + β).",
        ),
        mistakes=(
            Mistake(
                lambda: CHINCHILLA.optimum(_BUDGET).params,
                "That is by the constants that the first paper printed. Use the corrected fit.",
            ),
            Mistake(
                lambda: CHINCHILLA_REFIT.optimum(6 * _BUDGET).params,
                "That forgets that a parameter and a token take six FLOPs.",
                slip="wrong-count",
            ),
            Mistake(
                lambda: CHINCHILLA_REFIT.optimum(_BUDGET).tokens,
                "That is the number of training tokens. How many parameters are there?",
            ),
        ),
        right="Right. It would see about 17 tokens for each parameter.",
    ),
    Check(
        key="training.half-size",
        title="Tokens served until half the size pays off",
        answer=_pays_off,
        difficulty=2,
        rel_tol=0.02,
        hints=(
            "How many more FLOPs does the training of the small model take?",
            "Each served token takes two FLOPs per parameter. How many does the small model save?",
            "Set the additional training FLOPs equal to the FLOPs saved, and divide by the training tokens.",
        ),
        mistakes=(
            Mistake(
                lambda: _pays_off(1.0),
                "The small model saves only half of the serving FLOPs. It still has the other half.",
            ),
            Mistake(
                lambda: _pays_off() / 3,
                "A training token takes six FLOPs per parameter, and a served one takes two.",
            ),
            Mistake(
                lambda: 6 * CHINCHILLA_REFIT.same_loss(_BUDGET, 0.5).flops / _BUDGET,
                "Only the additional training has to be earned back, and not all of it.",
            ),
        ),
        right="Right. By this fit, every popular model should be smaller than the compute-optimal one.",
    ),
    Check(
        key="training.noise-scale",
        title="Noise scale from two gradients",
        answer=_noise,
        difficulty=2,
        rel_tol=0.02,
        hints=(
            "A gradient of b examples has a mean squared norm of |G|² + tr Σ/b.",
            "Two equations have two unknowns. Subtract them to eliminate |G|².",
            "The noise scale is tr Σ over |G|².",
        ),
        mistakes=(
            Mistake(
                lambda: noise_scale(*_SMALL, *_LARGE).variance,
                "That is the variance alone. Divide it by the squared norm of the true gradient.",
            ),
            Mistake(
                lambda: noise_scale(*_SMALL, *_LARGE).variance / _LARGE[1],
                "The large batch has some noise, too. Take its part off before you divide.",
            ),
            Mistake(
                lambda: 1 / _noise(),
                "That is upside down. Below the noise scale, noise is larger than the gradient.",
                slip="inverted-ratio",
            ),
        ),
        right="Right. With 2,048 examples, the batch is far above the noise scale.",
    ),
)
