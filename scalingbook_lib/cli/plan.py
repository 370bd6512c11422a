"""How long does a training step take when it is spread like this? `scalingbook plan`."""

from typing import Any

import click

from scalingbook_lib import training
from scalingbook_lib.cli import derive_plan, kinds, plan_tables, reading
from scalingbook_lib.cli.answer import Answer
from scalingbook_lib.cli.answering import answering
from scalingbook_lib.cli.plan_options import given, plan_options
from scalingbook_lib.cli.reading import Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import Efficiency, Plan, Run, Step


@click.command("plan", short_help="A training step spread over chips: time, memory, collectives.")
@click.argument("model", type=kinds.MODEL)
@click.argument("machine", type=kinds.MACHINE)
@click.option("--batch", required=True, help="Sequences of a step, as in 2048; or its tokens, as in 16Mi.")
@click.option(
    "--sequence", "T", type=kinds.WHOLE, default="8192", show_default=True, help="Tokens of a sequence."
)
@plan_options
@click.option("--efficiency", type=kinds.EFFICIENCY, default="peak", show_default=True,
              help="peak, or the share of its peak that the matrix unit reaches.")  # fmt: skip
@click.option("--tokens", type=kinds.TOKENS, help="Tokens of the whole run, as in 15T: days and chip-hours.")
@click.option("--usd-per-hour", type=kinds.POSITIVE, help="The price of one chip, where not the catalogue's.")
@answering
def command(
    model: Transformer, machine: Machine, batch: str, T: int, efficiency: Efficiency, tokens: int | None,
    usd_per_hour: float | None, **options: Any,
) -> Answer:  # fmt: skip
    """A training step of MODEL on MACHINE, spread as the options say: time, memory, every collective.

    The chips of the machine (times --pods) are dp · fsdp · tp · cp · pp; what is not written is 1. A plan
    that does not divide or does not fit is told with its reasons, and the exit code is 1.
    """
    plan, sequences = Plan(**given(options)), reading.sequences(batch, T)
    why = training.feasible(model, machine, plan, sequences, T)
    values: dict[str, Any] = {
        "model": model.name, "machine": machine.name, "plan": plan_tables.plan_values(plan),
        "batch_sequences": sequences, "sequence_tokens": T, "efficiency": efficiency.name,
        "feasible": not why, "reasons": list(why),
    }  # fmt: skip
    try:
        step = training.step(model, machine, plan, batch=sequences, T=T, efficiency=efficiency)
    except ValueError:
        if not why:
            raise
        return Answer(told=f"{plan}: {'; '.join(why)}", values=values, refused=True)
    return _judged(step, training.run(step, tokens, usd_per_hour) if tokens else None, values)


def _judged(step: Step, run: Run | None, values: dict[str, Any]) -> Answer:
    return Answer(
        told=str(step) if run is None else f"{step}\n{run}",
        tables=plan_tables.tables(step, run),
        values=values | plan_tables.values(step, run),
        steps=derive_plan.steps(step, run),
        refused=not values["feasible"],
    )
