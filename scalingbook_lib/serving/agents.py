"""The time of a rollout whose responses wait for an environment, such as tools, tests or a game.

A waiting response keeps its slot and its KV cache, but does not decode. Chapter: RL post-training systems.

>>> from scalingbook_lib.serving import Affine
>>> round(agent_rollout_s(Affine(), [100, 200, 800], P=10, environment_s=4.0), 1)
12.1
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from scalingbook_lib.serving.costs import Costs


def agent_rollout_s(
    costs: Costs,
    lengths: Sequence[int],
    *,
    P: int,
    slots: int | None = None,
    environment_s: float = 0.0,
    calls: int = 8,
) -> float:
    """Seconds until the last response ends, if each waits `environment_s` in total, in `calls` equal calls.

    The calls divide a response into equal parts, and each part ends with a call. All responses are ready at
    the start; with few `slots` they queue. Prefills interrupt decoding.
    """
    if not (environment_s >= 0 and calls >= 1):
        raise ValueError(f"{environment_s=}, {calls=}: write 0 or more seconds, in at least one call")
    engine = _Engine(costs, P, environment_s / calls, calls)
    pending = list(reversed(lengths))
    while pending or engine.running:
        free = (slots or len(lengths)) - engine.running
        engine.start([pending.pop() for _ in range(min(free, len(pending)))])
        engine.advance()
    return engine.now_s


@dataclass(slots=True)
class _Engine:
    """An engine between two events. All decoding responses advance by one token per step."""

    costs: Costs
    P: int
    call_s: float
    calls: int
    now_s: float = 0.0
    steps: float = 0.0  # decode steps so far
    held: float = 0.0  # tokens cached by decoding responses, minus B · steps
    decoding: list[tuple[float, float, int]] = field(
        default_factory=list
    )  # last step, tokens of a part, parts
    waiting: list[tuple[float, float, int]] = field(default_factory=list)  # end in s, tokens of a part, parts

    @property
    def running(self) -> int:
        return len(self.decoding) + len(self.waiting)

    def start(self, lengths: Sequence[int]) -> None:
        """Prefill new responses together, and let them decode."""
        if lengths:
            self.now_s += self.costs.step_s(0, 0, self.P * len(lengths), prompts=len(lengths))
        for length in lengths:
            self._decode(length / self.calls, self.calls)

    def advance(self) -> None:
        """Go on to the end of the next part, or of the next call."""
        calls_end_s = self.waiting[0][0] if self.waiting else float("inf")
        if not self.decoding:
            self.now_s = max(self.now_s, calls_end_s)
            self._return()
            return
        B, steps = len(self.decoding), self.decoding[0][0] - self.steps
        # caches grow by B tokens per step; their mean over these steps is halfway
        step_s = self.costs.step_s(B, self.held + B * (self.steps + steps / 2))
        if self.now_s + steps * step_s > calls_end_s:
            self.steps += max(calls_end_s - self.now_s, 0.0) / step_s
            self.now_s = max(self.now_s, calls_end_s)
            self._return()
            return
        self.now_s += steps * step_s
        self.steps += steps
        _, part, left = heappop(self.decoding)
        self.held -= self._cached(part, left - 1) - self.steps
        heappush(self.waiting, (self.now_s + self.call_s, part, left - 1))

    def _return(self) -> None:
        """A call ends: the response decodes its next part, or is complete."""
        _, part, left = heappop(self.waiting)
        if left:
            self._decode(part, left)

    def _decode(self, part: float, left: int) -> None:
        self.held += self._cached(part, left) - self.steps
        heappush(self.decoding, (self.steps + part, part, left))

    def _cached(self, part: float, left: int) -> float:
        """Tokens in the cache of a response with `left` parts still to decode."""
        return self.P + part * (self.calls - left)
