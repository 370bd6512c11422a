"""The Pareto front of ways to serve a model: those that no other beats in both latency and cost.

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
LATENCY, BATCH = "latency", "the batch size"
"""The kinds of rejection of options that miss the targets, and of batch sizes that do not fit."""


class Option(NamedTuple):
    """One way to serve: its latencies, and the cost of a million output tokens, prompts included."""

    itl_s: float
    cost: float
    ttft_s: float
    serving: Serving
    machine: Machine

    @property
    def layout(self) -> Layout:
        """The layout of one replica of the model."""
        return self.serving.step.layout

    @property
    def copies(self) -> int:
        """The number of replicas that the machine holds."""
        return self.machine.chips // self.layout.chips

    @property
    def sequences(self) -> float:
        """The number of sequences that one replica serves at once."""
        return self.serving.slots

    @property
    def bottleneck(self) -> str:
        """What takes longest: "prompts", or the longest term of the decode step."""
        # more than half of the time: no term of decoding can be more
        return "prompts" if self.serving.prefill_share > 0.5 else self.serving.step.bottleneck

    def __str__(self) -> str:
        replicas = f"{self.copies:,} replicas" if self.copies > 1 else "one replica"
        return f"{replicas} on {self.machine.name}: {self.serving}"


@dataclass(frozen=True, slots=True)
class Front(Result):
    """The Pareto front of all possible ways to serve these requests, from the fastest to the cheapest.

    `itl_s` is the mean time between two tokens of a sequence, and `cost` is the cost of a million output
    tokens in `unit`. `layouts` and `ways` (layouts with a batch size) count the search space; `options` are
    those that were evaluated, including those that miss the targets. A search that was `stopped` has seen
    only a part.
    """

    model: Transformer
    machines: tuple[Machine, ...]
    P: int
    G: int
    unit: str
    usd_as_of: str | None  # the date of the oldest price; None if the price was given
    targets: dict[str, float]
    points: tuple[Option, ...]
    layouts: int
    ways: int
    options: tuple[Option, ...] = field(repr=False)
    rejected: tuple[Rejected, ...]
    stopped: bool = False

    @property
    def judged(self) -> int:
        """The number of ways that were evaluated; bounds show that these include the best."""
        return len(self.options)

    @property
    def best(self) -> Option:
        """The cheapest option; raises a ValueError with the reasons if there is none."""
        return self._all[-1]

    @property
    def fastest(self) -> Option:
        """The option with the least time between two tokens."""
        return self._all[0]

    @property
    def _all(self) -> tuple[Option, ...]:
        if not self.points:
            raise ValueError(str(self))
        return self.points

    def within(self, itl_s: float) -> Option:
        """The cheapest option with at most that inter-token latency (ITL) in seconds."""
        in_time = [p for p in self.points if p.itl_s <= itl_s]
        if not in_time:
            raise ValueError(
                f"no option has an ITL of {si(itl_s, 's')}; the fastest has {si(self.fastest.itl_s, 's')}"
            )
        return in_time[-1]

    @property
    def counts(self) -> str:
        """The size of the search space, and the reasons for which layouts were rejected."""
        refused = "; ".join(map(str, self.rejected)) or "none"
        return f"{self.searched}; rejected: {refused}"

    @property
    def searched(self) -> str:
        """The size of the search space, and how much of it was evaluated."""
        return (
            f"{self.layouts:,} layouts, {self.ways:,} with batch sizes, {self.judged:,} evaluated, "
            f"{len(self.points):,} on the Pareto front"
        )

    @property
    def misses(self) -> tuple[Rejected, ...]:
        """Why there is no option: the targets or the batch size if anything fits, or the most frequent."""
        late = tuple(one for one in self.rejected if one.kind in (LATENCY, BATCH))
        return late or self.rejected[:2]

    def price(self, option: Option) -> str:
        """The cost of a million output tokens with three significant digits: '$4.00' and '$12.4'."""
        cost = f"{option.cost:#.3g}" if 0.1 <= option.cost < 99.9 else count(rounded(option.cost))
        return f"${cost}" if self.unit == USD else f"{cost} {self.unit}"

    def __str__(self) -> str:
        where = " or ".join(m.name for m in self.machines)
        head = f"{self.model.name}, {count(self.P)} prompt and {count(self.G)} output tokens, on {where}"
        if not self.points:
            return f"{head}: no layout fits these requests. {self.counts}"
        since = f" (prices of {self.usd_as_of})" if self.usd_as_of else ""
        ends = {"cheapest": self.best, "fastest": self.fastest}
        told = [f"{name}: {self.price(one)} per million output tokens, {one}" for name, one in ends.items()]
        return "\n".join((head + since, *told, self.counts))

    def __iter__(self) -> Iterator[Option]:
        return iter(self.points)


def pareto(options: list[Option]) -> tuple[Option, ...]:
    """Return the Pareto-optimal options, sorted by latency; each is cheaper than all before it."""
    found: list[Option] = []
    # layouts last, so that of equals the same one is always found
    for one in sorted(options, key=lambda o: (o.itl_s, o.cost, o.layout.chips, str(o.layout))):
        if not found or one.cost < found[-1].cost * (1 - 1e-12):  # nearer than this is rounding
            found.append(one)
    return tuple(found)
