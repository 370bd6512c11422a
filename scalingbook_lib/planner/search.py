"""Which of all legal plans is the fastest?

Chapter: Training LLaMA 3.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.fast import Fast
from scalingbook_lib.planner.one_by_one import OneByOne
from scalingbook_lib.planner.ranking import Judged, Point, Ranking, first
from scalingbook_lib.planner.space import Space, has_laws, needs_plans, space
from scalingbook_lib.training import PEAK, Efficiency


def plans(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    T: int,
    pods: int = 1,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    efficiency: Efficiency = PEAK,
    keep: int = 10,
    every: bool = False,
) -> Ranking:
    """Every legal plan for `batch` sequences of T tokens on `pods` such machines, judged; the best first.

    `fixed`: fields of `training.Plan` with the one value they may have, `fixed=dict(tp=8, remat="full")`;
    `tried`: the values to try for a field, else those of `space.TRIED`, and all divisors for the ways of
    the mesh. With `every`, plans are judged too that no law lets be faster (see `Ranking`).
    """
    asked = space(model, machine, batch=batch, T=T, pods=pods, fixed=fixed or {}, tried=tried or {})
    search = _Search(asked, efficiency, every)
    ranking = Ranking(
        model=model,
        machine=machine,
        batch=batch,
        T=T,
        efficiency=efficiency,
        pods=asked.pods,
        fixed=fixed or {},
        tried=tried or {},
        constant=asked.constant,
        points=search.points(),  # the search: what it counts is asked for below
        best=(),
        spreads=search.legal + asked.tally.total,
        legal=search.legal,
        spared=search.spared,
        rejected=asked.tally.rejected,
    )
    best = map(ranking.step, first(ranking.points, keep))
    return replace(ranking, best=tuple(Judged(step.plan, step) for step in best))


class _Search:
    """One run: groups of spreads, judged; counts beside them."""

    def __init__(self, asked: Space, efficiency: Efficiency, every: bool) -> None:
        self.space = asked
        kind = OneByOne if needs_plans(asked) else Fast
        self.judge = kind(asked, efficiency)
        self.every = every or not has_laws(asked)
        self.legal = self.spared = 0

    def points(self) -> list[Point]:
        found: list[Point] = []
        with _all_kept():
            for group in self.space.groups():
                legal, spared = self.judge.judge(group, self.every, found)
                self.legal, self.spared = self.legal + legal, self.spared + spared
        return found


@contextmanager
def _all_kept() -> Iterator[None]:
    """A search makes no cycles: to look for garbage while it runs takes a tenth of its time, for nothing."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
