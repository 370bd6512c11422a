"""A search for the best ways to serve a model: which machine, which layout, which batch size.

All layouts that a machine allows are considered, with batches from one sequence to all that fit. Those that
no bound rules out are evaluated at the steady state of `inference.serve`. Lower latency costs more, so the
result is a Pareto front. Chapter: Serving Llama 3.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from scalingbook_lib.inference import PEAK, PLAIN, POLICIES, Drafting, ServingEfficiency
from scalingbook_lib.machines import Machine
from scalingbook_lib.machines.age import price_of
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner.front import BATCH, HOURS, LATENCY, USD, Front, Option, pareto
from scalingbook_lib.planner.promising import Evaluator
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.planner.ways import Way, Ways
from scalingbook_lib.units import count, si
from scalingbook_lib.words import pluralize


def serve(
    model: Transformer,
    machines: Machine | tuple[Machine, ...],
    *,
    P: int,
    G: int,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, tuple[Any, ...]] | None = None,
    batches: tuple[int, ...] | None = None,
    ttft_s: float | None = None,
    itl_s: float | None = None,
    usd_per_hour: float | None = None,
    policies: tuple[str, ...] = POLICIES,
    chunk: int = 512,
    cached: int = 0,
    drafting: Drafting = PLAIN,
    reserve: float = 0.0,
    efficiency: ServingEfficiency = PEAK,
    every: bool = False,
    watch: Watch = unwatched,
) -> Front:
    """The Pareto front of ways to serve requests of P prompt and G output tokens, by latency and cost.

    `machines` are one machine or several, such as all sizes of a slice; replicas fill each. `fixed` gives
    fields of `inference.Layout` their only value, as in `fixed=dict(weights=INT8, pp=1)`; `tried` gives the
    values to try for a field, which are all divisors by default. `batches` are the batch sizes of a replica,
    by default 1, 2, 3, 4, 6, 8, 12, ... and the largest that fits. `cached` prompt tokens are in the prefix
    cache, and `drafting` describes speculative decoding. Options slower than `ttft_s` or `itl_s` are left
    out. Costs are in USD if every machine has a price (or `usd_per_hour` of one chip is given), and otherwise
    in chip-hours. With `every`, options are evaluated even if a bound shows that another beats them; `watch`
    follows the search.

    Raises a ValueError for machines of different chips of which one has no price.
    """
    known: dict[str, Any] = {"fixed": fixed or {}, "tried": tried or {}, "chunk": chunk, "reserve": reserve}
    known |= {"cached": cached, "drafting": drafting}
    ways = Ways(model=model, P=P, G=G, policies=policies, **known)
    targets = {name: s for name, s in (("ttft_s", ttft_s), ("itl_s", itl_s)) if s is not None}
    evaluator = Evaluator(ways=ways, efficiency=efficiency, targets=targets, batches=batches)
    asked = machines if isinstance(machines, tuple) else (machines,)
    return _searched(evaluator, asked, usd_per_hour, every=every, watch=watch)


def _searched(
    evaluator: Evaluator,
    machines: tuple[Machine, ...],
    usd_per_hour: float | None,
    *,
    every: bool,
    watch: Watch,
) -> Front:
    ways, (unit, prices) = evaluator.ways, _prices(machines, usd_per_hour)
    days = {price.as_of for m in machines if (price := price_of(m.chip, usd_per_hour)).as_of}
    found = (way for priced in zip(machines, prices, strict=True) for way in ways.on(*priced))
    there = list(_until(watch, found))
    stopped = evaluator.run(there, watch, every=every)
    number = sum(map(evaluator.count, there))  # layouts times policies times batches
    if there and not number and evaluator.batches:  # no batch size fits
        roomy = max(there, key=lambda way: way.most)
        fits = f"{roomy.layout.degrees} holds at most {pluralize(roomy.most, 'sequence')}"
        why = f"{fits}, fewer than the batch size of {min(evaluator.batches):,}"
        ways.rejections.refuse(BATCH, len(there), why)
    in_time = _in_time(evaluator, len(evaluator.options) if stopped else number)
    return Front(
        model=ways.model,
        machines=machines,
        P=ways.P,
        G=ways.G,
        unit=unit,
        usd_as_of=min(days, default=None) if unit == USD else None,
        targets=evaluator.targets,
        points=pareto(in_time),
        layouts=ways.layouts,
        ways=number,
        options=tuple(evaluator.options),
        rejected=ways.rejections.rejected,
        stopped=stopped,
    )


def _until(watch: Watch, ways: Iterable[Way]) -> Iterator[Way]:
    """Yield the ways that are found before `watch` ends the search, but at least one."""
    for found, way in enumerate(ways, start=1):
        yield way
        if watch(found, 0):
            return


def _in_time(evaluator: Evaluator, ways: int) -> list[Option]:
    """Return the options that meet the targets; count those that are too slow, and keep the nearest."""
    over = [(evaluator.slo_violation(o.itl_s, o.ttft_s), o) for o in evaluator.options]
    late, in_time = [one for one in over if one[0] > 1], [o for factor, o in over if factor <= 1]
    if late:  # if none meets the targets, those that were not evaluated miss them by more
        nearest = min(late, key=lambda one: one[0])[1]
        some = in_time and len(over) < ways
        among = f"{LATENCY}, among the evaluated layouts"
        kind, slow = (among, len(late)) if some else (LATENCY, ways - len(in_time))
        evaluator.ways.rejections.refuse(kind, slow, _exceeded(nearest, evaluator.targets))
    return in_time


def _exceeded(option: Option, targets: dict[str, float]) -> str:
    """The targets that an option exceeds: 'ITL 13.6 ms, and the target is 1 ms, with TP 8 and ...'."""
    times = {"itl_s": ("ITL", option.itl_s), "ttft_s": ("TTFT", option.ttft_s)}
    over = [(*times[name], most) for name, most in targets.items() if times[name][1] > most]
    told = "; ".join(f"{name} {si(s, 's')}, and the target is {si(most, 's')}" for name, s, most in over)
    return f"{told}, with {option.layout.degrees} and a batch size of {count(round(option.sequences))}"


def _prices(machines: tuple[Machine, ...], given: float | None) -> tuple[str, list[float]]:
    """Return the unit of costs, and the price of a chip-hour for each machine."""
    found = [price_of(m.chip, given).usd_per_hour for m in machines]
    if all(p is not None for p in found):
        return USD, [p for p in found if p is not None]
    # chip-hours of different chips cannot be compared without prices
    if len({m.chip for m in machines}) > 1:
        bare = sorted({m.chip.name for m, p in zip(machines, found, strict=True) if p is None})
        raise ValueError(
            f"{', '.join(bare)}: no price, and different chips cannot be compared without; "
            "give usd_per_hour=... or machines of one chip"
        )
    return HOURS, [1.0] * len(machines)
