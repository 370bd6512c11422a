"""Memory, collectives and time of a training step under a parallelism plan; days and cost of a run.

A `Plan` is the set of parallelism degrees and policies. `memory`, `traffic`, `step` and `feasible` evaluate
it for a model, a machine (a `Slice`, several pods of it, or a `Cluster`) and a batch. `run` and `run_at`
return the days and the cost of a whole run. To evaluate many plans of one case, use
`evaluate(TrainingCase(...), plan)`. `effective_width` is the F with which a real layer enters the closed
forms of `scalingbook_lib.rules`. Chapter: Training.

>>> from scalingbook_lib import models
>>> from scalingbook_lib.machines import Slice, chips
>>> pod = Slice.of(chips.V5P, "16x16x16")
>>> one = step(models.find("llama-3-70b"), pod, Plan(fsdp=512, tp=8), batch=1024, T=4096)
>>> one.bottleneck, round(one.mfu, 2)
('compute', 0.49)
"""

from scalingbook_lib.training.case import TrainingCase
from scalingbook_lib.training.efficiency import PEAK, TrainingEfficiency
from scalingbook_lib.training.links import TrainingCollective
from scalingbook_lib.training.memory import TrainingMemory, memory, states
from scalingbook_lib.training.packing import Packing, pack
from scalingbook_lib.training.plan import Plan, PlanError
from scalingbook_lib.training.run import PlannedRun, run, run_at
from scalingbook_lib.training.step import PlanEvaluation, TrainingStep, evaluate, feasible, step, traffic
from scalingbook_lib.training.work import effective_width

__all__ = [
    "PEAK",
    "Packing",
    "Plan",
    "PlanError",
    "PlanEvaluation",
    "PlannedRun",
    "TrainingCase",
    "TrainingCollective",
    "TrainingEfficiency",
    "TrainingMemory",
    "TrainingStep",
    "effective_width",
    "evaluate",
    "feasible",
    "memory",
    "pack",
    "run",
    "run_at",
    "states",
    "step",
    "traffic",
]
