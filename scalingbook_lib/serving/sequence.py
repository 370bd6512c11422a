"""The state of one request while a server works on it, and the end times of its steps.

Consecutive decode steps are stored as one `StepRun`: the first step's time and the increase per step.
Chapter: Inference.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scalingbook_lib.serving.requests import Request


@dataclass(slots=True)
class DecodeSteps:
    """Consecutive decode steps; step i (from 0) takes first_s + i · growth_s seconds."""

    steps: int
    first_s: float
    growth_s: float  # each step reads one more token per sequence

    def end_s(self, start_s: float, steps: int) -> float:
        """The time in seconds at which the first `steps` of them end, when they start at `start_s`."""
        return start_s + steps * self.first_s + steps * (steps - 1) * 0.5 * self.growth_s


@dataclass(slots=True)
class StepRun:
    """Consecutive steps of one server with the same sequences."""

    start_s: float
    first_step: int  # decode steps of this server before the first of these
    plan: DecodeSteps
    live: int  # sequences that get a token in each step
    rows: int  # sequences that are computed: more than `live` in a static batch, which pads
    chunk: int  # prompt tokens prefilled in the same step

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.plan.steps

    @property
    def end_s(self) -> float:
        """The time in seconds at which the last step ends."""
        return self.time_after(self.steps)

    def time_after(self, steps: int) -> float:
        """The time in seconds at which the first `steps` steps have ended."""
        return self.plan.end_s(self.start_s, steps)

    def steps_by(self, time_s: float) -> int:
        """The number of steps that have ended by `time_s`."""
        if self.start_s >= time_s:
            return 0
        if self.end_s <= time_s:
            return self.steps
        return bisect_right(range(1, self.steps), time_s, key=self.time_after)


@dataclass(slots=True)
class Residency:
    """One stay of a sequence in a slot: a prefill, which produces a token unless cancelled, and decode steps.

    Times are in seconds, NaN until they are known: `first_s` stays NaN if the prefill was cancelled,
    `decode_s` if the sequence never decodes.
    """

    start_s: float  # start of the prefill
    cached: int  # prefix-cache hits, in tokens
    computed: int = 0  # tokens prefilled
    prefiller: int = 0  # the prefill server, if prefill is disaggregated
    server: int = 0
    slot: int = 0
    first_s: float = math.nan  # end of the prefill, with the first token
    decode_s: float = math.nan  # from here it can decode
    last_s: float = math.nan  # its last token
    end_s: float = math.nan
    from_step: int = 0  # decode steps from_step + 1 to to_step of `server` produce one token each
    to_step: int = 0
    loaded: int = 0  # the tokens among `cached` that were loaded from host memory

    @property
    def tokens(self) -> int:
        """The output tokens produced in this slot, including the prefill's."""
        return 1 + self.to_step - self.from_step if not math.isnan(self.first_s) else 0


def token_times(residency: Residency, step_runs: list[StepRun]) -> Iterator[float]:
    """The time in seconds at which each token of a residency was produced."""
    if not residency.tokens:
        return
    yield residency.first_s
    at = bisect_right(step_runs, residency.from_step, key=lambda step_run: step_run.first_step) - 1
    step = residency.from_step
    while step < residency.to_step:
        step_run = step_runs[at]
        upto = min(residency.to_step, step_run.first_step + step_run.steps)
        for i in range(step - step_run.first_step, upto - step_run.first_step):
            yield step_run.time_after(i + 1)
        step, at = upto, at + 1


@dataclass(slots=True, eq=False)
class LiveSequence:
    """A request in progress: its tokens, its cache blocks, and its residencies in slots."""

    request: Request
    index: int  # position among the requests as given
    order: int = -1  # position by arrival
    outcome: str = ""  # finished, cancelled or refused
    stage: str = ""  # with disaggregation: waiting, prefilling, awaiting slot, transferring, decoding
    evictions: int = 0
    emitted: int = 0  # output tokens so far
    filled: int = 0  # tokens in the cache
    own_blocks: int = 0  # blocks that only it uses
    shared_blocks: int = 0  # blocks of its family's cached prefix
    reserved_blocks: int = 0  # blocks reserved on a decode server during the KV transfer
    offset: int = 0  # its length minus the decode steps of its server
    loaded: int = 0  # tokens that its next prefill has to load from host memory first
    end_s: float = math.nan
    next_turn: "LiveSequence | None" = None  # the request that its session sends after it
    tool_s: float = 0.0  # seconds between its end and the next turn
    residency: Residency = field(init=False)  # set when its first prefill starts
    residencies: list[Residency] = field(default_factory=list)  # completed ones

    @property
    def tokens(self) -> int:
        """The tokens that a prefill must cache: the prompt, and any output from before an eviction."""
        return self.request.prompt + self.emitted

    @property
    def max_cached_tokens(self) -> int:
        """The most tokens that it can hold in the cache; the last output token is never attended to."""
        return self.request.prompt + self.request.output - 1

    @property
    def decoding(self) -> bool:
        """Whether it decodes in its current residency."""
        return not math.isnan(self.residency.decode_s)

    def set_arrival(self, now: float) -> None:
        """Let it arrive at `now`, with the same time until its cancellation as before."""
        asked = self.request
        patience_s = asked.cancel_s - asked.arrival_s
        self.request = replace(asked, arrival_s=now, cancel_s=now + patience_s)

    def start_residency(self, now: float) -> None:
        """Start a prefill in a new residency; the tokens already in the cache are prefix-cache hits."""
        self.residency = Residency(now, self.filled, loaded=self.loaded)

    def end_residency(self, step: int, last_s: float, now: float) -> None:
        """Close the current residency after decode step number `step`, which ended at `last_s`."""
        residency = self.residency
        if not self.decoding:
            residency.from_step = step
        residency.last_s = residency.first_s if step == residency.from_step else last_s
        residency.to_step, residency.end_s, residency.computed = step, now, self.filled - residency.cached
        self.residencies.append(residency)
        self.emitted += step - residency.from_step


def mean_chunk_context(pieces: list[tuple[LiveSequence, int]], chunk: int) -> float:
    """The mean number of earlier tokens with which equal chunks cost as much as `pieces`, in tokens.

    A chunk of c tokens after s earlier ones has c (s + c / 2) query-key pairs; their sum is preserved.
    """
    if len(pieces) == 1:
        [(sequence, _)] = pieces
        return sequence.filled
    pairs = sum([part * (s.filled + part / 2) for s, part in pieces])
    return max(pairs / chunk - chunk / (2 * len(pieces)), 0.0)


# These records have slots and are not frozen because a run creates several per request: creating and reading
# one takes half as long as a NamedTuple. Completed ones are never changed.
