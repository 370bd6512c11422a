"""Can a reader keep a run going? Rates, intervals, restarts, spares."""

from math import ceil, exp, sqrt

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_lib import models, rules
from scalingbook_lib.training import reliability

_M70 = models.find("LLaMA-3 70B")
_YEARS_S = 4 * 365.25 * 86400  # of one chip between two stops
_STATE = 14 * _M70.params
_BETWEEN = 1800.0
_LADDER = "halve the restart"
_PER_DAY, _REPAIR = 12.0, 1.5


def _interval(bytes_per_param: float = 14, store: float = 25e9) -> float:
    return rules.goodput(bytes_per_param * _M70.params / store, 6 * 3600, 0).best_s


CHECKS = (
    Check(
        key="posttraining.stops-a-day",
        title="Stops a day",
        answer=lambda: 32_768 * 86_400 / _YEARS_S,
        hints=("Rates add.", "A year has 365.25 days."),
        mistakes=(
            Mistake(4.0, "A chip stops once in four years, not once a year."),
            Mistake(1 / 32_768, "That is one chip; any of them stops the run."),
            Mistake(lambda: _YEARS_S / 32_768 / 3600, "Those are the hours between two stops."),
        ),
    ),
    Check(
        key="posttraining.save-interval",
        title="From the store to the interval",
        answer=_interval,
        unit="s",
        difficulty=2,
        hints=(
            "How long does one checkpoint take?",
            "The root of twice that time, times that between stops.",
        ),
        mistakes=(
            Mistake(1 / sqrt(2), "There is a factor of two under the root.", slip="factor-two"),
            Mistake(lambda: _STATE / 25e9, "That is the time of one checkpoint.", slip="wrong-quantity"),
            Mistake(
                lambda: _interval(2), "A checkpoint holds the optimizer's state, too.", slip="term-left-out"
            ),
        ),
    ),
    Check(
        key="posttraining.restarts-leave",
        title="What restarts leave",
        answer=lambda: reliability.restarts_leave(_BETWEEN, 900),
        difficulty=2,
        hints=(
            "A restart can be stopped as well.",
            "What is the chance of a quarter of an hour without a stop?",
        ),
        mistakes=(
            Mistake(lambda: 1 - 900 / _BETWEEN, "That is the first order: no stop while restarting."),
            Mistake(lambda: 1 - exp(-900 / _BETWEEN), "That share is lost; the question is what counts."),
            Mistake(lambda: 1 / (1 + 900 / _BETWEEN), "That counts one restart a stop; restarts stop, too."),
        ),
    ),
    Check(
        key="posttraining.better-half",
        title="Which half",
        answer=lambda: _LADDER,
        choices=(_LADDER, "halve the save", "save half as often"),
        difficulty=2,
        hints=(
            "Work out the share that counts in all three cases.",
            "reliability.exact takes the save, the time between stops, the restart; at will, the interval.",
        ),
        mistakes=(
            Mistake("halve the save", "Saving costs little already: compare both shares."),
            Mistake("save half as often", "The interval is the best one; any other counts less."),
        ),
    ),
    Check(
        key="posttraining.spares",
        title="Spare machines",
        answer=lambda: float(reliability.spares(_PER_DAY, _REPAIR).spares),
        rel_tol=1e-9,
        difficulty=2,
        hints=("How many are out on average?", "Add Poisson chances until they pass 99%."),
        mistakes=(
            Mistake(
                lambda: _PER_DAY * _REPAIR,
                "So many are out on average: half of the time there are more.",
            ),
            Mistake(
                lambda: float(reliability.spares(_PER_DAY, _REPAIR, 0.9).spares),
                "That is enough for 90% of the time.",
            ),
            Mistake(lambda: float(ceil(2 * _PER_DAY * _REPAIR)), "Twice the mean is more than is needed."),
        ),
    ),
)
