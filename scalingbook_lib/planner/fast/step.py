"""What does a plan's step take, given what it shares with others? The sums of the room's derivation.

Chapter: Training LLaMA 3.
"""

from math import isnan, nan

from scalingbook_lib.planner.fast.sums import Moved, OneWay, Pass, Shards
from scalingbook_lib.planner.spread import Group
from scalingbook_lib.steps import pipelines

LINEAR = ("1f1b", "gpipe", "interleaved")  # stages idle in proportion to the sum of both passes


class Steps:
    """The steps of one search: `hidden` is the share of the overlap, `fixed_s` is lost once a step."""

    def __init__(self, hidden: float, fixed_s: float) -> None:
        self.hidden, self.fixed_s = hidden, fixed_s

    def step_s(self, g: Group, run: float, one: Pass, hop_s: float, moved: Moved) -> float:
        """All microbatches, one of them beside what comes once a step; the bubble; the update."""
        each_f, last_f = _way(self.hidden, one.forward, hop_s, moved.forward)
        each_b, last_b = _way(self.hidden, one.backward, hop_s, moved.backward)
        once = last_f + last_b + moved.update_s + self.fixed_s
        if not isnan(run):
            return run * (each_f + each_b) + once
        times = {"forward_s": each_f, "backward_s": each_b, "weight_s": one.put_off * each_b}
        s = g.spread
        idle = pipelines.bubble(s.schedule, s.pp, g.m, s.chunks, **times).idle_s
        return (g.m - 1) * (each_f + each_b) + max(float(idle), 0.0) + once


def _way(hidden: float, one: OneWay, hop_s: float, moved: Shards) -> tuple[float, float]:
    """One direction of a microbatch; and of the one beside what comes once a step."""
    longest = one.longest if one.longest > hop_s else hop_s  # max() takes three times as long
    each = moved.each if moved.each > longest else longest
    last = moved.longest if moved.longest > longest else longest
    if hidden != 1:  # what is not hidden is waited for
        busy = one.sum + hop_s
        each = hidden * each + (1 - hidden) * (busy + moved.each)
        last = hidden * last + (1 - hidden) * (busy + moved.sum)
    return each, last


def idle(pp: int, schedule: str, chunks: int) -> float:
    """Idle time over the sum of both passes of a microbatch; NaN where it is no such share."""
    if pp == 1:
        return 0.0
    if schedule not in LINEAR:
        return nan
    return float(pipelines.bubble(schedule, pp, pp, chunks, forward_s=1.0, backward_s=1.0).idle_s) / 2
