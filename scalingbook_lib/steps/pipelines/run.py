"""What did a pipeline do in one step? Every task with its times, the idle share, and what was held.

Chapter: Training.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from scalingbook_lib.units import Told, percent, si

type Number = int | float | Fraction


class Span(NamedTuple):
    """One task of one stage; kind F forward, B backward, W the weights' backward where it was put off.

    A forward and a backward that overlap share their time: one starts where the other ends.
    """

    stage: int
    kind: str
    microbatch: int
    chunk: int
    start: Number
    end: Number


def share(part: Number, whole: Number) -> Number:
    """Part over whole, exact for exact numbers."""
    if not whole:
        return 0
    return part / whole if isinstance(part, float) or isinstance(whole, float) else Fraction(part) / whole


@dataclass(frozen=True, slots=True)
class Run(Told):
    """One step of a schedule, played out."""

    schedule: str
    stages: int
    microbatches: int
    chunks: int
    spans: tuple[Span, ...]
    total_s: Number
    work_s: tuple[Number, ...]  # what each stage has to do
    live: tuple[Number, ...]  # the most microbatches whose activations each stage holds at once

    @property
    def idle_s(self) -> Number:
        """How long a stage does nothing: the most idle one, where "dualpipe" overlaps more in some."""
        return self.total_s - min(self.work_s)

    @property
    def bubble(self) -> Number:
        """The share of the step in which a stage is idle."""
        return share(self.idle_s, self.total_s)

    @property
    def overhead(self) -> Number:
        """Idle time over work: how much longer the step is than without a pipeline."""
        return share(self.idle_s, min(self.work_s))

    def stage(self, s: int) -> tuple[Span, ...]:
        """What that stage did, in order."""
        return tuple(span for span in self.spans if span.stage == s)

    def __str__(self) -> str:
        chunks = f" of {self.chunks} chunks" if self.chunks > 1 else ""
        held = si(float(max(self.live)))
        return (
            f"{self.schedule}, {self.stages} stages{chunks}, {self.microbatches} microbatches: "
            f"{si(float(self.total_s), 's')}, idle {percent(float(self.bubble))} of the time "
            f"({percent(float(self.overhead))} over the work); a stage holds up to {held} microbatches"
        )
