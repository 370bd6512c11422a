"""Exercises on fault tolerance: failure rates, checkpoint intervals, restarts and spares."""

from math import ceil, exp, sqrt

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.training import reliability

_M70 = models.find("Llama 3 70B")
_YEARS_S = 4 * 365.25 * 86400  # between two failures of one chip
_STATE = 14 * _M70.params
_BETWEEN = 1800.0
_LADDER = "halve the restart"
_PER_DAY, _REPAIR = 12.0, 1.5


def _interval(bytes_per_param: float = 14, store: float = 25e9) -> float:
    return rules.goodput(bytes_per_param * _M70.params / store, 6 * 3600, 0).best_s


CHECKS = (
    Check(
        key="posttraining.stops-a-day",
        title="Failures per day",
        answer=lambda: 32_768 * 86_400 / _YEARS_S,
        hints=("The failure rates of independent chips add up.", "A year has 365.25 days."),
        mistakes=(
            Mistake(4.0, "A chip fails once in four years, not once a year."),
            Mistake(1 / 32_768, "That is the rate of one chip, but any of them stops the run."),
            Mistake(lambda: _YEARS_S / 32_768 / 3600, "That is the number of hours between two failures."),
        ),
    ),
    Check(
        key="posttraining.save-interval",
        title="Checkpoint interval",
        answer=_interval,
        unit="s",
        difficulty=2,
        hints=(
            "How long does one checkpoint take?",
            "Multiply it by the MTBF and by two, and take the square root.",
        ),
        mistakes=(
            Mistake(1 / sqrt(2), "There is a factor of two under the square root.", slip="factor-two"),
            Mistake(lambda: _STATE / 25e9, "That is the time to save one checkpoint.", slip="wrong-quantity"),
            Mistake(
                lambda: _interval(2), "A checkpoint also contains the optimizer state.", slip="term-left-out"
            ),
        ),
    ),
    Check(
        key="posttraining.restarts-leave",
        title="Goodput limited by restarts",
        answer=lambda: reliability.restart_bound(_BETWEEN, 900),
        difficulty=2,
        hints=(
            "A restart can fail as well.",
            "What is the probability that there is no failure for a quarter of an hour?",
        ),
        mistakes=(
            Mistake(
                lambda: 1 - 900 / _BETWEEN,
                "That is the first-order approximation, in which restarts never fail.",
            ),
            Mistake(
                lambda: 1 - exp(-900 / _BETWEEN),
                "That is the fraction of the time that is lost. What is the goodput?",
            ),
            Mistake(
                lambda: 1 / (1 + 900 / _BETWEEN),
                "That counts one restart per failure, but restarts can fail too.",
            ),
        ),
    ),
    Check(
        key="posttraining.better-half",
        title="Faster restarts or faster checkpoints?",
        answer=lambda: _LADDER,
        choices=(_LADDER, "halve the save", "save half as often"),
        difficulty=2,
        hints=(
            "Compute the goodput in all three cases.",
            "reliability.exact takes save time, MTBF and restart time and, optionally, the interval.",
        ),
        mistakes=(
            Mistake("halve the save", "Saving already costs little. Compare the goodput in both cases."),
            Mistake(
                "save half as often", "The interval is already the best one, so any other lowers the goodput."
            ),
        ),
    ),
    Check(
        key="posttraining.spares",
        title="Hot spares",
        answer=lambda: float(reliability.spares(_PER_DAY, _REPAIR).spares),
        rel_tol=1e-9,
        difficulty=2,
        hints=(
            "How many machines are out on average?",
            "Add up Poisson probabilities until the sum exceeds 99%.",
        ),
        mistakes=(
            Mistake(
                lambda: _PER_DAY * _REPAIR,
                "That many are out on average, so for about half of the time, there are more.",
            ),
            Mistake(
                lambda: float(reliability.spares(_PER_DAY, _REPAIR, 0.9).spares),
                "That is enough for 90% of the time.",
            ),
            Mistake(lambda: float(ceil(2 * _PER_DAY * _REPAIR)), "Twice the mean is more than you need."),
        ),
    ),
)
