"""Simulated pipeline schedules, and closed forms of the idle time of their stages.

`simulate` gives every task its time, `bubble` the idle time in closed form. Schedules: "gpipe", "1f1b",
"interleaved", "zero-bubble" (ZB-H1, which needs no more memory than 1F1B), "dualpipe", "zb-h2", "zb-v" and
"dualpipe-v". Chapter: Training.

>>> print(bubble("1f1b", 4, 8))  # stages, microbatches
1f1b: idle 9 s of 33 s, 27% of the time (38% over the work)
"""

from scalingbook_lib.steps.pipelines.orders import ORDERS, V_SHAPED, PipelineError, StageTask, weight_copies
from scalingbook_lib.steps.pipelines.play import simulate
from scalingbook_lib.steps.pipelines.run import Bubble, Number, PipelineRun, TaskSpan, bubble

SCHEDULES = tuple(ORDERS)

__all__ = [
    "SCHEDULES",
    "V_SHAPED",
    "Bubble",
    "Number",
    "PipelineError",
    "PipelineRun",
    "StageTask",
    "TaskSpan",
    "bubble",
    "simulate",
    "weight_copies",
]
