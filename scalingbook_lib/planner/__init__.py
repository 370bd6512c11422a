"""Searches for the best plan of a training step and for the best ways to serve.

`plans` searches all legal plans. `sensitivity` searches again with faster links, memory or compute. A
`Comparison` compares two plans term by term. `serve` returns the Pareto front of latency and cost over all
ways to serve. `posttraining` divides the chips of reinforcement learning between rollouts and training, and
`rl_memory` adds up the memory of its models. All times come from `training` and `inference`; nothing here has
a formula of its own, and a search prunes with lower bounds that are computed by the same functions.

Chapters: Training Llama 3; Serving Llama 3; RL post-training systems.

>>> from scalingbook_lib import models
>>> from scalingbook_lib.machines import Slice, chips
>>> found = plans(models.find("llama-3-8b"), Slice.of(chips.V5E, "4x4"), batch=64, T=4096)
>>> found.spreads, found.legal, found.winner.plan.fsdp
(525, 230, 8)
"""

from scalingbook_lib.planner.compare import Comparison
from scalingbook_lib.planner.front import Front, Option
from scalingbook_lib.planner.loops import GRPO, GRPO_WITHOUT_KL, PPO, Algorithm, Loop, Split, Splits, loop
from scalingbook_lib.planner.posttraining import posttraining
from scalingbook_lib.planner.ranking import Objective, Point, Ranked, Ranking, SpreadObjective, step_time
from scalingbook_lib.planner.rejections import Rejected
from scalingbook_lib.planner.rl_memory import RLMemory, rl_memory
from scalingbook_lib.planner.search import plans
from scalingbook_lib.planner.sensitivity import Change, Sensitivity, faster, sensitivity
from scalingbook_lib.planner.serving import serve
from scalingbook_lib.planner.space import CANDIDATES

__all__ = [
    "CANDIDATES",
    "GRPO",
    "GRPO_WITHOUT_KL",
    "PPO",
    "Algorithm",
    "Change",
    "Comparison",
    "Front",
    "Loop",
    "Objective",
    "Option",
    "Point",
    "RLMemory",
    "Ranked",
    "Ranking",
    "Rejected",
    "Sensitivity",
    "Split",
    "Splits",
    "SpreadObjective",
    "faster",
    "loop",
    "plans",
    "posttraining",
    "rl_memory",
    "sensitivity",
    "serve",
    "step_time",
]
