"""Does a simulated server behave as a real one did? A published sweep over clients, and the same, simulated.

NVIDIA served LLaMA 3.3 70B on two H100 to more and more clients, each of which sends its next prompt when it
has its answer. `SWEEP` is what came out; `simulated` plays it with the calibrated efficiencies of
`inference.published`, to which none of these figures was shown. Chapter: Serving LLaMA 3.
"""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_lib import inference, models
from scalingbook_lib.evidence import inference as inference_published
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.serving.policies import Chunked
from scalingbook_lib.serving.requests import Request
from scalingbook_lib.serving.simulate import simulate
from scalingbook_lib.units import FP8, Told, count, si

SOURCE = "docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance, read 2026-11-21"
P, G = 5000, 500
STEP_TOKENS = 8192  # TensorRT-LLM's default of max_num_tokens: a step takes whole prompts of 5,000
RESERVE = 0.08  # of the HBM, for the runtime, as for `inference.published`'s runs of this engine
LAYOUT = Layout(tp=2, weights=FP8, compute=FP8, kv=FP8)  # the cache's type follows from how many it holds
ANSWERS = 6  # of each client, in the mean: enough that the start does not matter


@dataclass(frozen=True, slots=True)
class Point(Told):
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


SWEEP = (
    Point(1, 0.40677, 0.01858, 51.67),
    Point(5, 0.5467, 0.02183, 218.48),
    Point(25, 0.68869, 0.03875, 623.4),
    Point(50, 0.83451, 0.05973, 814.37),
    Point(100, 7.99625, 0.09291, 917.26),
    Point(150, 34.79422, 0.09286, 920.9),
    Point(200, 61.68022, 0.09306, 920.54),
    Point(250, 88.60532, 0.0932, 920.12),
)


@lru_cache
def simulated() -> tuple[Point, ...]:
    """The same sweep, played: nothing is fitted to it."""
    model, machine = models.find("LLaMA-3 70B"), Cluster.of(chips.H100, 2)
    costs = inference.case(model, machine, LAYOUT, inference_published.calibrated(chips.H100, FP8))
    slots = inference.largest_batch(
        model, LAYOUT, machine, S=P + G, reserve=RESERVE, step_tokens=STEP_TOKENS
    )  # the engine lets nobody in whose whole answer has no room
    return tuple(_point(costs, Chunked(slots, STEP_TOKENS), point.clients) for point in SWEEP)


def _point(costs: inference.Case, policy: Chunked, clients: int) -> Point:
    """The middle of a run: those who come after the first have their answers, and before the last."""
    requests = [Request(0.0, P, G)] * (ANSWERS * max(clients, 5))
    run = simulate(requests, costs, policy, clients=clients)
    from_s, to_s = 0.25 * run.end_s, 0.75 * run.end_s
    middle = [served for served in run.requests if from_s < served.first_s < to_s]
    ttft_s = sum(served.ttft_s for served in middle) / len(middle)
    itl_s = sum(served.itl_s for served in middle) / len(middle)
    return Point(clients, ttft_s, itl_s, run.tokens_per_s)
