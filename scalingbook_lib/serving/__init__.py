"""An event-driven simulator of an inference server under load. Chapter: Inference.

`simulate(requests, costs, policy)` runs requests to completion. `poisson` and `trace` create requests;
`Static`, `Continuous`, `Chunked` and `Disaggregated` are scheduling policies; `PagedCache` divides the KV
cache into blocks. Costs are any object with a `step_s` method: `inference.ServingCase` for a model on chips,
`Affine` for teaching. `rollout` generates a batch of responses until the longest one ends,
and `agent_rollout_s` one whose responses wait for tools. `serve_sessions(agents, costs, policy)` runs agent
sessions, whose turns share a growing prefix, and `lru_reuse` predicts their hit rate. `PrefixTree` is a
prefix cache by itself.

>>> run = simulate(poisson(2.0, 100, prompt=500, output=100, seed=0), Affine(), Continuous(16))
>>> run.outcomes()
{'finished': 100, 'cancelled': 0, 'refused': 0}
>>> run.ttft(99) > run.ttft(50)
True
"""

from scalingbook_lib.serving.agents import agent_rollout_s
from scalingbook_lib.serving.costs import Affine, Costs
from scalingbook_lib.serving.policies import (
    Chunked,
    Continuous,
    Disaggregated,
    HostMemory,
    PagedCache,
    Policy,
    Static,
)
from scalingbook_lib.serving.prefix_tree import PrefixTree
from scalingbook_lib.serving.replicas import ROUTING, serve_sessions
from scalingbook_lib.serving.requests import (
    Request,
    ServingError,
    geometric,
    lognormal,
    poisson,
    trace,
    uniform,
)
from scalingbook_lib.serving.results import QueueSample, RequestResult, ServedSpan
from scalingbook_lib.serving.reuse import Reuse, erlang_gaps, lru_reuse, shuffled_reuse
from scalingbook_lib.serving.rollout import (
    RefilledEngine,
    Rollout,
    mean_context,
    refilled,
    refilled_tokens_per_s,
    rollout,
    sample_lengths,
)
from scalingbook_lib.serving.run import ServingRun
from scalingbook_lib.serving.session_run import SessionRun
from scalingbook_lib.serving.sessions import Session, Turn, agent_sessions, exponential
from scalingbook_lib.serving.simulate import simulate

__all__ = [
    "ROUTING",
    "Affine",
    "Chunked",
    "Continuous",
    "Costs",
    "Disaggregated",
    "HostMemory",
    "PagedCache",
    "Policy",
    "PrefixTree",
    "QueueSample",
    "RefilledEngine",
    "Request",
    "RequestResult",
    "Reuse",
    "Rollout",
    "ServedSpan",
    "ServingError",
    "ServingRun",
    "Session",
    "SessionRun",
    "Static",
    "Turn",
    "agent_rollout_s",
    "agent_sessions",
    "erlang_gaps",
    "exponential",
    "geometric",
    "lognormal",
    "lru_reuse",
    "mean_context",
    "poisson",
    "refilled",
    "refilled_tokens_per_s",
    "rollout",
    "sample_lengths",
    "serve_sessions",
    "shuffled_reuse",
    "simulate",
    "trace",
    "uniform",
]
