"""A published load test of a real server, and the same load simulated.

NVIDIA served Llama 3.3 70B on two H100s to an increasing number of closed-loop clients. `SWEEP` is the
published result; `simulated` runs the serving simulator with the calibrated efficiencies of
`evidence.inference`, to which these measurements were not fitted. Chapter: Serving Llama 3.
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib import calibrated, inference, models
from scalingbook_lib.evidence import resources
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.serving import Chunked, Request, simulate
from scalingbook_lib.units import FP8, Result, count, si

ENGINE = "TensorRT-LLM"  # NIM's, by `stacks.csv`
P, G = 5000, 500
STEP_TOKENS = 8192  # TensorRT-LLM's default of max_num_tokens: a step takes whole prompts of 5,000
RESERVE = 0.08  # of the HBM, for the runtime, as for `evidence.inference`'s runs of this engine
LAYOUT = Layout(
    tp=2, weights=FP8, compute=FP8, kv=FP8
)  # the cache's dtype follows from how many sequences fit
ANSWERS = 6  # requests per client on average: enough that warm-up does not matter


@dataclass(frozen=True, slots=True)
class SweepPoint(Result):
    """A number of clients with mean TTFT and ITL in seconds and output tokens per second."""

    clients: int
    ttft_s: float
    itl_s: float
    tokens_per_s: float

    def __str__(self) -> str:
        return (
            f"{count(self.clients)} clients: first token after {si(self.ttft_s, 's')}, one every "
            f"{si(self.itl_s, 's')}, {si(self.tokens_per_s, 'tokens')}/s"
        )


SWEEP: tuple[SweepPoint, ...]
"""The published points, by number of clients."""


@cache
def published() -> tuple[SweepPoint, ...]:
    """The rows of `serving_sweeps.csv`."""
    return tuple(
        SweepPoint(
            clients=int(row["clients"]),
            ttft_s=float(row["ttft_ms"]) / 1e3,
            itl_s=float(row["itl_ms"]) / 1e3,
            tokens_per_s=float(row["output_tok_s_total"]),
        )
        for row in resources.rows("serving_sweeps")
    )


__getattr__ = resources.lazy_attributes(__name__, {"SWEEP": published})


@cache
def simulated() -> tuple[SweepPoint, ...]:
    """The simulated counterpart of every published point."""
    model, machine = models.find("Llama 3 70B"), Cluster.of(chips.H100, 2)
    costs = inference.case(model, machine, LAYOUT, calibrated.serving(chips.H100, FP8, ENGINE))
    slots = inference.largest_batch(
        model, LAYOUT, machine, S=P + G, reserve=RESERVE, step_tokens=STEP_TOKENS
    )  # the engine admits a sequence only if its whole answer fits
    return tuple(_point(costs, Chunked(slots, STEP_TOKENS), point.clients) for point in published())


def _point(costs: inference.ServingCase, policy: Chunked, clients: int) -> SweepPoint:
    """The means over the middle half of a run, without warm-up and drain."""
    requests = [Request(0.0, P, G)] * (ANSWERS * max(clients, 5))
    run = simulate(requests, costs, policy, clients=clients)
    from_s, to_s = 0.25 * run.end_s, 0.75 * run.end_s
    middle = [served for served in run.requests if from_s < served.first_s < to_s]
    ttft_s = sum(served.ttft_s for served in middle) / len(middle)
    itl_s = sum(served.itl_s for served in middle) / len(middle)
    return SweepPoint(clients, ttft_s, itl_s, run.tokens_per_s)
