"""What is known of a request while it is on its way? Chapter: Inference."""

import math
from dataclasses import replace
from typing import Any

from scalingbook_lib.serving.requests import Request
from scalingbook_lib.serving.timeline import Stay


class Sequence:
    """A request on its way."""

    __slots__ = (
        "cached", "decode_s", "emitted", "end_s", "evictions", "filled", "first_s", "from_step", "held",
        "index", "offset", "order", "outcome", "own", "prefiller", "request", "server", "shared", "slot",
        "stage", "start_s", "stays",
    )  # fmt: skip

    def __init__(self, request: Request, index: int) -> None:
        self.request, self.index = request, index
        self.order = index  # of arrival, from then on
        self.outcome = ""  # finished, cancelled or refused
        self.stage, self.held = "", 0  # where prefill and decode are apart: what it does; blocks for it there
        self.evictions = self.emitted = self.own = self.shared = self.filled = self.cached = 0
        self.offset = self.from_step = self.slot = self.server = self.prefiller = 0
        self.start_s = self.first_s = self.decode_s = self.end_s = math.nan
        self.stays: list[Stay] = []

    @property
    def tokens(self) -> int:
        """What a prefill has to put into the cache: the prompt, and what was answered before an eviction."""
        return self.request.prompt + self.emitted

    def sent(self, now: float) -> None:
        """Whoever waits for an answer to send it, sends it now; its patience begins now."""
        asked = self.request
        patience_s = asked.cancel_s - asked.arrival_s
        self.request = replace(asked, arrival_s=now, cancel_s=now + patience_s)

    @property
    def version(self) -> int:
        """What is due for it is void after an eviction."""
        return self.evictions

    def stayed(self, step: int, last_s: float, now: float) -> None:
        """A time in a slot is over; where it decoded, the last step was `step`, over at last_s."""
        if self.decode_s != self.decode_s:
            self.from_step = step
        if step == self.from_step:
            last_s = self.first_s
        row = (
            self.server, self.slot, self.prefiller, self.start_s, self.first_s, self.decode_s, last_s, now,
            self.from_step, step, self.filled - self.cached, self.cached,
        )  # fmt: skip
        self.stays.append(Stay._make(row))
        self.emitted += step - self.from_step


def beside(pieces: list[tuple[Sequence, int]], chunk: int) -> tuple[Any, ...]:
    """The earlier tokens of each prompt, and the prompts, if a chunk were as many tokens of each.

    A piece of c tokens after s others makes c (s + c / 2) pairs of tokens; these make as many as all pieces.
    """
    if len(pieces) == 1:
        return (pieces[0][0].filled,)
    pairs = sum([part * (s.filled + part / 2) for s, part in pieces])
    return max(pairs / chunk - chunk / (2 * len(pieces)), 0.0), len(pieces)
