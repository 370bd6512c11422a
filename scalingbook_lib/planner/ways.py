"""All ways to serve: every layout that a machine allows, and how many sequences fit.

Chapter: Serving Llama 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from scalingbook_lib.inference import PEAK, PLAIN, Drafting, Layout, LayoutError
from scalingbook_lib.inference.memory import held_by, room_for
from scalingbook_lib.inference.shape import ServingShape, resplit, shape
from scalingbook_lib.inference.traffic import rows as collectives_of
from scalingbook_lib.machines import Cluster, ClusterError, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.meshes import degrees, divisors, indivisible
from scalingbook_lib.planner.rejections import RejectionStats
from scalingbook_lib.words import pluralize

WAYS = ("tp", "cp", "pp", "rows", "ep", "attention_dp", "kv_batch", "kv_sequence")


class Way(NamedTuple):
    """One layout under one scheduling policy, with any batch up to the largest that fits."""

    place: int  # in the order in which they are found
    machine: Machine
    price: float  # per chip-hour
    layout: Layout
    policy: str
    most: int


@dataclass(kw_only=True, slots=True)
class Ways:
    """All ways for one question; `layouts` and `rejections` are counted while they are found."""

    model: Transformer
    P: int
    G: int
    fixed: dict[str, Any]
    tried: dict[str, tuple[Any, ...]]
    policies: tuple[str, ...]
    chunk: int
    reserve: float
    cached: int = 0
    drafting: Drafting = PLAIN
    layouts: int = 0
    places: int = 0
    rejections: RejectionStats = field(default_factory=RejectionStats)
    _shapes: dict[tuple[int, ...], ServingShape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.drafting.check(self.model)
        self.tried = self.tried | {name: (self.fixed[name],) for name in WAYS if name in self.fixed}

    @property
    def asked(self) -> dict[str, Any]:
        """The requests, the largest number of prompt tokens in a step, and the speculative decoding."""
        lengths = {"P": self.P, "G": self.G, "cached": self.cached}
        return lengths | {"chunk": self.chunk, "drafting": self.drafting}

    def on(self, machine: Machine, price: float) -> Iterator[Way]:
        """Yield the ways on one machine that fit in memory."""
        constant = {name: value for name, value in self.fixed.items() if name not in WAYS}
        before = self.layouts
        for ways in self._spreads(machine.chips):
            self.layouts += 1
            try:
                layout = Layout(**ways, **constant)
                layout.check(self.model)
            except LayoutError as refused:
                self.rejections.refuse("the model's sizes", 1, str(refused))
                continue
            try:
                self._placed(machine, layout)
            except ClusterError as refused:
                self.rejections.refuse("the machine's domains", 1, str(refused))
                continue
            for policy, most in self._most(machine, layout):
                self.places += 1
                yield Way(self.places, machine, price, layout, policy, most)
        if self.layouts == before:
            self.rejections.refuse("the degrees", 1, self._indivisible(machine.chips))

    def _indivisible(self, chips: int) -> str:
        """Return which of the given degrees leave no layout on so many chips."""
        asked = {name: values for name, values in self.tried.items() if name in WAYS}
        most = max((tp for tp, _, _ in self._chips(chips)), default=0)
        whole, what = (most, f"tp={most}") if most else (chips, f"the {pluralize(chips, 'chip')}")
        for name in WAYS[3:] if most else WAYS[:3]:
            if name in asked and not degrees(self.tried, name, whole):
                return indivisible(name, asked[name], whole, what)
        told = ", ".join(f"{name}={' or '.join(map(str, values))}" for name, values in asked.items())
        return f"{told}: no layout on {pluralize(chips, 'chip')} has all of these; leave out one of them"

    def _placed(self, machine: Machine, layout: Layout) -> None:
        """Raise a ClusterError if a group of chips would lie in unequal parts of domains."""
        if isinstance(machine, Cluster) and machine.chips & machine.chips - 1:  # powers of two always fit
            collectives_of(self._shape(layout), machine, PEAK)

    def _most(self, machine: Machine, layout: Layout) -> Iterator[tuple[str, int]]:
        """The number of sequences that fit, half generated on average; if none fits, the reason is kept."""
        S, s = ceil(self.P + self.G / 2), self._shape(layout)
        held: dict[str, Any] = {"S": S, "reserve": self.reserve, "draft": self.drafting.shape(layout)}
        fit = room_for(s, machine, **held)
        for policy in self.policies:
            most = fit
            if policy == "chunked" and fit < self.chunk:  # a step has more tokens than sequences
                most = room_for(s, machine, step_tokens=self.chunk, **held)
            if most:
                yield policy, most
                continue
            one = held_by(s, machine, batch=1, **held)
            if self.rejections.count("memory", 1, one.total):
                self.rejections.closest("memory", f"{layout}: {one}", None, one.total)

    def _shape(self, layout: Layout) -> ServingShape:
        """Return the shape; layouts that differ only in stages and cache sharding share the work."""
        group = uncached(layout)
        split = *group, layout.kv_heads
        if group not in self._shapes:
            self._shapes[group] = shape(self.model, layout)
        if split not in self._shapes:
            self._shapes[split] = resplit(self._shapes[group], layout)
        return resplit(self._shapes[split], layout)

    def _spreads(self, chips: int) -> Iterator[dict[str, int]]:
        """The degrees of a layout, each a divisor of what is left; CP only if it is requested.

        KV heads are sharded before they are replicated.
        """
        for tp, cp, pp in self._chips(chips):
            for dp in degrees(self.tried, "attention_dp", tp):
                for kv_batch, kv_sequence in self._cache(tp // dp):
                    for rows in degrees(self.tried, "rows", tp if dp == 1 else 1):
                        for ep in degrees(
                            self.tried,
                            "ep",
                            tp if (self.model.experts or "ep" in self.tried) and rows == 1 else 1,
                        ):
                            ways = (tp, cp, pp, rows, ep, dp, kv_batch, kv_sequence)
                            yield dict(zip(WAYS, ways, strict=True))

    def _chips(self, chips: int) -> Iterator[tuple[int, int, int]]:
        """The TP, CP and PP degrees of a replica, whose product divides the number of chips."""
        for tp in degrees(self.tried, "tp", chips):
            for cp in degrees(self.tried, "cp", chips // tp) if "cp" in self.tried else (1,):
                for pp in degrees(self.tried, "pp", chips // tp // cp):
                    yield tp, cp, pp

    def _cache(self, group: int) -> Iterator[tuple[int, int]]:
        """Yield the cache degrees over sequences and tokens, for the chips that heads do not use."""
        for heads in divisors(group):
            rest = group // heads  # chips beyond the heads
            # one or the other; mixtures are not tried
            for both in dict.fromkeys(((rest, 1), (1, rest))):
                fits = (
                    heads <= max(self.model.K, 1) or "kv_batch" in self.tried or "kv_sequence" in self.tried
                )
                named = zip(("kv_batch", "kv_sequence"), both, strict=True)
                if fits and all(n in degrees(self.tried, name, rest) for name, n in named):
                    yield both


def uncached(layout: Layout) -> tuple[int, ...]:
    """Return a key of a layout without its cache sharding and stages."""
    return layout.tp, layout.cp, layout.rows, layout.ep, layout.attention_dp


def sizes(most: int) -> list[int]:
    """Return the batch sizes 1, 2, 3, 4, 6, 8, 12, 16, ... up to and including `most`."""
    # steps of a third to a half
    found = {n for k in range(most.bit_length()) for n in (1 << k, 3 << k >> 1) if 0 < n <= most}
    return sorted(found | ({most} if most else set()))


def how_many(most: int) -> int:
    """Return the number of batch sizes in `sizes(most)` without listing them."""
    odd = most >> ((most & -most).bit_length() - 1)
    return most.bit_length() + (most // 3).bit_length() + (odd not in (1, 3))
