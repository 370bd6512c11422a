"""The command `scalingbook plan`: the best plan for a training step, and its time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from scalingbook_cli import parameter_types, plan_tables, reading, shared
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_cli.parameter_types import plan_options, written_fields
from scalingbook_cli.progress import Progress, progress_option
from scalingbook_lib import calibrated, planner, training
from scalingbook_lib.calibrated import bands
from scalingbook_lib.calibrated.overhead import ChipHourOverhead, chip_hour_overhead
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.machines import Chip, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.planner import Ranking
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import BF16, percent, si


@click.command("plan", short_help="The best way to spread a training step over chips, or any one.")
@click.argument("model", type=parameter_types.MODEL)
@click.argument("machine", type=parameter_types.MACHINE)
@click.option("--batch", required=True, help="Sequences of a step, as in 2048; or its tokens, as in 16Mi.")
@parameter_types.option_with_default("--sequence T", parameter_types.WHOLE, "8192", "Tokens of a sequence.")
@click.option("--as-written", is_flag=True, help="Judge the one plan of the options; ways not written are 1.")
@parameter_types.option_with_default(
    "--best keep", parameter_types.LIST_LENGTH, "5", "How many plans are listed."
)
@click.option(
    "--what-if", is_flag=True, help="Search again with arithmetic, memory, links or network twice as fast."
)
@plan_options
@parameter_types.option_with_default(
    "--efficiency",
    parameter_types.EFFICIENCY,
    reading.CALIBRATED,
    "peak, calibrated (to published runs), a share of the matrix unit's peak, or a record of `measure`.",
)
@click.option(
    "--tokens", type=parameter_types.TOKENS, help="Tokens of the whole run, as in 15T: days and chip-hours."
)
@click.option(
    "--usd-per-hour", type=parameter_types.POSITIVE, help="The price of one chip, where not the catalogue's."
)
@progress_option
@answer_command
def command(
    *,
    model: Transformer,
    machine: Machine,
    batch: str,
    T: int,
    as_written: bool,
    keep: int,
    what_if: bool,
    efficiency: TrainingEfficiency | DeviceBenchmark | None,
    tokens: int | None,
    usd_per_hour: float | None,
    progress: bool,
    **options: Any,
) -> Answer:
    """The best plan for a training step of MODEL on MACHINE: time, memory, every collective.

    All ways to spread the step are searched; an option leaves only the plans that are like it. With
    --as-written, the one plan that the options say. The chips of the machine (times --pods) are
    dp · fsdp · tp · cp · pp. Where no plan divides and fits, the reasons are told and the exit code is 1.
    """
    fixed = written_fields(options)
    asked = PlanRequest.read(
        model=model, machine=machine, batch=batch, T=T, efficiency=efficiency, fixed=fixed
    )
    if as_written and what_if:
        raise ValueError("--what-if searches again, and --as-written searches nothing; write one of them")
    found = asked.one(Plan(**fixed)) if as_written else asked.best(fixed, keep, what_if, progress)
    if found.step is None:
        return Answer(summary=found.summary, values=asked.values | found.values, refused=True)
    run = training.run(found.step, tokens, usd_per_hour) if tokens else None
    factor = (
        None
        if isinstance(efficiency, TrainingEfficiency)
        else bands.training_band(experts=model.experts is not None).widened(
            bands.chip_doubts("training", machine.chip, fixed.get("compute", BF16))
        )
    )
    # what bills add to plans at published efficiencies
    added = None if factor is None else chip_hour_overhead()
    values = asked.values | found.values | {"within_factor": factor, "peak_step_s": found.step.peak_s}
    return Answer(
        summary="\n".join(_summary_lines(found.summary, factor, found.step.peak_s, run, added)),
        tables=(*found.tables, *plan_tables.tables(found.step, run, added)),
        values=values | plan_tables.values(found.step, run, added),
        steps=tuple(plan_tables.derivation(found.step, run)),
        refused=not values["feasible"],
    )


def _efficiency(
    efficiency: TrainingEfficiency | DeviceBenchmark | None, chip: Chip, fixed: dict[str, Any]
) -> TrainingEfficiency:
    """The given efficiency, that of a benchmark record, or by default the calibrated one."""
    precision = fixed.get("compute", BF16).name
    if isinstance(efficiency, DeviceBenchmark):
        return efficiency.training(chip, precision)
    return efficiency or calibrated.training(chip, precision)


def _summary_lines(
    found: str,
    factor: float | None,
    peak_s: float,
    run: training.PlannedRun | None,
    added: ChipHourOverhead | None,
) -> Iterator[str]:
    yield found
    if factor is not None:  # calibrated against published runs
        yield f"at documented peaks the same plan takes {si(peak_s, 's')}"
        holds = percent(bands.COVERAGE)
        yield f"{holds} of new steps by this plan are likely this long, within a factor of {factor:.3g}"
    if run:
        yield str(run)
    if run and added:
        yield f"likely to be billed {si(added.of(run).chip_hours)} chip-hours: {added}"


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """The step and what is said about it; `step` is None if no plan is feasible."""

    step: TrainingStep | None
    summary: str
    values: dict[str, Any]
    tables: tuple[TextTable, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A question without the plan: model, machine, batch, sequence length, efficiency."""

    model: Transformer
    machine: Machine
    batch: int
    T: int
    efficiency: TrainingEfficiency

    @classmethod
    def read(
        cls,
        *,
        model: Transformer,
        machine: Machine,
        batch: str,
        T: int,
        efficiency: TrainingEfficiency | DeviceBenchmark | None,
        fixed: dict[str, Any],
    ) -> "PlanRequest":
        """The question from the typed arguments; `fixed` are the given fields of the plan."""
        try:
            sequences = reading.sequences(batch, T)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--batch") from error
        return cls(model, machine, sequences, T, _efficiency(efficiency, machine.chip, fixed))

    @property
    def values(self) -> dict[str, Any]:
        """The question as a dictionary, for JSON."""
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            "batch_sequences": self.batch,
            "sequence_tokens": self.T,
            "efficiency": self.efficiency.name,
            "efficiency_shares": self.efficiency.shares,
        }

    def one(self, plan: Plan) -> StepAnswer:
        """The step of exactly this plan."""
        why = training.feasible(self.model, self.machine, plan, batch=self.batch, T=self.T)
        known = {"feasible": not why, "reasons": list(why), "plan": shared.way_values(plan)}
        try:
            step = training.step(
                self.model, self.machine, plan, batch=self.batch, T=self.T, efficiency=self.efficiency
            )
        except ValueError:
            if not why:
                raise
            return StepAnswer(None, f"{plan}: {'; '.join(why)}", known)
        return StepAnswer(step, str(step), known)

    def best(self, fixed: dict[str, Any], keep: int, what_if: bool, progress: bool) -> StepAnswer:
        """The best of all feasible plans with these fields, and what faster hardware would change."""
        with Progress(_progress_text, always=progress) as watch:
            ranking = planner.plans(
                self.model,
                self.machine,
                pods=fixed.pop("dcn", 1),
                fixed=fixed,
                keep=keep,
                batch=self.batch,
                T=self.T,
                efficiency=self.efficiency,
                watch=watch,
            )
        known = {"feasible": bool(ranking.best), "search": plan_tables.search_values(ranking)}
        if not ranking.best:
            return StepAnswer(None, str(ranking), known)
        known["plan"] = shared.way_values(ranking.winner.plan)
        tables = [plan_tables.best(ranking)]
        if what_if:
            changed = planner.sensitivity(ranking)
            tables.append(plan_tables.changes(changed))
            known["what_if"] = plan_tables.change_values(changed)
        return StepAnswer(ranking.winner.step, _why(ranking), known, tuple(tables))


def _progress_text(done: int, of: int) -> str:
    """The progress of a search: it finds the legal spreads (`of` is 0), then evaluates plans."""
    return f"{done:,} plans judged" if of else f"{done:,} legal ways to spread it found"


def _why(ranking: Ranking) -> str:
    """The best plan, why it is best, and how many plans there were."""
    why = [f"next, {ranking.why}"] if len(ranking.best) > 1 else []
    return "\n".join((str(ranking.winner.step), *why, ranking.counts))
