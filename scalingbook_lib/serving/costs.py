"""The step times that the simulator uses, and the times of many consecutive steps at once.

Any object with a `step_s` method can be used: `inference.ServingCase` for a model on chips, `Affine` for
teaching. Chapter: Inference.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from scalingbook_lib.serving.sequence import DecodeSteps
from scalingbook_lib.units import Result, si

RELATIVE_TOLERANCE = 1e-9  # relative distance at which a point counts as on a line
TIME_TOLERANCE = 1 + 1e-12  # times within this factor are equal: sums of step times are rounded
LOOKAHEAD_STEPS = 512  # steps beyond the requested ones that a new line tries to cover


class Costs(Protocol):
    """The time of one step of one server, in seconds."""

    def step_s(
        self, decodes: float, kv_tokens: float, chunk: int = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """The seconds of a step in which `decodes` sequences get one token each.

        They have `kv_tokens` cached tokens in total. In the same step, `chunk` tokens are prefilled, divided
        equally among `prompts` prompts; besides each other they attend to `chunk_context` earlier tokens of
        their prompt. `decodes` may be 0. The time is piecewise affine in `kv_tokens`.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Affine(Result):
    """A server described by four constants.

    step_s = max(weights_s, token_s · (decodes + chunk)) + cached_s · tokens read + fixed_s.
    """

    weights_s: float = 0.01  # reading all weights once
    token_s: float = 5e-5  # computing one token
    cached_s: float = 2e-7  # reading one cached token
    fixed_s: float = 0.0

    def step_s(
        self, decodes: float, kv_tokens: float, chunk: int = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """The seconds of one step; see `Costs.step_s`."""
        linear = max(self.weights_s, self.token_s * (decodes + chunk))
        return linear + self.cached_s * (kv_tokens + prompts * chunk_context) + self.fixed_s

    def __str__(self) -> str:
        return (
            f"step time: the longer of weights {si(self.weights_s, 's')} and compute {si(self.token_s, 's')} "
            f"per token, plus {si(self.cached_s, 's')} per cached token, plus {si(self.fixed_s, 's')}"
        )


@dataclass(slots=True)
class StepTimeLine:
    """The step time as a linear function of the tokens in the cache, valid between `low` and `high`."""

    low: int
    high: int
    base_s: float
    slope_s: float  # per token


class FusedStepTimes:
    """The times of consecutive decode steps, each of which adds one token to every cache.

    As long as the bottleneck is the same, these times are linear in `kv_tokens`. A line is verified at three
    points of `step_s`, cached per number of sequences and extended on demand; if the three points are not
    collinear, fewer steps are computed at once.
    """

    __slots__ = ("lines", "max_steps", "step_s")

    def __init__(self, costs: Costs, max_steps: int) -> None:
        self.step_s: Callable[..., float] = costs.step_s
        self.max_steps = max_steps  # the most steps computed at once
        self.lines: dict[int, StepTimeLine] = {}  # by number of sequences

    def __call__(self, decodes: int, kv_tokens: int, steps: int) -> DecodeSteps:
        """The times of as many of the next `steps` steps as one line covers."""
        steps = min(steps, self.max_steps)
        if steps == 1 and self.max_steps == 1:
            return DecodeSteps(1, self.step_s(decodes, kv_tokens), 0.0)
        line = self.lines.get(decodes)
        last = kv_tokens + (steps - 1) * decodes
        if line is None or kv_tokens < line.low or last > line.high:
            line = self.lines[decodes] = self._extended_line(line, decodes, kv_tokens, last)
            if last > line.high:
                steps = int(line.high - kv_tokens) // decodes + 1
        return DecodeSteps(steps, line.base_s + line.slope_s * kv_tokens, line.slope_s * decodes)

    def _extended_line(self, known: StepTimeLine | None, decodes: int, first: int, last: int) -> StepTimeLine:
        """A line from `first` to as close to `last` as possible: the known line, extended, or a new one."""
        if known is not None:
            low = first if first < known.low and self._lies_on(known, decodes, first) else known.low
            high = last if last > known.high and self._lies_on(known, decodes, last) else known.high
            if low <= first <= high:
                return replace(known, low=low, high=high)
        return self._new_line(decodes, first, last)

    def _lies_on(self, line: StepTimeLine, decodes: int, kv_tokens: int) -> bool:
        found = self.step_s(decodes, kv_tokens)
        return abs(found - line.base_s - line.slope_s * kv_tokens) <= RELATIVE_TOLERANCE * found

    def _new_line(self, decodes: int, first: int, last: int) -> StepTimeLine:
        """A line that starts at `first`: tries a distant end first, and halves the distance until it fits."""
        # Two points define a line; a third in the middle shows whether the step time bends between them.
        start_s = self.step_s(decodes, first)
        end = last + LOOKAHEAD_STEPS * decodes
        while end > first:
            slope_s = (self.step_s(decodes, end) - start_s) / (end - first)
            line = StepTimeLine(low=first, high=end, base_s=start_s - slope_s * first, slope_s=slope_s)
            if end <= first + decodes or self._lies_on(line, decodes, (first + end) // 2):
                return line
            end = first + (end - first) // 2 // decodes * decodes
        return StepTimeLine(low=first, high=first, base_s=start_s, slope_s=0.0)
