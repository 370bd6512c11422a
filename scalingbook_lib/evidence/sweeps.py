"""Does a simulated server behave as a real one did? A published sweep over clients, and the same, simulated.

NVIDIA served LLaMA 3.3 70B on two H100 to more and more clients, each of which sends its next prompt when it
has its answer. `SWEEP` is what came out; `simulated` plays it with the calibrated efficiencies of
`evidence.inference`, to which none of these figures was shown. Chapter: Serving LLaMA 3.
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib import inference, models
from scalingbook_lib.evidence import inference as inference_published
from scalingbook_lib.evidence import resources
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.serving import Chunked, Request, simulate
from scalingbook_lib.units import FP8, Result, count, si

ENGINE = "TensorRT-LLM"  # NIM's, by `stacks.csv`
P, G = 5000, 500
STEP_TOKENS = 8192  # TensorRT-LLM's default of max_num_tokens: a step takes whole prompts of 5,000
RESERVE = 0.08  # of the HBM, for the runtime, as for `evidence.inference`'s runs of this engine
LAYOUT = Layout(tp=2, weights=FP8, compute=FP8, kv=FP8)  # the cache's type follows from how many it holds
ANSWERS = 6  # of each client, in the mean: enough that the start does not matter


@dataclass(frozen=True, slots=True)
class SweepPoint(Result):
    """So many clients, and in the mean: time to first token, time between two, output tokens per second."""

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
"""What was published, by the number of clients."""


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


__getattr__ = resources.lazily(__name__, {"SWEEP": published})


@cache
def simulated() -> tuple[SweepPoint, ...]:
    """The same sweep, played: nothing is fitted to it."""
    model, machine = models.find("LLaMA-3 70B"), Cluster.of(chips.H100, 2)
    costs = inference.case(model, machine, LAYOUT, inference_published.calibrated(chips.H100, FP8, ENGINE))
    slots = inference.largest_batch(
        model, LAYOUT, machine, S=P + G, reserve=RESERVE, step_tokens=STEP_TOKENS
    )  # the engine lets nobody in whose whole answer has no room
    return tuple(_point(costs, Chunked(slots, STEP_TOKENS), point.clients) for point in published())


def _point(costs: inference.Case, policy: Chunked, clients: int) -> SweepPoint:
    """The middle of a run: those who come after the first have their answers, and before the last."""
    requests = [Request(0.0, P, G)] * (ANSWERS * max(clients, 5))
    run = simulate(requests, costs, policy, clients=clients)
    from_s, to_s = 0.25 * run.end_s, 0.75 * run.end_s
    middle = [served for served in run.requests if from_s < served.first_s < to_s]
    ttft_s = sum(served.ttft_s for served in middle) / len(middle)
    itl_s = sum(served.itl_s for served in middle) / len(middle)
    return SweepPoint(clients, ttft_s, itl_s, run.tokens_per_s)
