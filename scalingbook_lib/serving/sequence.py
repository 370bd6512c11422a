"""What is known of a request while it is on its way? Chapter: Inference."""

import math
from dataclasses import dataclass, field, replace

from scalingbook_lib.serving.requests import Request
from scalingbook_lib.serving.timeline import Stay


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
