"""How long does one collective take, and which of its terms is the larger?

A bandwidth term, a latency term, and the textbook's form beside them. Chapter: Sharding.
"""

from dataclasses import dataclass

from scalingbook_lib.units import Told, si


@dataclass(frozen=True, slots=True)
class Transfer(Told):
    """The time of a collective: bytes over bandwidth, plus a latency for every hop in a row."""

    name: str
    bandwidth_s: float
    latency_s: float
    textbook_s: float

    @property
    def total_s(self) -> float:
        """The last byte has arrived: the two terms added, as the step-by-step schedule has it."""
        return self.bandwidth_s + self.latency_s

    @property
    def bound(self) -> str:
        """The larger of the two terms: 'bandwidth' or 'latency'."""
        return "latency" if self.latency_s > self.bandwidth_s else "bandwidth"

    @property
    def textbook_error(self) -> float:
        """How far the textbook's form is off, relative to the exact time (0 where nothing moves)."""
        return self.textbook_s / self.total_s - 1 if self.total_s else 0.0

    def __add__(self, other: "Transfer") -> "Transfer":
        """One after the other: every term adds."""
        return Transfer(
            " + ".join(name for name in (self.name, other.name) if name),
            self.bandwidth_s + other.bandwidth_s,
            self.latency_s + other.latency_s,
            self.textbook_s + other.textbook_s,
        )

    def __str__(self) -> str:
        if not self.total_s:
            return f"{self.name or 'nothing to move'}: free"
        terms = (
            f"{si(float(self.bandwidth_s), 's')} for the bytes, {si(float(self.latency_s), 's')} for the hops"
        )
        return f"{self.name}: {si(float(self.total_s), 's')} ({terms}), {self.bound}-bound"


NOTHING = Transfer("", 0, 0, 0)
