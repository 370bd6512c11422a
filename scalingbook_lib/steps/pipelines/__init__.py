"""How long do the stages of a pipeline wait for each other? Schedules played out, and their formulas.

`simulate` gives every task its time, `bubble` the idle time in closed form. Schedules: "gpipe", "1f1b",
"interleaved", "zero-bubble" (ZB-H1: no more memory than 1F1B) and "dualpipe". Chapter: Training.
"""

from scalingbook_lib.steps.pipelines.bubbles import Bubble, bubble
from scalingbook_lib.steps.pipelines.orders import ORDERS, PipelineError, Task
from scalingbook_lib.steps.pipelines.play import simulate
from scalingbook_lib.steps.pipelines.run import Number, Run, Span

SCHEDULES = tuple(ORDERS)

__all__ = [
    "SCHEDULES",
    "Bubble",
    "Number",
    "PipelineError",
    "Run",
    "Span",
    "Task",
    "bubble",
    "simulate",
]
