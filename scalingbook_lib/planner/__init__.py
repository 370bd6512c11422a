"""Which plan is best? Every way to spread a training step, or to serve, over a machine, judged.

`plans` searches; `sensitivity` asks what faster links, memory or arithmetic would change; a `Comparison` sets
two plans side by side, term by term. `training` judges, nothing here costs anything by a formula of its own;
`fast` adds up what `training` says of one token and one parameter, and is held to `training.step`.
`serve` searches the ways to serve: a front of latency against cost. `posttraining` shares chips between
those that write answers and those that train on them.

Chapters: Training LLaMA 3, Serving LLaMA 3, After pretraining.

>>> from scalingbook_lib import models
>>> from scalingbook_lib.machines import Slice, chips
>>> found = plans(models.find("llama-3-8b"), Slice.of(chips.V5E, "4x4"), batch=64, T=4096)
>>> found.spreads, found.legal, found.winner.plan.fsdp
(525, 230, 8)
"""

from scalingbook_lib.planner.compare import Comparison
from scalingbook_lib.planner.front import Front, Option
from scalingbook_lib.planner.loops import Loop, Split, Splits, loop
from scalingbook_lib.planner.posttraining import posttraining
from scalingbook_lib.planner.ranking import Judged, Point, Ranking
from scalingbook_lib.planner.search import plans
from scalingbook_lib.planner.sensitivity import Change, Sensitivity, faster, sensitivity
from scalingbook_lib.planner.serving import serve
from scalingbook_lib.planner.space import TRIED
from scalingbook_lib.planner.tally import Rejected

__all__ = [
    "TRIED",
    "Change",
    "Comparison",
    "Front",
    "Judged",
    "Loop",
    "Option",
    "Point",
    "Ranking",
    "Rejected",
    "Sensitivity",
    "Split",
    "Splits",
    "faster",
    "loop",
    "plans",
    "posttraining",
    "sensitivity",
    "serve",
]
