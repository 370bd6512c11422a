"""Which ways to serve are worth choosing? Those that no other beats in latency and in cost.

Chapter: Serving Llama 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scalingbook_lib.inference import Layout, Serving
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.rejections import Rejected
from scalingbook_lib.units import Result, count, rounded, si

USD, HOURS = "USD", "chip-hours"


class Option(NamedTuple):
    """One way to serve: its latencies, and the cost of a million output tokens, prompts included."""

    itl_s: float
    cost: float
    ttft_s: float
    serving: Serving
    machine: Machine

    @property
    def layout(self) -> Layout:
        """How one copy of the model is spread."""
        return self.serving.step.layout

    @property
    def copies(self) -> int:
        """How many copies the machine holds."""
        return self.machine.chips // self.layout.chips

    @property
    def B(self) -> float:
        """Sequences that one copy serves at once."""
        return self.serving.slots

    @property
    def binds(self) -> str:
        """What takes longest: the prompts, or a term of the decode step."""
        # more than half of the time: no term of decoding can be more
        return "prompts" if self.serving.prefill_share > 0.5 else self.serving.step.binds

    def __str__(self) -> str:
        copies = f"{self.copies:,} copies" if self.copies > 1 else "one copy"
        return f"{copies} on {self.machine.name}: {self.serving}"


@dataclass(frozen=True, slots=True)
class Front(Result):
    """Of all legal ways to serve these requests, those that none beats; from the fastest to the cheapest.

    `itl_s` is the mean time between two tokens of a sequence, `cost` that of a million output tokens in
    `unit`. There are so many `ways` of so many `layouts`; `options` are those that were judged, those that
    miss the targets too. A search that was `stopped` has seen a part of them.
    """

    model: Transformer
    machines: tuple[Machine, ...]
    P: int
    G: int
    unit: str
    usd_as_of: str | None  # the day of the oldest price among them; None where the price was given
    targets: dict[str, float]
    points: tuple[Option, ...]
    layouts: int
    ways: int
    options: tuple[Option, ...] = field(repr=False)
    rejected: tuple[Rejected, ...]
    stopped: bool = False

    @property
    def judged(self) -> int:
        """How many ways were judged; the bounds of the others show that one of these beats them."""
        return len(self.options)

    @property
    def best(self) -> Option:
        """The cheapest; a ValueError with the reasons where there is none."""
        return self._all[-1]

    @property
    def fastest(self) -> Option:
        """The one with the least time between two tokens."""
        return self._all[0]

    @property
    def _all(self) -> tuple[Option, ...]:
        if not self.points:
            raise ValueError(str(self))
        return self.points

    def within(self, itl_s: float) -> Option:
        """The cheapest that gives every sequence a token in that time."""
        in_time = [p for p in self.points if p.itl_s <= itl_s]
        if not in_time:
            raise ValueError(f"no token in {si(itl_s, 's')}: the fastest takes {si(self.fastest.itl_s, 's')}")
        return in_time[-1]

    @property
    def counts(self) -> str:
        """How many ways there are, and why not more."""
        refused = "; ".join(map(str, self.rejected)) or "none"
        return (
            f"{self.layouts:,} layouts, {self.ways:,} ways to serve with batches, {self.judged:,} judged, "
            f"{len(self.points):,} that none beats; rejected: {refused}"
        )

    def price(self, option: Option) -> str:
        """The cost of a million output tokens."""
        cost = count(rounded(option.cost))
        return f"${cost}" if self.unit == USD else f"{cost} {self.unit}"

    def __str__(self) -> str:
        where = " or ".join(m.name for m in self.machines)
        head = f"{self.model.name}, {count(self.P)} prompt and {count(self.G)} output tokens, on {where}"
        if not self.points:
            return f"{head}: no way to serve meets what is asked. {self.counts}"
        one, other = self.best, self.fastest
        since = f" (prices of {self.usd_as_of})" if self.usd_as_of else ""
        return (
            f"{head}: the cheapest takes {self.price(one)} for a million output tokens{since}, one "
            f"every {si(one.itl_s, 's')} for each of {count(one.B, 4)} sequences on {one.layout} "
            f"({one.binds} binds); the fastest {self.price(other)}, one every {si(other.itl_s, 's')} for "
            f"each of {count(other.B, 4)} on {other.layout}. {self.counts}"
        )

    def __iter__(self) -> Iterator[Option]:
        return iter(self.points)


def pareto(options: list[Option]) -> tuple[Option, ...]:
    """Those that no other beats: sorted by latency, each cheaper than all before."""
    found: list[Option] = []
    # layouts last, so that of equals the same one is always found
    for one in sorted(options, key=lambda o: (o.itl_s, o.cost, o.layout.chips, str(o.layout))):
        if not found or one.cost < found[-1].cost * (1 - 1e-12):  # nearer than this is rounding
            found.append(one)
    return tuple(found)
