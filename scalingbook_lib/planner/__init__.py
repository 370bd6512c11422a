"""Which plan is best? Every way to spread a training step over a machine, judged.

`plans` searches; `sensitivity` asks what faster links, memory or arithmetic would change; `compare` sets two
plans side by side, term by term. `training` judges, nothing here costs anything by a formula of its own
but `quick`, which is held to `training.step`. Chapter: Training LLaMA 3.
"""

from scalingbook_lib.planner.compare import Comparison, compare
from scalingbook_lib.planner.ranking import Judged, Point, Ranking
from scalingbook_lib.planner.search import plans
from scalingbook_lib.planner.sensitivity import Change, Sensitivity, faster, sensitivity
from scalingbook_lib.planner.space import TRIED
from scalingbook_lib.planner.tally import Rejected

__all__ = [
    "TRIED",
    "Change",
    "Comparison",
    "Judged",
    "Point",
    "Ranking",
    "Rejected",
    "Sensitivity",
    "compare",
    "faster",
    "plans",
    "sensitivity",
]
