"""Which ways to serve need judging? Those that no bound rules out: branch and bound over layouts and batches.

A way is left out where one that was judged is as fast and cheaper than its bounds. Chapter: Serving Llama 3.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from typing import Any, NamedTuple

from scalingbook_lib.inference import Layout, ServingEfficiency, case
from scalingbook_lib.inference import serve as steady
from scalingbook_lib.machines import Machine
from scalingbook_lib.planner.bounds import Bound, LeastTimes, bound
from scalingbook_lib.planner.front import Option
from scalingbook_lib.planner.watch import Watch
from scalingbook_lib.planner.ways import Way, Ways, how_many, sizes, uncached


class Group(NamedTuple):
    """What bounds many ways: its `least` is kept, as they are asked for the same batches."""

    bound: Bound
    least: Callable[[float, int, str], LeastTimes]


class Least(NamedTuple):
    """What a range of batches takes at least: latency, cost, and the factor by which it is late."""

    itl_s: float
    cost: float
    late: float


@dataclass(kw_only=True, slots=True)
class Judge:
    """What is asked of every way, and the best that were judged."""

    ways: Ways
    efficiency: ServingEfficiency
    targets: dict[str, float]
    batches: tuple[int, ...] | None
    _found: list[tuple[int, Option]] = field(default_factory=list)  # with the places of their ways
    _near: float = inf  # the least that a late one is too late by, a factor
    _front: list[tuple[float, float]] = field(default_factory=list)  # latency, cost: slower ones are cheaper
    _groups: dict[Any, Group] = field(default_factory=dict)

    def run(self, ways: list[Way], watch: Watch, *, every: bool) -> bool:
        """Judge all batches of all ways, or those that may be on the front; whether `watch` ended it."""
        steps = ((way, self._sizes(way)) for way in ways) if every else self._hopeful(ways)
        for done, (way, batches) in enumerate(steps):
            for B in batches:
                self._judge(way, B)
            if watch(done, len(ways)) and self._found:
                return True
        return False

    @property
    def options(self) -> list[Option]:
        """What was judged, in the order of the layouts."""
        return [one for _, one in sorted(self._found, key=lambda found: found[0])]

    def count(self, way: Way) -> int:
        """How many batches there are."""
        return how_many(way.most) if self.batches is None else len(self._sizes(way))

    def late(self, itl_s: float, ttft_s: float) -> float:
        """The factor by which latencies are over a target; at most 1 where they meet all."""
        times = {"itl_s": itl_s, "ttft_s": ttft_s}
        return max((times[name] / most for name, most in self.targets.items()), default=0.0)

    def _sizes(self, way: Way) -> list[int]:
        return sizes(way.most) if self.batches is None else sorted(b for b in self.batches if b <= way.most)

    def _judge(self, way: Way, B: int) -> None:
        how = self.ways.asked | {"policy": way.policy, "efficiency": self.efficiency}
        s = steady(self.ways.model, way.machine, way.layout, batch=B, **how)
        # as `inference.price`, in whatever the price is in
        cost = way.price * s.chips / 3600 / s.tokens_per_s * 1e6
        one = Option(s.itl_s, cost, s.ttft_s, s, way.machine)
        self._found.append((way.place, one))
        if (late := self.late(one.itl_s, one.ttft_s)) > 1:
            self._near = min(self._near, late)
        elif not self._beaten(one.itl_s, one.cost):
            self._front = [p for p in self._front if p[0] < one.itl_s or p[1] < one.cost]
            insort(self._front, (one.itl_s, one.cost))

    def _hopeful(self, ways: list[Way]) -> Iterator[tuple[Way, Iterable[int]]]:
        """Each with the batches that no bound rules out; what is good early rules out more."""
        promises = []
        for way in ways:
            on = self._group(way)
            least = self._least(way, 1, way.most, on)
            # the best of both first, so that the front is near its end before most are asked
            promises.append((least.itl_s * least.cost, least, way, on))
        promises.sort(key=lambda one: one[0])
        for _, least, way, on in promises:
            yield way, self._exactly(way, on) if self._may(least) else ()

    def _exactly(self, way: Way, on: Group) -> Iterator[int]:
        """By the bound of the group, which many layouts share, then by the layout's own."""
        own = None
        for B in self._alive(way, self._sizes(way), on):
            if own is None:
                bound = self._bound(way.machine, way.layout)
                own = Group(bound, bound.least)
            if self._may(self._least(way, B, B, own)):
                yield B

    def _alive(self, way: Way, batches: list[int], on: Group) -> Iterator[int]:
        """Halved until single batches are left."""
        if not batches or not self._may(self._least(way, batches[0], batches[-1], on)):
            return
        if len(batches) == 1:
            yield batches[0]
            return
        # bounds grow with the batch one way only, so that a half may be ruled out whole
        half = len(batches) // 2
        yield from self._alive(way, batches[:half], on)
        yield from self._alive(way, batches[half:], on)

    def _least(self, way: Way, fewest: int, most: int, on: Group) -> Least:
        """Of a range of batches: none is faster than its fewest sequences, none cheaper than its most."""
        pp, policy = way.layout.pp, way.policy
        first = on.least(fewest, pp, policy)
        cheapest = first.cost if fewest == most else on.least(most, pp, policy).cost
        late = self.late(first.itl_s, first.ttft_s) if self.targets else 0.0
        return Least(first.itl_s, way.price * cheapest, late)

    def _may(self, least: Least) -> bool:
        """Whether one may be on the front; or where it is late, be the least late."""
        return least.late < self._near if least.late > 1 else not self._beaten(least.itl_s, least.cost)

    def _beaten(self, itl_s: float, cost: float) -> bool:
        at = bisect_right(self._front, itl_s, key=lambda point: point[0])
        return at > 0 and self._front[at - 1][1] < cost

    def _group(self, way: Way) -> Group:
        """What bounds all layouts of a tensor group, however they split the cache and the layers."""
        key = id(way.machine), uncached(way.layout)  # a machine takes longer to hash than to bound
        if key not in self._groups:
            plain = replace(way.layout, pp=1, kv_batch=1, kv_sequence=1)
            bound = self._bound(way.machine, plain, any_cache=True)
            self._groups[key] = Group(bound, cache(bound.least))
        return self._groups[key]

    def _bound(self, machine: Machine, layout: Layout, *, any_cache: bool = False) -> Bound:
        on = case(self.ways.model, machine, layout, self.efficiency)
        return bound(on, **self.ways.asked, any_cache=any_cache)
