"""What does a plan's step take, given what it shares with others? The sums of the room's derivation.

Chapter: Training LLaMA 3.
"""

from scalingbook_lib.planner.fast.sums import Moved, PlanPass, Shards
from scalingbook_lib.planner.spread import Group
from scalingbook_lib.steps import pipelines

LINEAR = ("1f1b", "gpipe", "interleaved")  # stages idle in proportion to the sum of both passes


class StepSums:
    """The steps of one search: `hidden` is the share of the overlap, `fixed_s` is lost once a step."""

    def __init__(self, hidden: float, fixed_s: float) -> None:
        self.hidden, self.fixed_s = hidden, fixed_s

    def step_s(self, g: Group, run: float | None, one: PlanPass, hop_s: float, moved: Moved) -> float:
        """All microbatches, one of them beside what comes once a step; the bubble; the update."""
        f, b = one.forward, one.backward
        f_s = f.longest if f.longest > hop_s else hop_s  # max() takes three times as long
        b_s = b.longest if b.longest > hop_s else hop_s
        weights, gradients = moved.forward, moved.backward
        # the longest of what overlaps: busy with its waits, hops, or an axis of weights
        each_f = weights.each if weights.each > f_s else f_s
        last_f = weights.longest if weights.longest > f_s else f_s
        each_b = gradients.each if gradients.each > b_s else b_s
        last_b = gradients.longest if gradients.longest > b_s else b_s
        if self.hidden != 1:  # what is not hidden is waited for
            each_f, last_f = self._waited(each_f, last_f, f.sum + hop_s, weights)
            each_b, last_b = self._waited(each_b, last_b, b.sum + hop_s, gradients)
        once = last_f + last_b + moved.update_s + self.fixed_s
        if run is not None:
            return run * (each_f + each_b) + once
        times = {"forward_s": each_f, "backward_s": each_b, "weight_s": one.put_off * each_b}
        s = g.spread
        idle = pipelines.bubble(s.schedule, s.pp, g.m, s.chunks, **times).idle_s
        return (g.m - 1) * (each_f + each_b) + max(float(idle), 0.0) + once

    def _waited(self, each: float, last: float, busy: float, moved: Shards) -> tuple[float, float]:
        """One direction of a microbatch, and of the last one, as far as anything is hidden."""
        h = self.hidden
        return h * each + (1 - h) * (busy + moved.each), h * last + (1 - h) * (busy + moved.sum)


def idle(pp: int, schedule: str, chunks: int) -> float | None:
    """Idle time over the sum of both passes of a microbatch; None where it is no such share."""
    if pp == 1:
        return 0.0
    return (pp - 1) / chunks if schedule in LINEAR else None
