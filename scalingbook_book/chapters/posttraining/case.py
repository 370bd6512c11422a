"""The RL step that the chapter follows: 8,192 responses of a 70B model on 256 H100s."""

from functools import cache

from scalingbook_lib import inference, models, planner
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.planner import Loop, Splits
from scalingbook_lib.serving import Rollout, rollout, sample_lengths

LLAMA = models.find("Llama 3 70B")
MACHINE, ENGINE = Cluster.of(chips.H100, 256), Layout(tp=8)
ANSWERS, P, G, SPREAD, MOST = 8192, 512, 8192, 0.8, 32_768
SLOTS = 256  # responses of one engine
CHIP_S = LLAMA3_INTERRUPTIONS.mtbf_s * LLAMA3_INTERRUPTIONS.chips  # between two failures of one GPU
LARGE = 100_000
STATE_BYTES = 14 * models.find("Llama 3.1 405B").params  # bf16 weights, fp32 master, two moments


def asked(spread: float = SPREAD) -> Loop:
    """The work of one step."""
    return planner.loop(ANSWERS, P=P, G=G, spread=spread, most=MOST)


@cache
def splits(spread: float = SPREAD, staleness: int = 1) -> Splits:
    """All splits of the chips."""
    return planner.posttraining(LLAMA, MACHINE, ENGINE, asked(spread), staleness=staleness)


@cache
def played(spread: float = SPREAD) -> Rollout:
    """The rollout of one engine."""
    costs = inference.case(LLAMA, MACHINE, ENGINE)
    return rollout(costs, sample_lengths(SLOTS, G, spread, max_tokens=MOST), P=P)
