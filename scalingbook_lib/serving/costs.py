"""How long does a step take? What the simulator asks, and many steps answered at once.

Whatever has `step_s` will do: `inference.Case` for a model on chips, `Affine` for lessons.
Chapter: Inference.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from scalingbook_lib.serving.sequence import Steps
from scalingbook_lib.units import Result, si

CLOSE = 1e-9  # a value this near a line, relative to it, lies on it
SAME = 1 + 1e-12  # times nearer to each other than this are one: sums of steps are rounded
FAR = 512  # how many steps further than asked a line is tried


class Costs(Protocol):
    """Seconds of one step of one server."""

    def step_s(
        self, decodes: int, kv_tokens: float, chunk: int = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """`decodes` sequences get a token each, with `kv_tokens` in their caches together before the step.

        Beside them (or alone, where decodes is 0) `chunk` tokens of `prompts` prompts are prefilled, as many
        of each, which attend to `chunk_context` earlier tokens of their prompt as well as to each other.
        Piecewise affine in `kv_tokens`.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Affine(Result):
    """A server of four constants: a step waits, reads caches, and multiplies what it is given.

    step_s = max(weights_s, token_s · (decodes + chunk)) + cached_s · tokens read + fixed_s.
    """

    weights_s: float = 0.01  # reading every weight once
    token_s: float = 5e-5  # the arithmetic of one token
    cached_s: float = 2e-7  # reading one token of the cache
    fixed_s: float = 0.0

    def step_s(
        self, decodes: int, kv_tokens: float, chunk: int = 0, chunk_context: float = 0, prompts: int = 1
    ) -> float:
        """One step; see `Costs`."""
        linear = max(self.weights_s, self.token_s * (decodes + chunk))
        return linear + self.cached_s * (kv_tokens + prompts * chunk_context) + self.fixed_s

    def __str__(self) -> str:
        return (
            f"a step reads the weights in {si(self.weights_s, 's')} or multiplies at {si(self.token_s, 's')} "
            f"a token, reads the cache at {si(self.cached_s, 's')} a token, and waits {si(self.fixed_s, 's')}"
        )


@dataclass(slots=True)
class Line:
    """The seconds of a step as they grow with the tokens in the cache, known between `low` and `high`."""

    low: int
    high: int
    base_s: float
    slope_s: float  # for each token


class Pace:
    """Steps that follow one another, each with one token more in every cache.

    Their times lie on a line in `kv_tokens` for as long as the same resource binds. A line is known by
    three points of `step_s`, remembered for its number of sequences, and drawn out as far as it is asked for;
    where the points do not lie on one line, fewer steps are told at once.
    """

    __slots__ = ("lines", "most", "step_s")

    def __init__(self, costs: Costs, most: int) -> None:
        self.step_s: Callable[..., float] = costs.step_s
        self.most = most  # steps told at once
        self.lines: dict[int, Line] = {}  # by the number of sequences

    def __call__(self, decodes: int, kv_tokens: int, steps: int) -> Steps:
        """As many of the steps as can be told at once."""
        steps = min(steps, self.most)
        if steps == 1 and self.most == 1:
            return Steps(1, self.step_s(decodes, kv_tokens), 0.0)
        line = self.lines.get(decodes)
        last = kv_tokens + (steps - 1) * decodes
        if line is None or kv_tokens < line.low or last > line.high:
            line = self.lines[decodes] = self._line(line, decodes, kv_tokens, last)
            if last > line.high:
                steps = int(line.high - kv_tokens) // decodes + 1
        return Steps(steps, line.base_s + line.slope_s * kv_tokens, line.slope_s * decodes)

    def _line(self, known: Line | None, decodes: int, first: int, last: int) -> Line:
        """A line from `first` to as near `last` as can be: the known one, drawn out, or a new one."""
        if known is not None:
            low = first if first < known.low and self._on(known, decodes, first) else known.low
            high = last if last > known.high and self._on(known, decodes, last) else known.high
            if low <= first <= high:
                return replace(known, low=low, high=high)
        return self._new(decodes, first, last)

    def _on(self, line: Line, decodes: int, kv_tokens: int) -> bool:
        found = self.step_s(decodes, kv_tokens)
        return abs(found - line.base_s - line.slope_s * kv_tokens) <= CLOSE * found

    def _new(self, decodes: int, first: int, last: int) -> Line:
        """Tried first from an empty cache to far beyond, then from here on, each time half as far."""
        # Two points draw a line, a third in the middle says whether the step bends between them.
        start_s = self.step_s(decodes, first)
        far = last + FAR * decodes
        while far > first:
            slope_s = (self.step_s(decodes, far) - start_s) / (far - first)
            line = Line(low=first, high=far, base_s=start_s - slope_s * first, slope_s=slope_s)
            if far <= first + decodes or self._on(line, decodes, (first + far) // 2):
                return line
            far = first + (far - first) // 2 // decodes * decodes
        return Line(low=first, high=first, base_s=start_s, slope_s=0.0)
