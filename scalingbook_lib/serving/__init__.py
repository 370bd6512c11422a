"""What do many requests at once see? An event-driven simulator of a server. Chapter: Inference.

`simulate(requests, costs, policy)` plays them out: `poisson` and `trace` make requests; `Static`,
`Continuous`, `Chunked` and `Disaggregated` are the policies; `Blocks` cuts the cache. Costs are whatever has
`step_s`: `inference.Case` for a model on chips, `Affine` for lessons.
`rollout` waits for the last of many answers.

>>> run = simulate(poisson(2.0, 100, prompt=500, output=100, seed=0), Affine(), Continuous(16))
>>> run.outcomes()
{'finished': 100, 'cancelled': 0, 'refused': 0}
>>> run.ttft(99) > run.ttft(50)
True
"""

from scalingbook_lib.serving.costs import Affine, Costs
from scalingbook_lib.serving.policies import Blocks, Chunked, Continuous, Disaggregated, Policy, Static
from scalingbook_lib.serving.requests import (
    Request,
    ServingError,
    geometric,
    lognormal,
    poisson,
    trace,
    uniform,
)
from scalingbook_lib.serving.rollout import Rollout, drawn, mean_context, refilled, rollout
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.served import Moment, Served, Span
from scalingbook_lib.serving.simulate import simulate

__all__ = [
    "Affine",
    "Blocks",
    "Chunked",
    "Continuous",
    "Costs",
    "Disaggregated",
    "Moment",
    "Policy",
    "Request",
    "Rollout",
    "Served",
    "ServingError",
    "ServingRun",
    "Span",
    "Static",
    "drawn",
    "geometric",
    "lognormal",
    "mean_context",
    "poisson",
    "refilled",
    "rollout",
    "simulate",
    "trace",
    "uniform",
]
