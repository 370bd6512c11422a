"""Which plan is best for a training step, and how long does one take? `scalingbook plan`."""

from typing import Any

import click

from scalingbook_lib import planner, training
from scalingbook_lib.cli import derive_plan, kinds, plan_tables, reading
from scalingbook_lib.cli.answer import Answer
from scalingbook_lib.cli.answering import answering
from scalingbook_lib.cli.plan_options import given, plan_options
from scalingbook_lib.cli.reading import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import Ranking
from scalingbook_lib.training import Efficiency, Plan, Step


@click.command("plan", short_help="The best way to spread a training step over chips, or any one.")
@click.argument("model", type=kinds.MODEL)
@click.argument("machine", type=kinds.MACHINE)
@click.option("--batch", required=True, help="Sequences of a step, as in 2048; or its tokens, as in 16Mi.")
@click.option(
    "--sequence", "T", type=kinds.WHOLE, default="8192", show_default=True, help="Tokens of a sequence."
)
@click.option("--as-written", is_flag=True, help="Judge the one plan of the options; ways not written are 1.")
@click.option(
    "--best", "keep", type=kinds.FEW, default="5", show_default=True, help="How many plans are listed."
)
@click.option(
    "--what-if", is_flag=True, help="Search again with arithmetic, memory, links or network twice as fast."
)
@plan_options
@click.option("--efficiency", type=kinds.EFFICIENCY, default="peak", show_default=True,
              help="peak, or the share of its peak that the matrix unit reaches.")  # fmt: skip
@click.option("--tokens", type=kinds.TOKENS, help="Tokens of the whole run, as in 15T: days and chip-hours.")
@click.option("--usd-per-hour", type=kinds.POSITIVE, help="The price of one chip, where not the catalogue's.")
@answering
def command(
    model: Transformer, machine: Machine, batch: str, T: int, as_written: bool, keep: int, what_if: bool,
    efficiency: Efficiency, tokens: int | None, usd_per_hour: float | None, **options: Any,
) -> Answer:  # fmt: skip
    """The best plan for a training step of MODEL on MACHINE: time, memory, every collective.

    Every way to spread the step is judged; an option leaves only the plans that are like it. With
    --as-written, the one plan that the options say. The chips of the machine (times --pods) are
    dp · fsdp · tp · cp · pp. Where no plan divides and fits, the reasons are told and the exit code is 1.
    """
    fixed, n = given(options), reading.sequences(batch, T)
    values: dict[str, Any] = {
        "model": model.name, "machine": machine.name, "batch_sequences": n, "sequence_tokens": T,
        "efficiency": efficiency.name,
    }  # fmt: skip
    if as_written and what_if:
        raise ValueError("--what-if searches again, and --as-written searches nothing; write one of them")
    if as_written:
        step, told = _one(model, machine, Plan(**fixed), n, T, efficiency, values)
        ranking = None
    else:
        pods = fixed.pop("dcn", 1)
        how: dict[str, Any] = {"pods": pods, "fixed": fixed, "efficiency": efficiency, "keep": keep}
        ranking = planner.plans(model, machine, batch=n, T=T, **how)
        step, told = _first(ranking, values)
    if step is None:
        return Answer(told=told, values=values, refused=True)
    run = training.run(step, tokens, usd_per_hour) if tokens else None
    listed = (plan_tables.best(ranking),) if ranking else ()
    if ranking and what_if:
        changed = planner.sensitivity(ranking)
        listed, values["what_if"] = (
            (*listed, plan_tables.changes(changed)),
            plan_tables.change_values(changed),
        )
    return Answer(
        told=told if run is None else f"{told}\n{run}",
        tables=(*listed, *plan_tables.tables(step, run)),
        values=values | plan_tables.values(step, run),
        steps=derive_plan.steps(step, run),
        refused=not values["feasible"],
    )


def _one(
    model: Transformer, machine: Machine, plan: Plan, batch: int, T: int, efficiency: Efficiency,
    values: dict[str, Any],
) -> tuple[Step | None, str]:  # fmt: skip
    """The step of one plan and its sentence; no step where it cannot be."""
    why = training.feasible(model, machine, plan, batch, T)
    values |= {"feasible": not why, "reasons": list(why), "plan": plan_tables.plan_values(plan)}
    try:
        step = training.step(model, machine, plan, batch=batch, T=T, efficiency=efficiency)
    except ValueError:
        if not why:
            raise
        return None, f"{plan}: {'; '.join(why)}"
    return step, str(step)


def _first(ranking: Ranking, values: dict[str, Any]) -> tuple[Step | None, str]:
    """The step of the best plan, and why it is the best; no step where none is legal."""
    values |= {"feasible": bool(ranking.best), "search": plan_tables.search_values(ranking)}
    if not ranking.best:
        return None, str(ranking)
    values["plan"] = plan_tables.plan_values(ranking.winner.plan)
    why = [str(ranking.why)] if len(ranking.best) > 1 else []
    return ranking.winner.step, "\n".join((str(ranking.winner.step), *why, ranking.counts))
