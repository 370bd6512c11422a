"""What is known of a request while it is on its way, and when did each of its steps end?

Stretches of decode steps are told by their first step and what each takes longer. Chapter: Inference.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scalingbook_lib.serving.requests import Request


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


@dataclass(slots=True, eq=False)
class LiveSequence:
    """A request on its way: its tokens, its blocks, its stay in a slot and those before."""

    request: Request
    index: int  # among the requests, as given
    order: int = -1  # of arrival
    outcome: str = ""  # finished, cancelled or refused
    stage: str = ""  # where prefill and decode are disaggregated: what it does
    evictions: int = 0
    emitted: int = 0  # tokens of its answer
    filled: int = 0  # tokens in the cache
    own: int = 0  # blocks of its own
    shared: int = 0  # blocks of its family's prefix
    held: int = 0  # blocks on a decode server, until it decodes there
    offset: int = 0  # its length, less the steps of its server
    end_s: float = math.nan
    stay: Stay = field(init=False)  # from the beginning of its first prefill on
    stays: list[Stay] = field(default_factory=list)  # that are over

    @property
    def tokens(self) -> int:
        """What a prefill has to put into the cache: the prompt, and what was answered before an eviction."""
        return self.request.prompt + self.emitted

    @property
    def most_tokens(self) -> int:
        """What the cache ever has of it: nobody attends to the last token of an answer."""
        return self.request.prompt + self.request.output - 1

    @property
    def decoding(self) -> bool:
        """Whether it has got as far, in this stay."""
        return not math.isnan(self.stay.decode_s)

    def sent(self, now: float) -> None:
        """Whoever waits for an answer to send it, sends it now; its patience begins now."""
        asked = self.request
        patience_s = asked.cancel_s - asked.arrival_s
        self.request = replace(asked, arrival_s=now, cancel_s=now + patience_s)

    def begin(self, now: float) -> None:
        """Its prefill begins, a new stay: what is in the cache now was found there."""
        self.stay = Stay(now, self.filled)

    def stayed(self, step: int, last_s: float, now: float) -> None:
        """A time in a slot is over; where it decoded, the last step was `step`, over at last_s."""
        stay = self.stay
        if not self.decoding:
            stay.from_step = step
        stay.last_s = stay.first_s if step == stay.from_step else last_s
        stay.to_step, stay.end_s, stay.computed = step, now, self.filled - stay.cached
        self.stays.append(stay)
        self.emitted += step - stay.from_step


def mean_context(pieces: list[tuple[LiveSequence, int]], chunk: int) -> float:
    """The earlier tokens of each prompt, if a chunk were as many tokens of each.

    A piece of c tokens after s others makes c (s + c / 2) pairs of tokens; these make as many as all pieces.
    """
    if len(pieces) == 1:
        [(sequence, _)] = pieces
        return sequence.filled
    pairs = sum([part * (s.filled + part / 2) for s, part in pieces])
    return max(pairs / chunk - chunk / (2 * len(pieces)), 0.0)


# A run makes several of these records for each of its requests. With slots, and not frozen, one is made and
# read in half the time of a tuple with names; no one changes a stretch, or a stay that is over.
