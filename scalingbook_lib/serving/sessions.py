"""Agent sessions: turns of a prompt and an answer, with a tool call between them. Chapter: Inference.

The prompt of a turn is the whole history of its session and some new tokens, so a prefix cache that still
holds the session saves almost all of the prefill.

>>> one = Session(0.0, (Turn(2000, 100, tool_s=5.0), Turn(400, 100)))
>>> [request.prompt for request in one.requests(family=1)]
[2000, 2500]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from scalingbook_lib.serving.requests import Length, Request, ServingError, draw_length
from scalingbook_lib.units import Result, count, si

type Seconds = float | Callable[[Random], float]  # the same duration for all, or a sampler


@dataclass(frozen=True, slots=True)
class Turn(Result):
    """`prompt` new tokens, such as a question or the result of a tool, and `output` generated tokens.

    The next turn of the session starts `tool_s` seconds after the end of this one.
    """

    prompt: int
    output: int
    tool_s: float = 0.0

    def __post_init__(self) -> None:
        if self.prompt < 1 or self.output < 1:
            raise ServingError(
                f"a turn of {self.prompt} new and {self.output} output tokens: write at least 1 of each"
            )
        if not 0 <= self.tool_s < math.inf:
            raise ServingError(f"tool_s = {self.tool_s}: write a time of at least 0, in seconds")

    def __str__(self) -> str:
        return (
            f"{count(self.prompt)} tokens in, {count(self.output)} out, then {si(self.tool_s, 's')} of tools"
        )


@dataclass(frozen=True, slots=True)
class Session(Result):
    """The turns of an agent that starts at `arrival_s`; each turn waits for the end of the one before."""

    arrival_s: float
    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        if not self.turns:
            raise ServingError("a session without turns: write at least one Turn")

    @property
    def context(self) -> int:
        """The tokens of the history after the last turn."""
        return sum(turn.prompt + turn.output for turn in self.turns)

    @property
    def prompt_tokens(self) -> int:
        """The prompt tokens of all turns, of which the history is counted again in every turn."""
        return sum(request.prompt for request in self.requests(family=1))

    def requests(self, family: int) -> tuple[Request, ...]:
        """The request of each turn; all arrive with the session, until the turns before have ended.

        The whole prompt and the answer are shared with the later turns, which have the same `family`.
        """
        found, history = [], 0
        for turn in self.turns:
            prompt = history + turn.prompt
            history = prompt + turn.output
            found.append(Request(self.arrival_s, prompt, turn.output, prefix=history, family=family))
        return tuple(found)

    def __str__(self) -> str:
        return (
            f"at {si(self.arrival_s, 's')}: {count(len(self.turns))} turns, {count(self.prompt_tokens)} "
            f"tokens in all prompts, {count(self.context)} tokens at the end"
        )


def exponential(mean_s: float) -> Callable[[Random], float]:
    """A sampler of exponentially distributed times with the mean `mean_s` seconds."""
    return lambda rng: -math.log(1 - rng.random()) * mean_s


def agent_sessions(
    rate_per_s: float,
    sessions: int,
    *,
    turns: Length,
    first: Length,
    prompt: Length,
    output: Length,
    tool_s: Seconds,
    seed: int = 0,
) -> tuple[Session, ...]:
    """Sessions of a Poisson process with `rate_per_s` arrivals per second.

    The first turn has `first` prompt tokens, and each later one `prompt` new ones.
    """
    if not rate_per_s > 0:
        raise ServingError(f"rate_per_s = {rate_per_s}: write a positive rate, in sessions per second")
    rng, now, made = Random(seed), 0.0, []
    for _ in range(sessions):
        now -= math.log(1 - rng.random()) / rate_per_s  # an exponential gap, as in `poisson`
        made.append(
            Session(
                now,
                tuple(
                    Turn(
                        draw_length(prompt if i else first, rng),
                        draw_length(output, rng),
                        tool_s(rng) if callable(tool_s) else tool_s,
                    )
                    for i in range(draw_length(turns, rng))
                ),
            )
        )
    return tuple(made)
