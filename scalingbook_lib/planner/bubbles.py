"""How long does a stage wait, and for how many microbatches does it keep activations?

Chapter: Training LLaMA 3.
"""

from functools import lru_cache
from math import nan

from scalingbook_lib.steps import pipelines
from scalingbook_lib.training import Plan
from scalingbook_lib.training.memory import live

LINEAR = ("1f1b", "gpipe", "interleaved")  # idle in proportion to the sum of both passes


@lru_cache(maxsize=1 << 12)
def kept_at_once(pp: int, schedule: str, chunks: int, M: int) -> float:
    """Microbatches, at most."""
    return live(Plan(pp=pp, schedule=schedule, chunks=chunks), M)


@lru_cache(maxsize=1 << 12)
def idle(pp: int, schedule: str, chunks: int) -> float:
    """Idle time over the sum of both passes of a microbatch; NaN where it is no such share."""
    if pp == 1:
        return 0.0
    if schedule not in LINEAR:
        return nan
    return float(pipelines.bubble(schedule, pp, pp, chunks, forward_s=1.0, backward_s=1.0).idle_s) / 2


def idle_s(
    pp: int, schedule: str, chunks: int, M: int, forward_s: float, backward_s: float, weight_s: float
) -> float:  # fmt: skip
    """Idle seconds of any schedule, from one microbatch's passes."""
    times = {"forward_s": forward_s, "backward_s": backward_s, "weight_s": min(weight_s, backward_s)}
    return max(float(pipelines.bubble(schedule, pp, M, chunks, **times).idle_s), 0.0)
