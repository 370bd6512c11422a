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
from scalingbook_lib.calibrated.confidence import Confidence
from scalingbook_lib.calibrated.overhead import ChipHourOverhead
from scalingbook_lib.calibrated.pessimistic import Pessimistic
from scalingbook_lib.machines.age import ChipPrice
from scalingbook_lib.planner import Ranking, Sensitivity
from scalingbook_lib.training import Plan, PlannedRun, TrainingCollective, TrainingStep
from scalingbook_lib.training.plan import WAYS
from scalingbook_lib.units import count, count_in_words, percent, rounded, si

_DEGREES = {name: WAYS[name] for name in ("tp", "cp", "ep", "pp", "fsdp", "dp")}
OVERHEAD = "largest overhead"
_SETTINGS = {"zero": "ZeRO", "microbatch": "MBS", "schedule": "schedule", "remat": "remat"}
_SPLIT = ("tp", "cp", "pp", "ep", "zero", "microbatch", "schedule", "chunks", "remat")


def tables(
    step: TrainingStep, run: PlannedRun | None, added: ChipHourOverhead | None
) -> tuple[TextTable, ...]:
    """Tables of time, memory, traffic, and the run if its tokens are given."""
    more = ("total at documented peaks", si(step.peak_s, "s")), ("HFU", percent(step.hfu, 3))
    time = shared.times("Time of a step", step.terms, step.total_s, *more)
    found = (time, shared.memory(step.memory, step.machine.chip), _traffic(step.traffic))
    return (*found, _run(run, added)) if run else found


def best(ranking: Ranking, objective: Pessimistic) -> TextTable:
    """The best plans, one per row; degrees of 1 and settings that all plans share have no column.

    In a narrow terminal the largest overhead is left out first, then the P80 and MFU, which follow the time.
    """
    plans = [one.plan for one in ranking.best]
    named = {name: label for name, label in _DEGREES.items() if any(getattr(p, name) > 1 for p in plans)}
    named |= {name: label for name, label in _SETTINGS.items() if len({_cell(p, name) for p in plans}) > 1}
    columns = ("", *named.values(), "step time", "P80", "MFU", "memory", OVERHEAD)
    rows = []
    for place, one in enumerate(ranking.best, start=1):
        step = one.step
        times = si(step.total_s, "s"), si(objective.p80(step), "s")
        numbers = (*times, percent(step.mfu), si(step.memory.total, "B"))
        cells = (_cell(one.plan, name) for name in named)
        rows.append((str(place), *cells, *numbers, step.largest_overhead))
    title = f"Best plans for {ranking.model.name} on {ranking.machine.name}"
    return TextTable(
        title, columns, tuple(rows), words=(0, len(columns) - 1), optional=(OVERHEAD, "P80", "MFU")
    )


def _cell(plan: Plan, name: str) -> str:
    """A field of a plan as a table shows it; the schedule includes its chunks per stage."""
    if name == "schedule":
        return "" if plan.pp == 1 else f"{plan.schedule} {plan.chunks}" if plan.chunks > 1 else plan.schedule
    value = getattr(plan, name)
    return f"{value:,}" if isinstance(value, int) else str(value)


def search_values(ranking: Ranking) -> dict[str, object]:
    """Counts of the search, rejections, and the best plans, for JSON."""
    return {
        "combinations": ranking.spreads,
        "possible": ranking.legal,
        "timed": ranking.judged,
        **fields_of(ranking, "pruned", "stopped"),
        "rejected": shared.rejected_values(ranking.rejected),
        "best": [
            {
                "plan": shared.way_values(one.plan),
                "step_time_s": one.step.total_s,
                "mfu": one.step.mfu,
                "memory_bytes": one.step.memory.total,
            }
            for one in ranking.best
        ],
    }


def nearest_published(confidence: Confidence) -> TextTable:
    """The nearest published plan, its predicted step for the question, and how likely the step fits."""
    plan, step = confidence.near.plan, confidence.near.step
    if step is None:
        raise ValueError(str(confidence.near))
    run = f"{plan.model}, {plan.shape.chips:,} {plan.chip}, {count(plan.shape.T)} tokens"
    here = si(step.total_s, "s"), si(step.memory.total, "B"), _fits(confidence, step)
    row = (run, plan.degrees, percent(plan.mfu), *here)
    columns = ("published run", "plan", "its MFU", "time here", "memory here", "fits")
    return TextTable("Nearest published plan", columns, (row,), words=(0, 1))


def _fits(confidence: Confidence, step: TrainingStep) -> str:
    """Return how likely a step fits, as a cell; 'too tight' with less headroom than the search asks."""
    total, hbm_bytes = step.memory.total, step.machine.chip.hbm_bytes
    if total > hbm_bytes:
        return "no"
    likely = confidence.probability(step)
    tight = ", too tight" if total > (1 - confidence.headroom) * hbm_bytes else ""
    return f"{'>99%' if likely > 0.99 else percent(likely)}{tight}"


def confidence_values(confidence: Confidence, step: TrainingStep) -> dict[str, object]:
    """The same for JSON."""
    near = confidence.near
    return {
        "p80_step_time_s": confidence.objective.p80(step),
        "degrees_not_published": list(confidence.objective.outside(step.plan)),
        "headroom": confidence.headroom,
        "fits_with_probability": confidence.probability(step),
        "memory_count_error": confidence.margin.error,
        "nearest_published": {
            **fields_of(near.plan, "id", "model", "chip", "mfu"),
            "chips": near.plan.shape.chips,
            "sequence_length_tokens": near.plan.shape.T,
            "plan": {name: getattr(near.plan.on(step.chips), name) for name in _SPLIT},
            "step_time_s": near.step.total_s if near.step else None,
            "memory_bytes": near.step.memory.total if near.step else None,
            "fits_with_probability": confidence.probability(near.step) if near.step else None,
        },
    }


def changes(changed: Sensitivity) -> TextTable:
    """The step time after each hardware change, with the same plan and with the best one then."""
    rows = []
    for one in changed.changes:
        times = (si(one.same_s, "s"), si(one.then.step.total_s, "s"))
        rows.append((f"{one.what} × {one.factor:g}", *times, f"{one.gain:.3g}"))
    return name_value_table("What if", rows, ("", "same plan", "best new plan", "speedup"))


def change_values(changed: Sensitivity) -> list[dict[str, object]]:
    """The same for JSON."""
    return [
        {
            **fields_of(one, "what", "factor"),
            "same_plan_step_time_s": one.same_s,
            "step_time_s": one.then.step.total_s,
            "gain": one.gain,
            "plan": shared.way_values(one.then.plan),
        }
        for one in changed.changes
    ]


def _traffic(traffic: tuple[TrainingCollective, ...]) -> TextTable:
    return name_value_table(
        "Collectives of one step",
        map(_row, traffic),
        ("of", "collective", "pass", "chips", "array", "count", "total", "overlaps"),
    )


def _row(row: TrainingCollective) -> tuple[str, ...]:
    what = (row.name, str(row.what), row.when, f"{row.n:,}", si(row.nbytes, "B"))
    times = (count(row.times), si(row.seconds, "s"))
    return (*what, *times, "yes" if row.overlappable else "no")


def _run(run: PlannedRun, added: ChipHourOverhead | None) -> TextTable:
    """The run as planned, and as it is expected with the overheads of published runs."""
    runs = {"planned": run} | ({"expected": added.of(run)} if added else {})
    rows = [
        ("tokens", *(count_in_words(one.tokens) for one in runs.values())),
        ("days", *(count(one.days) for one in runs.values())),
        ("chip-hours", *(count_in_words(rounded(one.chip_hours)) for one in runs.values())),
    ]
    if run.usd is not None:
        rows.append(("USD", *(count_in_words(rounded(one.usd or 0.0)) for one in runs.values())))
        rows.append(("price per chip", *(str(ChipPrice(run.usd_per_hour, run.usd_as_of)), "")[: len(runs)]))
    if run.power_w is not None:
        energies = (one.energy for one in runs.values())
        rows.append(("MWh (chips only)", *(count(round(e.mwh, 1)) for e in energies if e)))
    return name_value_table("The whole run", rows, ("", *runs))


def values(step: TrainingStep, run: PlannedRun | None, added: ChipHourOverhead | None) -> dict[str, object]:
    """The step and the run as a dictionary, for JSON."""
    found: dict[str, object] = {
        "step_time_s": step.total_s,
        "terms_s": step.terms,
        **fields_of(step, "mfu", "hfu"),
        "tokens_per_step": step.tokens,
        **fields_of(step, "tokens_per_s", "flops_per_s_per_chip", "useful_flops", "hardware_flops"),
        "bottleneck": step.bottleneck,
        "remedy": step.remedy,
        **shared.memory_values(step.memory, step.machine.chip),
        "collectives": [
            {
                "name": row.name,
                "collective": row.what,
                "axes": row.axes,
                "pass": row.when,
                "chips": row.n,
                "array_bytes": row.nbytes,
                "count": row.times,
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
            name, "count · (seconds of one)", product(row.times, row.each_s), row.seconds, "s"
        )
    formula = "FLOPs / (chips · C · efficiency)"
    numbers = "(forward and backward pass, average over the stages)"
    for name, took in step.math.items():
        if took:
            yield DerivationLine(f"T_math, {name}", formula, numbers, took, "s")
    yield sum_line("T", step.terms, step.total_s, "s")
    yield _share("MFU", "useful FLOPs", step, step.useful_flops, step.mfu)
    yield _share("HFU", "all FLOPs", step, step.hardware_flops, step.hfu)
    yield sum_line("memory per chip", step.memory.terms, step.memory.total, "B")
    if run:
        numbers = f"{figure(run.tokens)} / {figure(step.tokens)} · {figure(step.total_s)}"
        yield DerivationLine("T, the whole run", "tokens / (tokens per step) · T", numbers, run.seconds, "s")
        numbers = f"{product(run.chips, run.seconds)} / 3600"
        yield DerivationLine("chip-hours", "chips · T / 3600", numbers, run.chip_hours)
        if run.usd is not None and run.usd_per_hour is not None:
            numbers = product(run.chip_hours, run.usd_per_hour)
            yield DerivationLine("USD", "chip-hours · (USD per hour)", numbers, run.usd, "USD")


def _share(name: str, what: str, step: TrainingStep, flops: float, share: float) -> DerivationLine:
    numbers = f"{figure(flops)} / ({product(step.total_s, step.peak_flops_per_s)})"
    return DerivationLine(name, f"{what} / (T · chips · C)", numbers, share, SHARE)
