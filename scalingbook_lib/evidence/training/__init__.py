"""How near do predicted steps come to published ones? Their plans, the frozen efficiencies, and the errors.

`calibrated(chip, precision)` is the efficiency to predict with; `scores()` are all usable runs, `by_family()`
and `total()` their errors, `kept()` runs that nothing was fitted to; `band()` the factor to give with a
prediction, and `held_by_band()` how that did; `ratios`, `orders` and `held` compare runs of a series, plans
and memory. `fit` says how the table was made. Chapter: Training.
"""

from scalingbook_lib.evidence.training.calibrated import DATE
from scalingbook_lib.evidence.training.compared import Held, Order, held, kendall, orders
from scalingbook_lib.evidence.training.planned import Planned, planned
from scalingbook_lib.evidence.training.predicted import seconds
from scalingbook_lib.evidence.training.scores import (
    Score,
    Summary,
    band,
    by_family,
    held_by_band,
    kept,
    scores,
    source,
    summary,
    total,
    without,
)
from scalingbook_lib.evidence.training.series import Ratio, crowded, per_doubling, ratios
from scalingbook_lib.evidence.training.table import TABLE, calibrated

__all__ = [
    "DATE",
    "TABLE",
    "Held",
    "Order",
    "Planned",
    "Ratio",
    "Score",
    "Summary",
    "band",
    "by_family",
    "calibrated",
    "crowded",
    "held",
    "held_by_band",
    "kendall",
    "kept",
    "orders",
    "per_doubling",
    "planned",
    "ratios",
    "scores",
    "seconds",
    "source",
    "summary",
    "total",
    "without",
]
