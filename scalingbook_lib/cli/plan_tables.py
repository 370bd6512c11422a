"""What is shown of a training step? Its terms, what a chip holds, every collective, and the whole run."""

from dataclasses import fields

from scalingbook_lib.cli.answer import Table
from scalingbook_lib.cli.numbers import nbytes
from scalingbook_lib.planner import Ranking, Sensitivity
from scalingbook_lib.training import Plan, Run, Step, Traffic
from scalingbook_lib.units import DType, count, percent, si

_WAYS = ("tp", "cp", "fsdp", "pp", "dp", "ep")


def plan_values(plan: Plan) -> dict[str, object]:
    """Every field of the plan, a data type by its name."""
    named = {f.name: getattr(plan, f.name) for f in fields(plan)}
    plain = {name: value.name if isinstance(value, DType) else value for name, value in named.items()}
    return {**plain, "chips": plan.chips}


def tables(step: Step, run: Run | None) -> tuple[Table, ...]:
    """Time, memory, traffic, and the run where its tokens are known."""
    found = (_times(step), _memory(step), _traffic(step.traffic))
    return (*found, _run(run)) if run else found


def best(ranking: Ranking) -> Table:
    """The best plans, one to a line."""
    columns = (
        "",
        *_WAYS,
        "ZeRO",
        "mb",
        "schedule",
        "remat",
        "step",
        "MFU",
        "memory",
        "loses most to",
    )
    rows = [
        (
            str(place), *(f"{getattr(plan, way):,}" for way in _WAYS), str(plan.zero), str(plan.microbatch),
            f"{plan.schedule} {plan.chunks}" if plan.chunks > 1 else plan.schedule, plan.remat,
            si(step.total_s, "s"), percent(step.mfu), si(step.memory.total, "B"), step.loss,
        )
        for place, (plan, step) in enumerate(ranking.best, start=1)
    ]  # fmt: skip
    return Table("Best plans", columns, tuple(rows))


def search_values(ranking: Ranking) -> dict[str, object]:
    """How many plans there were, what was rejected, and the best for programs."""
    return {
        "spreads": ranking.spreads, "legal": ranking.legal,
        "judged": ranking.judged, "spared": ranking.spared,
        "rejected": [{"kind": r.kind, "count": r.count, "nearest": r.why} for r in ranking.rejected],
        "best": [
            {"plan": plan_values(plan), "step_s": step.total_s, "mfu": step.mfu,
             "memory_bytes": step.memory.total}
            for plan, step in ranking.best
        ],
    }  # fmt: skip


def changes(changed: Sensitivity) -> Table:
    """What each change would make of the step, with the same plan and with the one that is best then."""
    rows = [
        (
            f"{one.what} × {one.factor:g}",
            si(one.same_s, "s"),
            si(one.then.step.total_s, "s"),
            f"{one.gain:.3g}",
        )
        for one in changed.changes
    ]
    return Table("What if", ("", "this plan", "the best then", "times as fast"), tuple(rows))


def change_values(changed: Sensitivity) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {"what": one.what, "factor": one.factor, "same_plan_step_s": one.same_s,
         "step_s": one.then.step.total_s, "gain": one.gain, "plan": plan_values(one.then.plan)}
        for one in changed.changes
    ]  # fmt: skip


def _times(step: Step) -> Table:
    rows = [(name, si(seconds, "s")) for name, seconds in step.terms.items()]
    rows += [
        ("the step", si(step.total_s, "s")),
        ("MFU", percent(step.mfu, 3)),
        ("HFU", percent(step.hfu, 3)),
        ("tokens", si(step.tokens_per_s, "tokens/s")),
    ]
    return Table("Time", ("term", "time"), tuple(rows))


def _memory(step: Step) -> Table:
    rows = [(name, nbytes(held)) for name, held in step.memory.terms.items()]
    rows.append(("all", nbytes(step.memory.total)))
    rows.append((step.machine.chip.name, nbytes(step.machine.chip.hbm_bytes)))
    return Table("Memory of one chip", ("part", "bytes"), tuple(rows))


def _traffic(traffic: tuple[Traffic, ...]) -> Table:
    rows = tuple(
        (
            row.name, f"{row.what} {row.axes}", row.when, f"{row.n:,}", si(row.nbytes, "B"), count(row.times),
            si(row.each_s, "s"), si(row.seconds, "s"), "yes" if row.overlappable else "no",
        )
        for row in traffic
    )  # fmt: skip
    columns = ("of", "collective", "pass", "chips", "array", "times", "each", "all", "can hide")
    return Table("Collectives of one step", columns, rows)


def _run(run: Run) -> Table:
    rows = [("tokens", si(run.tokens)), ("days", count(run.days)), ("chip-hours", si(run.chip_hours))]
    if run.usd is not None:
        rows.append(("USD", count(round(run.usd))))
    return Table("The whole run", ("", ""), tuple(rows))


def values(step: Step, run: Run | None) -> dict[str, object]:
    """The same for programs."""
    found: dict[str, object] = {
        "step_s": step.total_s, "terms_s": step.terms, "mfu": step.mfu, "hfu": step.hfu,
        "tokens_per_step": step.tokens, "tokens_per_s": step.tokens_per_s,
        "flops_per_s_per_chip": step.flops_per_s_per_chip, "useful_flops": step.useful_flops,
        "hardware_flops": step.hardware_flops, "binds": step.binds, "unbind": step.unbind,
        "memory_bytes": step.memory.total, "memory_bytes_by_part": step.memory.terms,
        "hbm_bytes": step.machine.chip.hbm_bytes, "fits": step.memory.fits,
        "traffic": [_row(row) for row in step.traffic],
    }  # fmt: skip
    return found | ({"run": _run_values(run)} if run else {})


def _row(row: Traffic) -> dict[str, object]:
    return {
        "name": row.name, "collective": row.what, "axes": row.axes, "pass": row.when, "chips": row.n,
        "array_bytes": row.nbytes, "times": row.times, "each_s": row.each_s, "total_s": row.seconds,
        "overlappable": row.overlappable,
    }  # fmt: skip


def _run_values(run: Run) -> dict[str, object]:
    return {
        "tokens": run.tokens, "days": run.days, "chip_hours": run.chip_hours, "usd": run.usd,
        "usd_per_hour": run.usd_per_hour,
    }  # fmt: skip
