"""The command `scalingbook plan`: the best plan for a training step, and its time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from scalingbook_cli import launch_tables, parameter_types, plan_tables, reading, shared
from scalingbook_cli.answer import Answer, TextTable, answer_command
from scalingbook_cli.parameter_types import plan_options, written_fields
from scalingbook_cli.progress import Progress, progress_option
from scalingbook_lib import calibrated, planner, training
from scalingbook_lib.calibrated import recommendation, short_answer
from scalingbook_lib.calibrated.confidence import Confidence, WrittenStep, as_written
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.calibrated.training_efficiency import Software
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.launch import emit as launch_commands
from scalingbook_lib.launch import training as training_launches
from scalingbook_lib.machines import Chip, Cluster, Machine
from scalingbook_lib.models import Transformer
from scalingbook_lib.models.quantized import named_format
from scalingbook_lib.planner import Ranking
from scalingbook_lib.planner.watch import Watch, unwatched
from scalingbook_lib.training import Plan, TrainingEfficiency, TrainingStep
from scalingbook_lib.units import BF16, DType, percent
from scalingbook_lib.words import pluralize


@click.command(
    "plan", short_help="The best parallelism plan for a training step, or the time of a given plan."
)
@click.argument("model", type=parameter_types.MODEL)
@click.argument("machine", type=parameter_types.MACHINE)
@click.option("--batch", required=True, help="Global batch size in sequences (2048), or in tokens (16Mi).")
@parameter_types.option_with_default(
    "--sequence T", parameter_types.WHOLE, "8192", "Sequence length in tokens."
)
@click.option(
    "--as-written", is_flag=True, help="Time only the plan given by the options; degrees not given are 1."
)
@parameter_types.option_with_default(
    "--best keep", parameter_types.LIST_LENGTH, "5", "Number of plans to list."
)
@click.option(
    "--headroom",
    type=parameter_types.SHARE,
    help="Share of the HBM that plans leave free. The default lets them fit with 90% probability.",
)
@click.option(
    "--what-if", is_flag=True, help="Search again with compute, memory, links or network twice as fast."
)
@plan_options
@click.option(
    "--emit",
    type=click.Choice(tuple(launch_commands.TRAINING)),
    help="Search the plans that this framework can express, and print its launch command.",
)
@parameter_types.expert_skew_option
@parameter_types.option_with_default(
    "--efficiency",
    parameter_types.EFFICIENCY,
    reading.CALIBRATED,
    "peak, calibrated (to published runs), a share of the peak FLOP/s (40%), or a record of `measure`.",
)
@click.option(
    "--tokens",
    type=parameter_types.TOKENS,
    help="Tokens of the whole run (15T), for its days and chip-hours.",
)
@click.option(
    "--usd-per-hour",
    type=parameter_types.POSITIVE,
    help="Price per chip-hour in USD, instead of the catalog's.",
)
@progress_option
@parameter_types.chip_options
@answer_command
def command(
    *,
    model: Transformer,
    machine: Machine,
    batch: str,
    T: int,
    as_written: bool,
    keep: int,
    headroom: float | None,
    what_if: bool,
    emit: str | None,
    expert_skew: float | None,
    efficiency: TrainingEfficiency | DeviceBenchmark | None,
    tokens: int | None,
    usd_per_hour: float | None,
    progress: bool,
    **options: Any,
) -> Answer:
    """Find the best plan for a training step of MODEL on MACHINE, with its time, memory and collectives.

    The search covers all combinations of parallelism degrees; an option fixes a field of the plan. Plans are
    ranked by P80, the time that 80% of steps do not exceed, which is longer for plans unlike those of
    published runs. With --as-written, the options are the whole plan, which is refused only if it exceeds
    the HBM by more than the error of the memory count. The chips of the machine (times --pods) are
    dp · fsdp · tp · cp · pp. If no plan is possible, the command prints the reasons, and the exit code is 1.
    """
    fixed = written_fields(options, machine.chip)
    if model.experts:
        _check_domains(machine, fixed.get("expert_domains"))
    tried: dict[str, tuple[Any, ...]] = {}
    if emit:
        expressed, tried = launch_commands.searched(emit, model)
        fixed = expressed | fixed
    asked = PlanRequest.read(
        model=model,
        machine=machine,
        batch=batch,
        T=T,
        efficiency=efficiency,
        expert_skew=expert_skew,
        headroom=headroom,
        fixed=fixed,
        software=training_launches.software(emit, machine.chip) if emit else (),
    )
    if as_written and what_if:
        raise ValueError("--what-if needs a search, and --as-written does not search; write only one of them")
    found = asked.one(fixed) if as_written else asked.best(fixed, keep, what_if, progress, tried, emit)
    if found.step is None:
        return Answer(
            summary=found.refusal, values=asked.values | found.values, details=found.details, refused=True
        )
    command_lines = (
        launch_commands.training(emit, model, machine, found.step.plan, batch=asked.batch, T=T)
        if emit
        else None
    )
    run = training.run(found.step, tokens, usd_per_hour) if tokens else None
    factor = asked.band_factor(fixed.get("compute", BF16))
    # what bills add to plans at published efficiencies
    added = None if factor is None else chip_hour_overhead()
    values = asked.values | found.values | {"band_factor": factor, "peak_step_time_s": found.step.peak_s}
    return Answer(
        summary="\n".join(short_answer.training_lines(found.step, factor, found.confidence)),
        tables=(
            *launch_tables.emitted(command_lines),
            *found.tables,
            *plan_tables.tables(found.step, run, added),
            *shared.assumed_table(asked.assumed),
        ),
        values=values
        | plan_tables.values(found.step, run, added)
        | launch_tables.emitted_values(command_lines),
        steps=tuple(plan_tables.derivation(found.step, run)),
        details=(*found.details, *((str(added),) if run and added else ())),
        refused=not values["feasible"],
    )


_CANDIDATES = 20
"""The best plans among which one is sought that a launcher can express."""


def _check_domains(machine: Machine, limit: int | None) -> None:
    """Refuse a limit on the domains of a token's experts above the number of domains."""
    domains = machine.chips // machine.domain if isinstance(machine, Cluster) else 1
    if limit is not None and limit > max(domains, 1):
        raise ValueError(
            f"--expert-domains {limit:,} is more than the {pluralize(max(domains, 1), 'domain')} of "
            f"{machine.name}; write at most {max(domains, 1):,}, or leave the option out for experts in any"
        )


def _efficiency(
    efficiency: TrainingEfficiency | DeviceBenchmark | None,
    chip: Chip,
    fixed: dict[str, Any],
    software: Software,
    kernel: str | None,
) -> TrainingEfficiency:
    """The given efficiency, that of a benchmark record, or by default the calibrated one of software."""
    precision = fixed.get("compute", BF16).name
    if isinstance(efficiency, DeviceBenchmark):
        return efficiency.training(chip, precision)
    return efficiency or calibrated.training(chip, precision, kernel, software)


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """The step of a plan, or None with the `refusal` if no plan is possible."""

    step: TrainingStep | None
    values: dict[str, Any]
    tables: tuple[TextTable, ...] = ()
    details: tuple[str, ...] = ()
    refusal: str = ""
    confidence: Confidence | None = None


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A question without the plan: model, machine, batch, sequence length, efficiency, software."""

    model: Transformer
    machine: Machine
    batch: int
    T: int
    efficiency: TrainingEfficiency
    headroom: float | None = None
    pessimistic: bool = True
    software: Software = ()

    @classmethod
    def read(
        cls,
        *,
        model: Transformer,
        machine: Machine,
        batch: str,
        T: int,
        efficiency: TrainingEfficiency | DeviceBenchmark | None,
        expert_skew: float | None = None,
        headroom: float | None = None,
        fixed: dict[str, Any],
        software: Software = (),
        kernel: str | None = None,
    ) -> "PlanRequest":
        """The question from the typed arguments; `fixed` are the given fields of the plan.

        The calibrated efficiency is that of the software and its attention kernel, or of the one named here.
        """
        try:
            sequences = reading.sequences(batch, T)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--batch") from error
        shared.check_expert_skew(model, expert_skew)
        shares = _efficiency(efficiency, machine.chip, fixed, software, kernel)
        if expert_skew is not None:
            shares = replace(shares, expert_skew=expert_skew)
        pessimistic = not isinstance(efficiency, TrainingEfficiency)  # a given share has no known error
        return cls(model, machine, sequences, T, shares, headroom, pessimistic, software)

    @property
    def values(self) -> dict[str, Any]:
        """The question as a dictionary, for JSON."""
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            "batch_size_sequences": self.batch,
            "sequence_length_tokens": self.T,
            "efficiency": self.efficiency.name,
            "efficiency_shares": self.efficiency.shares,
            "assumed": list(self.assumed),
        }

    @property
    def assumed(self) -> tuple[str, ...]:
        """What training does with a checkpoint whose name tells the type of its weights."""
        kind = named_format(self.model.quantization)
        if not kind:
            return ()
        return (
            f"The checkpoint stores the weights of {self.model.name} in {kind}, as its name says; a training "
            "step holds them in the type of --weights, bf16 by default.",
        )

    def one(self, fixed: dict[str, Any]) -> StepAnswer:
        """The step of exactly the plan with these fields."""
        plan = recommendation.whole_plan(self.model, self.machine.chip, fixed)
        return self.told(
            as_written(
                self.model,
                self.machine,
                plan,
                batch=self.batch,
                T=self.T,
                efficiency=self.efficiency,
                headroom=self.headroom,
            )
        )

    def told(self, found: WrittenStep) -> StepAnswer:
        """What is known about a plan as written."""
        why, step, confidence = found.reasons, found.step, found.confidence
        known = {"feasible": not why, "reasons": list(why), "plan": shared.way_values(found.plan)}
        if step is None or confidence is None:
            return StepAnswer(None, known, refusal=f"{found.plan}: {'; '.join(why)}")
        known |= plan_tables.confidence_values(confidence, step)
        return StepAnswer(
            step, known, self._beside(confidence), self._not_beside(confidence), confidence=confidence
        )

    def band_factor(self, compute: DType) -> float | None:
        """The factor of the prediction interval, or None at a given share of the peak."""
        if not self.pessimistic:
            return None
        return short_answer.training_factor(self.model, self.machine.chip, compute, self.software)

    def _beside(self, confidence: Confidence) -> tuple[TextTable, ...]:
        """The nearest published plan, if the error of predictions is known and the plan fits the machine."""
        known = self.pessimistic and confidence.near.step
        return (plan_tables.nearest_published(confidence),) if known else ()

    def _not_beside(self, confidence: Confidence) -> tuple[str, ...]:
        """A sentence on the nearest published plan, if it does not fit the machine."""
        return (str(confidence.near),) if self.pessimistic and not confidence.near.step else ()

    def best(
        self,
        fixed: dict[str, Any],
        keep: int,
        what_if: bool,
        progress: bool,
        tried: dict[str, tuple[Any, ...]] | None = None,
        launcher: str | None = None,
    ) -> StepAnswer:
        """The best of all feasible plans with these fields, and what faster hardware would change.

        With a launcher, it is the best of those that its flags can express.
        """
        with Progress(_progress_text, always=progress) as watch:
            most = max(keep, _CANDIDATES) if launcher else keep
            found = self.recommend(fixed, most, watch, tried)
        if launcher:
            found = self._expressed(found, launcher, keep)
        ranking = found.ranking
        known = {"feasible": bool(ranking.best), "search": plan_tables.search_values(ranking)}
        details = tuple(_details(ranking))
        if not ranking.best:
            return StepAnswer(None, known, details=details, refusal=_refusal(ranking))
        known["plan"] = shared.way_values(ranking.winner.plan)
        tables = [plan_tables.best(ranking, found.objective)]
        if what_if:
            changed = planner.sensitivity(ranking)
            tables.append(plan_tables.changes(changed))
            known["what_if"] = plan_tables.change_values(changed)
        confidence = Confidence(
            objective=found.objective, margin=found.margin, headroom=found.headroom, near=found.published
        )
        known |= plan_tables.confidence_values(confidence, ranking.winner.step)
        if found.headroom != found.asked:
            details = (f"No plan leaves the headroom of {percent(found.asked)}.", *details)
        if self.pessimistic and found.unusual:
            details = (found.unusual, *details)
        details = (*details, *self._not_beside(confidence))
        listed = (tables[0], *self._beside(confidence), *tables[1:])
        return StepAnswer(ranking.winner.step, known, listed, details, confidence=confidence)

    def _expressed(
        self, found: recommendation.Recommendation, launcher: str, keep: int
    ) -> recommendation.Recommendation:
        """The plans that a launcher can express, or all if it can express none."""

        def expressed(plan: Plan) -> bool:
            try:
                launch_commands.training(launcher, self.model, self.machine, plan, batch=self.batch, T=self.T)
            except ValueError:
                return False
            return True

        ranking = found.ranking
        possible = tuple(one for one in ranking.best if expressed(one.plan))
        best = possible or ranking.best  # the refusal then names the field
        return replace(found, ranking=replace(ranking, best=best[:keep]))

    def recommend(
        self,
        fixed: dict[str, Any],
        keep: int,
        watch: Watch = unwatched,
        tried: dict[str, tuple[Any, ...]] | None = None,
    ) -> recommendation.Recommendation:
        """The search with these fields, and with these candidates for others."""
        return recommendation.recommend(
            self.model,
            self.machine,
            pods=fixed.get("dcn", 1),
            fixed={name: value for name, value in fixed.items() if name != "dcn"},
            tried={name: values for name, values in (tried or {}).items() if name not in fixed},
            keep=keep,
            batch=self.batch,
            T=self.T,
            efficiency=self.efficiency,
            headroom=self.headroom,
            pessimistic=self.pessimistic,
            watch=watch,
        )


def _progress_text(done: int, of: int) -> str:
    """The progress of a search: it finds the legal spreads (`of` is 0), then evaluates plans."""
    return f"{done:,} plans timed" if of else f"{done:,} possible combinations of degrees found"


def _details(ranking: Ranking) -> Iterator[str]:
    """The comparison with the runner-up, the size of the search, and the reasons of rejections."""
    if len(ranking.best) > 1:
        yield f"Runner-up: {ranking.why}"
    yield from shared.search_lines(ranking.searched, ranking.rejected)


def _refusal(ranking: Ranking) -> str:
    """Why no plan is possible: the closest misses, the most frequent first."""
    misses = "; ".join(one.why for one in ranking.rejected[:2])
    return f"No plan is possible for {ranking.model.name} on {ranking.machine.name}: {misses}"
