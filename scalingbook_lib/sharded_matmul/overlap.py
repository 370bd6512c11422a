"""What does a collective matmul save, which moves one chunk while it multiplies another?"""

from dataclasses import dataclass

from scalingbook_lib import roofline
from scalingbook_lib.units import Told, si


@dataclass(frozen=True, slots=True)
class Overlap(Told):
    """A collective matmul: the moves and the arithmetic in chunks, one's move under another's arithmetic."""

    chunks: int
    chip_s: float
    comms_s: float

    @property
    def total_s(self) -> float:
        """max + min / n: the longer runs without a gap, and one chunk of the shorter sticks out."""
        return roofline.pipelined(self.chip_s, self.comms_s, self.chunks)

    @property
    def saved(self) -> float:
        """The share of the unoverlapped time that is saved: a half at the most."""
        plain = self.chip_s + self.comms_s
        return 1 - self.total_s / plain if plain else 0.0

    @property
    def spans(self) -> tuple[tuple[str, float, float], ...]:
        """Every chunk's (lane, start, end), on the lanes 'network' and 'chip'."""
        move, multiply = self.comms_s / self.chunks, self.chip_s / self.chunks
        spans, free = [], 0.0
        for k in range(self.chunks):
            start = max(free, (k + 1) * move)
            free = start + multiply
            spans += [("network", k * move, (k + 1) * move), ("chip", start, free)]
        return tuple(spans)

    def __str__(self) -> str:
        total, plain = si(self.total_s, "s"), si(self.chip_s + self.comms_s, "s")
        return f"{self.chunks} chunks: {total}, where one after the other takes {plain}"
