"""How near do predicted steps come to published ones? Their plans, the frozen efficiencies, and the errors.

`calibrated(chip, precision)` is the efficiency to predict with; `scores()` are all usable runs, `total()`
their errors, `held_out()` runs that nothing was fitted to; `band()` the factor to give with a prediction, and
`held_by_band()` how that did; `orders()` are pairs of plans of one source. `efficiencies` says how the table
was made. Chapter: Training.
"""

from scalingbook_lib.evidence.scores import HOLDS, Score, Summary
from scalingbook_lib.evidence.training.compared import Order, orders
from scalingbook_lib.evidence.training.efficiencies import calibrated
from scalingbook_lib.evidence.training.opened import every
from scalingbook_lib.evidence.training.planned import Planned, planned, seconds
from scalingbook_lib.evidence.training.scores import (
    band,
    held_by_band,
    held_out,
    scores,
    source,
    total,
)

__all__ = [
    "HOLDS",
    "Order",
    "Planned",
    "Score",
    "Summary",
    "band",
    "calibrated",
    "every",
    "held_by_band",
    "held_out",
    "orders",
    "planned",
    "scores",
    "seconds",
    "source",
    "total",
]
