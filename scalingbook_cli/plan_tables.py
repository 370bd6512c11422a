"""The tables, values and derivation of a training step: times, memory, collectives, and the whole run."""

from collections.abc import Iterator

from scalingbook_cli import shared
from scalingbook_cli.answer import (
    SHARE,
    DerivationLine,
    TextTable,
    fields_of,
    figure,
    name_value_table,
    product,
)
from scalingbook_cli.shared import sum_line
from scalingbook_lib.calibrated.memory_margin import MemoryMargin
from scalingbook_lib.calibrated.overhead import ChipHourOverhead
from scalingbook_lib.calibrated.pessimistic import Pessimistic
from scalingbook_lib.calibrated.recommendation import Published
from scalingbook_lib.machines.age import ChipPrice
from scalingbook_lib.planner import Ranking, Sensitivity
from scalingbook_lib.training import Plan, PlannedRun, TrainingCollective, TrainingStep
from scalingbook_lib.units import count, percent, si

_WAYS = ("tp", "cp", "fsdp", "pp", "dp", "ep")
_SPLIT = ("tp", "cp", "pp", "ep", "zero", "microbatch", "schedule", "chunks", "remat")


def tables(
    step: TrainingStep, run: PlannedRun | None, added: ChipHourOverhead | None
) -> tuple[TextTable, ...]:
    """Tables of time, memory, traffic, and the run if its tokens are given."""
    shares = ("MFU", percent(step.mfu, 3)), ("HFU", percent(step.hfu, 3))
    rate = "tokens", si(step.tokens_per_s, "tokens/s")
    time = shared.times("Time", step.terms, step.total_s, *shares, rate)
    found = (time, shared.memory(step.memory, step.machine.chip), _traffic(step.traffic))
    return (*found, _run(run, added)) if run else found


def best(ranking: Ranking, objective: Pessimistic) -> TextTable:
    """The best plans, one per row."""
    columns = ("", *_WAYS, "ZeRO", "mb", "schedule", "remat", "step", "P80", "MFU", "memory", "loses most to")
    rows = []
    for place, one in enumerate(ranking.best, start=1):
        step = one.step
        seconds = si(step.total_s, "s"), si(objective.p80(step), "s")
        times = (*seconds, percent(step.mfu), si(step.memory.total, "B"), step.loss)
        rows.append((str(place), *_plan(one.plan), *times))
    return TextTable("Best plans", columns, tuple(rows))


def _plan(plan: Plan) -> tuple[str, ...]:
    ways = (*(getattr(plan, way) for way in _WAYS), plan.zero, plan.microbatch)
    return (*(f"{n:,}" for n in ways), plan.schedule + f" {plan.chunks}" * (plan.chunks > 1), plan.remat)


def search_values(ranking: Ranking) -> dict[str, object]:
    """Counts of the search, rejections, and the best plans, for JSON."""
    return {
        **fields_of(ranking, "spreads", "legal", "judged", "pruned", "stopped"),
        "rejected": shared.rejected_values(ranking.rejected),
        "best": [
            {
                "plan": shared.way_values(one.plan),
                "step_s": one.step.total_s,
                "mfu": one.step.mfu,
                "memory_bytes": one.step.memory.total,
            }
            for one in ranking.best
        ],
    }


def confidence_values(
    step: TrainingStep,
    objective: Pessimistic,
    margin: MemoryMargin,
    headroom: float,
    near: Published,
) -> dict[str, object]:
    """How certain the step and its memory are, and the nearest published plan, for JSON."""
    chip = step.machine.chip
    return {
        "p80_step_s": objective.p80(step),
        "degrees_not_published": list(objective.outside(step.plan)),
        "headroom": headroom,
        "fits_with_probability": margin.probability(step.memory.total, chip.hbm_bytes),
        "memory_count_error": margin.error,
        "nearest_published": {
            **fields_of(near.plan, "id", "model", "chip", "mfu"),
            "chips": near.plan.shape.chips,
            "sequence_tokens": near.plan.shape.T,
            "plan": {name: getattr(near.plan.on(step.chips), name) for name in _SPLIT},
            "step_s": near.step.total_s if near.step else None,
            "memory_bytes": near.step.memory.total if near.step else None,
        },
    }


def changes(changed: Sensitivity) -> TextTable:
    """The step time after each hardware change, with the same plan and with the best one then."""
    rows = []
    for one in changed.changes:
        times = (si(one.same_s, "s"), si(one.then.step.total_s, "s"))
        rows.append((f"{one.what} × {one.factor:g}", *times, f"{one.gain:.3g}"))
    return name_value_table("What if", rows, ("", "this plan", "the best then", "times as fast"))


def change_values(changed: Sensitivity) -> list[dict[str, object]]:
    """The same for JSON."""
    return [
        {
            **fields_of(one, "what", "factor"),
            "same_plan_step_s": one.same_s,
            "step_s": one.then.step.total_s,
            "gain": one.gain,
            "plan": shared.way_values(one.then.plan),
        }
        for one in changed.changes
    ]


def _traffic(traffic: tuple[TrainingCollective, ...]) -> TextTable:
    return name_value_table(
        "Collectives of one step, hidden or waited for",
        map(_row, traffic),
        ("of", "collective", "pass", "chips", "array", "times", "each", "all", "can hide"),
    )


def _row(row: TrainingCollective) -> tuple[str, ...]:
    what = (row.name, f"{row.what} {row.axes}", row.when, f"{row.n:,}", si(row.nbytes, "B"))
    times = (count(row.times), si(row.each_s, "s"), si(row.seconds, "s"))
    return (*what, *times, "yes" if row.overlappable else "no")


def _run(run: PlannedRun, added: ChipHourOverhead | None) -> TextTable:
    """The run as planned, and as it is likely to be billed."""
    runs = {"planned": run} | ({"billed": added.of(run)} if added else {})
    rows = [
        ("tokens", *(si(one.tokens) for one in runs.values())),
        ("days", *(count(one.days) for one in runs.values())),
        ("chip-hours", *(si(one.chip_hours) for one in runs.values())),
    ]
    if run.usd is not None:
        rows.append(("USD", *(count(round(one.usd or 0.0)) for one in runs.values())))
        rows.append(("a chip", *(str(ChipPrice(run.usd_per_hour, run.usd_as_of)), "")[: len(runs)]))
    if run.power_w is not None:
        energies = (one.energy for one in runs.values())
        rows.append(("MWh, the chips alone", *(count(round(e.mwh, 1)) for e in energies if e)))
    return name_value_table("The whole run", rows, ("", *runs))


def values(step: TrainingStep, run: PlannedRun | None, added: ChipHourOverhead | None) -> dict[str, object]:
    """The step and the run as a dictionary, for JSON."""
    found: dict[str, object] = {
        "step_s": step.total_s,
        "terms_s": step.terms,
        **fields_of(step, "mfu", "hfu"),
        "tokens_per_step": step.tokens,
        **fields_of(step, "tokens_per_s", "flops_per_s_per_chip", "useful_flops", "hardware_flops"),
        **fields_of(step, "binds", "unbind"),
        **shared.memory_values(step.memory, step.machine.chip),
        "traffic": [
            {
                "name": row.name,
                "collective": row.what,
                "axes": row.axes,
                "pass": row.when,
                "chips": row.n,
                "array_bytes": row.nbytes,
                "times": row.times,
                "each_s": row.each_s,
                "total_s": row.seconds,
                "overlappable": row.overlappable,
            }
            for row in step.traffic
        ],
    }
    if run:
        joules = run.energy.joules if run.energy else None
        told = fields_of(run, "tokens", "days", "chip_hours", "usd", "usd_per_hour", "usd_as_of", "power_w")
        found["run"] = told | {"chips_joules": joules}
    if run and added:
        factors = fields_of(added, "factor", "slower_steps", "other_overheads", "interval_factor")
        found["billed"] = fields_of(added.of(run), "days", "chip_hours", "usd") | {"factors": factors}
    return found


def derivation(step: TrainingStep, run: PlannedRun | None) -> Iterator[DerivationLine]:
    """The lines for every collective, the step, MFU and HFU, memory, and the run."""
    for row in step.traffic:
        name = f"T, {row.name}, {row.what} over {row.n:,} chips, {row.when}"
        yield DerivationLine(
            name, "times · (seconds of one)", product(row.times, row.each_s), row.seconds, "s"
        )
    formula, numbers = "FLOPs / (chips · C · efficiency)", "forward and backward, the mean stage"
    for name, took in step.math.items():
        if took:
            yield DerivationLine(f"T_math, {name}", formula, numbers, took, "s")
    yield sum_line("T", step.terms, step.total_s, "s")
    yield _share("MFU", "useful FLOPs", step, step.useful_flops, step.mfu)
    yield _share("HFU", "all FLOPs", step, step.hardware_flops, step.hfu)
    yield sum_line("memory of one chip", step.memory.terms, step.memory.total, "B")
    if run:
        numbers = f"{figure(run.tokens)} / {figure(step.tokens)} · {figure(step.total_s)}"
        yield DerivationLine("T, the whole run", "tokens / (tokens of a step) · T", numbers, run.seconds, "s")
        numbers = f"{product(run.chips, run.seconds)} / 3600"
        yield DerivationLine("chip-hours", "chips · T / 3600", numbers, run.chip_hours)
        if run.usd is not None and run.usd_per_hour is not None:
            numbers = product(run.chip_hours, run.usd_per_hour)
            yield DerivationLine("USD", "chip-hours · (USD an hour)", numbers, run.usd, "USD")


def _share(name: str, what: str, step: TrainingStep, flops: float, share: float) -> DerivationLine:
    numbers = f"{figure(flops)} / ({product(step.total_s, step.peak_flops_per_s)})"
    return DerivationLine(name, f"{what} / (T · chips · C)", numbers, share, SHARE)
