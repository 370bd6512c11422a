"""Branch and bound over serving layouts and batch sizes: only those that no bound rules out are evaluated.

A way to serve is pruned if an evaluated one is as fast as its lower bound and cheaper. Chapter: Serving Llama
3.
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
from scalingbook_lib.rules import usd_per_million


class WayGroup(NamedTuple):
    """The bound of many ways; `least` is cached, because the ways have the same batch sizes."""

    bound: Bound
    least: Callable[[float, int, str], LeastTimes]


class Least(NamedTuple):
    """Lower bounds for a range of batch sizes: latency, cost, and the factor over the targets."""

    itl_s: float
    cost: float
    slo_violation: float


@dataclass(kw_only=True, slots=True)
class Evaluator:
    """The evaluation of ways for one question, and the best options so far."""

    ways: Ways
    efficiency: ServingEfficiency
    targets: dict[str, float]
    batches: tuple[int, ...] | None
    _found: list[tuple[int, Option]] = field(default_factory=list)  # with the places of their ways
    _nearest_miss: float = inf  # the smallest violation of the targets
    _front: list[tuple[float, float]] = field(default_factory=list)  # latency, cost: slower ones are cheaper
    _groups: dict[Any, WayGroup] = field(default_factory=dict)

    def run(self, ways: list[Way], watch: Watch, *, every: bool) -> bool:
        """Evaluate all ways, or those that may be on the front; return whether `watch` ended the search."""
        steps = ((way, self._sizes(way)) for way in ways) if every else self._candidates(ways)
        for done, (way, batches) in enumerate(steps):
            for B in batches:
                self._evaluate(way, B)
            if watch(done, len(ways)) and self._found:
                return True
        return False

    @property
    def options(self) -> list[Option]:
        """The evaluated options, in the order of the layouts."""
        return [one for _, one in sorted(self._found, key=lambda found: found[0])]

    def count(self, way: Way) -> int:
        """Return the number of batch sizes of a way."""
        return how_many(way.most) if self.batches is None else len(self._sizes(way))

    def slo_violation(self, itl_s: float, ttft_s: float) -> float:
        """Return the factor by which latencies exceed a target; at most 1 if they meet all targets."""
        times = {"itl_s": itl_s, "ttft_s": ttft_s}
        return max((times[name] / most for name, most in self.targets.items()), default=0.0)

    def _sizes(self, way: Way) -> list[int]:
        return sizes(way.most) if self.batches is None else sorted(b for b in self.batches if b <= way.most)

    def _evaluate(self, way: Way, B: int) -> None:
        how = self.ways.asked | {"policy": way.policy, "efficiency": self.efficiency}
        s = steady(self.ways.model, way.machine, way.layout, batch=B, **how)
        cost = usd_per_million(way.price, chips=s.chips, tokens_per_s=s.tokens_per_s)  # in the price's unit
        one = Option(s.itl_s, cost, s.ttft_s, s, way.machine)
        self._found.append((way.place, one))
        if (violation := self.slo_violation(one.itl_s, one.ttft_s)) > 1:
            self._nearest_miss = min(self._nearest_miss, violation)
        elif not self._is_dominated(one.itl_s, one.cost):
            self._front = [p for p in self._front if p[0] < one.itl_s or p[1] < one.cost]
            insort(self._front, (one.itl_s, one.cost))

    def _candidates(self, ways: list[Way]) -> Iterator[tuple[Way, Iterable[int]]]:
        """Yield each way with the batch sizes that no bound rules out, the most promising ways first."""
        promises = []
        for way in ways:
            on = self._group(way)
            least = self._least(way, 1, way.most, on)
            # the best products of both first, so that the front is nearly complete early
            promises.append((least.itl_s * least.cost, least, way, on))
        promises.sort(key=lambda one: one[0])
        for _, least, way, on in promises:
            yield way, self._exactly(way, on) if self._may_be_best(least) else ()

    def _exactly(self, way: Way, on: WayGroup) -> Iterator[int]:
        """Yield the batch sizes that pass the bound of the group, and then that of the layout itself."""
        own = None
        for B in self._not_ruled_out(way, self._sizes(way), on):
            if own is None:
                bound = self._bound(way.machine, way.layout)
                own = WayGroup(bound, bound.least)
            if self._may_be_best(self._least(way, B, B, own)):
                yield B

    def _not_ruled_out(self, way: Way, batches: list[int], on: WayGroup) -> Iterator[int]:
        """Yield the batch sizes that the bound does not rule out, by bisection."""
        if not batches or not self._may_be_best(self._least(way, batches[0], batches[-1], on)):
            return
        if len(batches) == 1:
            yield batches[0]
            return
        # bounds are monotone in the batch, so a whole half may be ruled out at once
        half = len(batches) // 2
        yield from self._not_ruled_out(way, batches[:half], on)
        yield from self._not_ruled_out(way, batches[half:], on)

    def _least(self, way: Way, fewest: int, most: int, on: WayGroup) -> Least:
        """Return the bounds of a range: the smallest batch is the fastest, and the largest the cheapest."""
        pp, policy = way.layout.pp, way.policy
        first = on.least(fewest, pp, policy)
        cheapest = first.cost if fewest == most else on.least(most, pp, policy).cost
        violation = self.slo_violation(first.itl_s, first.ttft_s) if self.targets else 0.0
        return Least(first.itl_s, way.price * cheapest, violation)

    def _may_be_best(self, least: Least) -> bool:
        """Return whether an option may be on the front, or be the nearest miss of the targets."""
        return (
            least.slo_violation < self._nearest_miss
            if least.slo_violation > 1
            else not self._is_dominated(least.itl_s, least.cost)
        )

    def _is_dominated(self, itl_s: float, cost: float) -> bool:
        at = bisect_right(self._front, itl_s, key=lambda point: point[0])
        return at > 0 and self._front[at - 1][1] < cost

    def _group(self, way: Way) -> WayGroup:
        """Return the bound of all layouts of a TP group, for any sharding of cache and layers."""
        key = id(way.machine), uncached(way.layout)  # hashing a machine takes longer than computing a bound
        if key not in self._groups:
            plain = replace(way.layout, pp=1, kv_batch=1, kv_sequence=1)
            bound = self._bound(way.machine, plain, any_cache=True)
            self._groups[key] = WayGroup(bound, cache(bound.least))
        return self._groups[key]

    def _bound(self, machine: Machine, layout: Layout, *, any_cache: bool = False) -> Bound:
        on = case(self.ways.model, machine, layout, self.efficiency)
        return bound(on, **self.ways.asked, any_cache=any_cache)
