"""Which of all legal plans is the fastest?

Chapter: Training LLaMA 3.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from scalingbook_lib.machines import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.fast import Fast
from scalingbook_lib.planner.one_by_one import OneByOne
from scalingbook_lib.planner.ranking import Judged, Point, Ranking, first
from scalingbook_lib.planner.space import Space, has_laws, needs_plans, space
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.serving.simulate import no_garbage
from scalingbook_lib.training import PEAK, TrainingEfficiency


def plans(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    T: int,
    pods: int = 1,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    efficiency: TrainingEfficiency = PEAK,
    keep: int = 10,
    every: bool = False,
    watch: Watch = unwatched,
) -> Ranking:
    """Every legal plan for `batch` sequences of T tokens on `pods` such machines, judged; the best first.

    `fixed`: fields of `training.Plan` with the one value they may have, `fixed=dict(tp=8, remat="full")`;
    `tried`: the values to try for a field, else those of `space.TRIED`, and all divisors for the ways of
    the mesh. With `every`, plans are judged too that no law lets be faster (see `Ranking`). `watch` is told
    how many plans are judged, and says whether to end with the best so far.
    """
    asked = space(model, machine, batch=batch, T=T, pods=pods, fixed=fixed or {}, tried=tried or {})
    seen = _judged(asked, efficiency, every or not has_laws(asked), watch)
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
        best=(),
        spreads=seen.legal + asked.tally.total,
        rejected=asked.tally.rejected,
        **seen._asdict(),
    )
    best = tuple(Judged(step.plan, step) for step in map(ranking.step, first(seen.points, keep)))
    return replace(ranking, best=best)


class _Seen(NamedTuple):
    """The legal plans, how many spreads are legal, and how many plans no law lets be faster."""

    points: list[Point]
    legal: int
    spared: int
    stopped: bool


def _judged(asked: Space, efficiency: TrainingEfficiency, every: bool, watch: Watch) -> _Seen:
    # both judge alike: a test holds the fast way to the other over whole spaces
    judge = (OneByOne if needs_plans(asked) else Fast)(asked, efficiency).judge
    found: list[Point] = []
    legal = spared = 0
    with no_garbage():  # to look for it takes a tenth of a search's time
        for group in asked.groups():
            if watch(len(found), 0) and found:
                return _Seen(found, legal, spared, stopped=True)
            here, more = judge(group, every, found)
            legal, spared = legal + here, spared + more
    return _Seen(found, legal, spared, stopped=False)
