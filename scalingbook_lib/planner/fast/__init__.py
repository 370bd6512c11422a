"""How can thousands of plans be judged in a tenth of a second? Their step is a few sums that many share.

What follows is `training.times`, rearranged; a test holds it to `training.step` over whole spaces of plans.
One direction of a microbatch is busy with arithmetic and with what it waits for. Of the collectives beside
it, axis by axis, full overlap leaves what the longest takes more, no overlap leaves all (η is the share that
is hidden, `hidden`):

    each = η · max(busy, longest axis) + (1 - η) · (busy + sum of the axes)

The last microbatch of a step has also beside it what comes once a step. For schedules whose stages idle in
proportion to both passes, idle = (p - 1)/v (others ask `pipelines.bubble`), so that

    step = (m - 1 + idle) · (forward + backward) + last forward + last backward + update + fixed

No term needs the whole plan:

- arithmetic, tensor, context and expert ways: tp, cp, microbatch, remat and the links (`sums.PlanPass`);
- hops between stages: tp, microbatch and the links between stages;
- weights and gradients: the parameters of a chip, who shares them, ZeRO and the links (`sums.Moved`);
- memory: at each of three moments, what a stage's parameters hold (`Unit.states`) and bytes for each token
  (`unit.TokenBytes`).

Nothing is derived a second time: arithmetic is asked of `training.times.layers` at the microbatch's tokens;
collectives and memory are linear in tokens or in parameters, and `unit` reads their slopes off `training`'s
own functions, for one token and for one parameter. Chapter: Training LLaMA 3.
"""

from scalingbook_lib.planner.fast.judge import Fast

__all__ = ["Fast"]
