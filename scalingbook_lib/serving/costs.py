"""How long does a step take? What the simulator asks, and many steps answered at once.

Whatever has `step_s` will do: `inference.Case` for a model on chips, `Affine` for lessons.
Chapter: Inference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scalingbook_lib.units import Told, si

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
        `prompts` is given only where it is not 1. Piecewise affine in `kv_tokens`.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Affine(Told):
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


class Pace:
    """Steps that follow one another, each with one token more in every cache.

    Their times lie on a line in `kv_tokens` for as long as the same resource binds. A line is known by
    three points of `step_s`, kept for its number of sequences, and drawn out as far as it is asked for;
    where the points do not lie on one line, fewer steps are told at once.
    """

    __slots__ = ("lines", "most", "step_s")

    def __init__(self, costs: Costs, most: int) -> None:
        self.step_s: Callable[..., float] = costs.step_s
        self.most = most  # steps told at once
        self.lines: dict[
            int, tuple[float, float, float, float]
        ] = {}  # kv from, to; seconds at 0 tokens, a token

    def __call__(self, decodes: int, kv_tokens: int, steps: int) -> tuple[int, float, float]:
        """How many of the steps can be told at once; the seconds of the first; what each takes longer."""
        if steps > self.most:
            steps = self.most
        if steps == 1 and self.most == 1:
            return 1, self.step_s(decodes, kv_tokens), 0.0
        line = self.lines.get(decodes)
        last = kv_tokens + (steps - 1) * decodes
        if line is None or kv_tokens < line[0] or last > line[1]:
            line = self._line(line, decodes, kv_tokens, last)
            if last > line[1]:
                steps = int(line[1] - kv_tokens) // decodes + 1
        return steps, line[2] + line[3] * kv_tokens, line[3] * decodes

    def _line(self, line, decodes: int, first: int, last: int) -> tuple[float, float, float, float]:
        """A line from `first` to as near `last` as can be: the known one, drawn out, or a new one."""
        if line is not None:
            line = self._drawn(line, decodes, first, last)
            if line[0] <= first <= line[1]:
                self.lines[decodes] = line
                return line
        self.lines[decodes] = line = self._new(decodes, first, last)
        return line

    def _drawn(self, line, decodes: int, first: int, last: int) -> tuple[float, float, float, float]:
        """The line as far as both ends lie on it."""
        low, high, base, slope = line
        if first < low and self._on(base, slope, decodes, first):
            low = first
        if last > high and self._on(base, slope, decodes, last):
            high = last
        return low, high, base, slope

    def _on(self, base: float, slope: float, decodes: int, kv_tokens: int) -> bool:
        found = self.step_s(decodes, kv_tokens)
        return abs(found - base - slope * kv_tokens) <= CLOSE * found

    def _new(self, decodes: int, first: int, last: int) -> tuple[float, float, float, float]:
        """Tried first from an empty cache to far beyond, then from here on, each time half as far."""
        start = self.step_s(decodes, first)
        far = last + FAR * decodes
        while far > first:
            slope = (self.step_s(decodes, far) - start) / (far - first)
            base = start - slope * first
            if far <= first + decodes or self._on(base, slope, decodes, (first + far) // 2):
                return first, far, base, slope
            far = first + (far - first) // 2 // decodes * decodes
        return first, first, start, 0.0
