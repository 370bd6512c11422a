"""When did every step end? Stretches of decode steps, told by their first step and what each takes longer.

Chapter: Inference.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

# A run makes several of these records for each of its requests. With slots, and not frozen, one is made and
# read in half the time of a tuple with names; no one changes a stretch, or a stay that is over.


@dataclass(slots=True)
class Steps:
    """Decode steps with nothing between them; step i (from 0) takes first_s + i · growth_s."""

    steps: int
    first_s: float
    growth_s: float  # every step reads one token more of each sequence

    def end_s(self, start_s: float, steps: int) -> float:
        """When so many of them are over: an arithmetic series."""
        return start_s + steps * self.first_s + steps * (steps - 1) * 0.5 * self.growth_s


@dataclass(slots=True)
class Stretch:
    """Steps of one server, and whom they served."""

    start_s: float
    before: int  # the steps of this server before it
    plan: Steps
    live: int  # sequences that get a token in each step
    rows: int  # sequences that each step costs: more than `live` in a static batch
    chunk: int  # prompt tokens beside them

    @property
    def steps(self) -> int:
        """How many they are."""
        return self.plan.steps

    @property
    def end_s(self) -> float:
        """When all of its steps are over."""
        return self.after(self.steps)

    def after(self, steps: int) -> float:
        """When so many of its steps are over."""
        return self.plan.end_s(self.start_s, steps)

    def by(self, time_s: float) -> int:
        """How many of its steps were over by then."""
        if self.start_s >= time_s:
            return 0
        if self.end_s <= time_s:
            return self.steps
        return bisect_right(range(1, self.steps), time_s, key=self.after)


@dataclass(slots=True)
class Stay:
    """One time in a slot: a prefill, which gives a token where it is not cut off, and decode steps.

    A time is NaN until it has come: `first_s` for ever where the prefill was cut off, `decode_s` where the
    sequence never decodes.
    """

    start_s: float  # the prefill begins
    cached: int  # tokens found in the prefix cache
    computed: int = 0  # tokens prefilled
    prefiller: int = 0  # the server that prefills: another one only where prefill is disaggregated
    server: int = 0
    slot: int = 0
    first_s: float = math.nan  # the prefill ends, with a token
    decode_s: float = math.nan  # it can decode from then on
    last_s: float = math.nan  # its last token comes
    end_s: float = math.nan
    from_step: int = 0  # decode steps from_step + 1 to to_step of that server give a token each
    to_step: int = 0

    @property
    def tokens(self) -> int:
        """Tokens that came of it, the prefill's first."""
        return 1 + self.to_step - self.from_step if not math.isnan(self.first_s) else 0


def times(stay: Stay, stretches: list[Stretch]) -> Iterator[float]:
    """When each of a stay's tokens came."""
    if not stay.tokens:
        return
    yield stay.first_s
    at = bisect_right(stretches, stay.from_step, key=lambda stretch: stretch.before) - 1
    step = stay.from_step
    while step < stay.to_step:
        stretch = stretches[at]
        upto = min(stay.to_step, stretch.before + stretch.steps)
        for i in range(step - stretch.before, upto - stretch.before):
            yield stretch.after(i + 1)
        step, at = upto, at + 1
