"""Which ways to serve need judging? Those that no bound rules out: branch and bound over layouts and batches.

A way is left out where one that was judged is as fast and cheaper than its bounds. Chapter: Serving LLaMA 3.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from scalingbook_lib.inference import Efficiency, Layout, case
from scalingbook_lib.inference import serve as steady
from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.bounds import SLACK, Bound, bound
from scalingbook_lib.planner.front import Option
from scalingbook_lib.planner.ways import Way, how_many, sizes, uncached

type Watch = Callable[[int, int], bool]  # how many of how many ways are done; whether to end


@dataclass(kw_only=True, slots=True)
class Judge:
    """What is asked of every way, and the best that were judged."""

    model: Transformer
    asked: dict[str, Any]  # P, G, chunk
    efficiency: Efficiency
    prices: dict[Machine, float]  # of a chip-hour
    targets: dict[str, float]
    batches: tuple[int, ...] | None
    _found: list[tuple[int, Option]] = field(default_factory=list)  # with the places of their ways
    _near: float = inf  # the least that a late one is too late by, a factor
    _front: list[tuple[float, float]] = field(default_factory=list)  # latency and cost, each cheaper than all before
    _bounds: dict[Any, Bound] = field(default_factory=dict)

    def run(self, ways: list[Way], watch: Watch, *, every: bool) -> bool:
        """Judge all batches of all ways, or those that may be on the front; whether `watch` ended it."""
        order = ways if every else sorted(ways, key=self._promise)  # what is good early rules out more
        for done, way in enumerate(order):
            if watch(done, len(order)):
                return True
            for B in self._sizes(way) if every else self._hopeful(way):
                self._judge(way, B)
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
        return sizes(way.most) if self.batches is None else [b for b in self.batches if b <= way.most]

    def _judge(self, way: Way, B: int) -> None:
        how: dict[str, Any] = self.asked | {"policy": way.policy, "efficiency": self.efficiency}
        s = steady(self.model, way.machine, way.layout, batch=B, **how)
        cost = self.prices[way.machine] * s.chips / 3600 / s.tokens_per_s * 1e6
        one = Option(s.itl_s, cost, s.ttft_s, s, way.machine)
        self._found.append((way.place, one))
        if (late := self.late(one.itl_s, one.ttft_s)) > 1:
            self._near = min(self._near, late)
        elif not self._beaten(one.itl_s, one.cost):
            self._front = [p for p in self._front if p[0] < one.itl_s or p[1] < one.cost]
            insort(self._front, (one.itl_s, one.cost))

    def _promise(self, way: Way) -> float:
        """The product of the least latency and the least cost that a way can have."""
        on, pp = self._group(way), way.layout.pp
        return on.least(1, pp, way.policy)[0] * on.least(way.most, pp, way.policy)[1] * self.prices[way.machine]

    def _hopeful(self, way: Way) -> Iterator[int]:
        """The batches that no bound rules out: that of the group first, which many layouts share."""
        exact = None
        for B in self._alive(way, self._sizes(way), self._group(way)):
            exact = exact or self._bound(way.machine, way.layout)
            if self._may(way, B, B, exact):
                yield B

    def _alive(self, way: Way, batches: list[int], on: Bound) -> Iterator[int]:
        """Halved until single batches are left."""
        if not batches or not self._may(way, batches[0], batches[-1], on):
            return
        if len(batches) == 1:
            yield batches[0]
            return
        half = len(batches) // 2
        yield from self._alive(way, batches[:half], on)
        yield from self._alive(way, batches[half:], on)

    def _may(self, way: Way, least: int, most: int, on: Bound) -> bool:
        """Whether a batch in that interval may be on the front: none is faster than its least, or cheaper than its most."""
        pp, policy = way.layout.pp, way.policy
        itl_s, cost = on.least(least, pp, policy)[0], on.least(most, pp, policy)[1]
        late = self.late(itl_s, on.ttft_s(itl_s, policy)) if self.targets else 0.0
        return late < self._near if late > 1 else not self._beaten(itl_s, self.prices[way.machine] * cost)

    def _beaten(self, itl_s: float, cost: float) -> bool:
        at = bisect_right(self._front, itl_s, key=lambda point: point[0])
        return at > 0 and self._front[at - 1][1] < cost

    def _group(self, way: Way) -> Bound:
        """What bounds all layouts of a tensor group, however they split the cache and the layers."""
        key = way.machine.name, way.machine.chips, uncached(way.layout)
        if key not in self._bounds:
            plain = replace(way.layout, pp=1, kv_batch=1, kv_sequence=1)
            self._bounds[key] = self._bound(way.machine, plain, any_cache=True)
        return self._bounds[key]

    def _bound(self, machine: Machine, layout: Layout, *, any_cache: bool = False) -> Bound:
        return bound(case(self.model, machine, layout, self.efficiency), **self.asked, any_cache=any_cache)
