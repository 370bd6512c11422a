"""Record how the chip-hours of whole runs exceed those of their plans: `python -m tools.cost_report`.

It writes `calibrated/data/chip_hour_overhead.json`. Each whole run of `training_gpu_hours.csv` is planned as
by `scalingbook plan`: the best plan at the efficiencies of published steps, with the rematerialization and
attention of its time. If the number of chips is unknown, the table's `planned_chips` are used. Leave-one-out
errors are those of factors fitted without the run's source.
"""

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import exp, log
from statistics import mean

from scalingbook_lib import calibrated, planner, training
from scalingbook_lib.calibrated.default_machine import default_machine
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.whole_runs import LLAMA3_INTERRUPTIONS, WHOLE_RUNS, WholeRun
from scalingbook_lib.evidence.reading.model import model
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import COVERAGE, prediction_interval, signed
from scalingbook_lib.units import si
from tools.environment import ROOT
from tools.published import share

PATH = ROOT / "scalingbook_lib" / "calibrated" / "data" / "chip_hour_overhead.json"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A whole run with its source and its chip-hours: planned, of its steps alone, and published."""

    run: WholeRun
    source: str
    hours: float
    steps_hours: float | None

    @property
    def log(self) -> float:
        """The logarithm of published over planned chip-hours."""
        return log(self.run.chip_hours / self.hours)


@cache
def planned() -> tuple[Planned, ...]:
    """Return every whole run with its plan."""
    rows = resources.rows("training_gpu_hours")
    return tuple(_planned(run, row) for run, row in zip(WHOLE_RUNS, rows, strict=True))


def _planned(run: WholeRun, row: resources.Row) -> Planned:
    chips, slices = int(row["planned_chips"]), 1
    if run.chip.torus:
        slices = -(-chips // run.chip.torus.pod_chips)
    ranking = planner.plans(
        model(row | {"params": str(run.params)}),
        default_machine(run.chip, chips // slices),
        pods=slices,
        batch=int(row["batch"]),
        T=int(row["seq"]),
        fixed={"remat": row["remat"]} if row["remat"] else {},
        keep=1,
        efficiency=calibrated.training(run.chip, "bf16", row["kernel"]),
    )
    step, steps_hours = ranking.winner.step, row["steps_hours"]
    hours = training.run(step, run.tokens).chip_hours
    name = "-".join(run.name.split("-")[: 2 if run.name.startswith("Llama-") else 1])
    return Planned(run=run, source=name, hours=hours, steps_hours=float(steps_hours) if steps_hours else None)


def factor(without: str = "") -> float:
    """Published over planned chip-hours, the geometric mean over sources, `without` excluded."""
    sources = grouped((one for one in planned() if one.source != without), lambda one: one.source)
    return exp(mean(mean(one.log for one in group) for group in sources.values()))


def leave_one_out_errors() -> dict[str, float]:
    """Return the error of each run by the factor without its source."""
    return {one.run.name: factor(one.source) / exp(one.log) - 1 for one in planned()}


def _log_errors() -> dict[str, list[float]]:
    """Return the logarithms of the leave-one-out errors, by source."""
    errors = leave_one_out_errors()
    sources = grouped(planned(), lambda one: one.source)
    return {name: [log(1 + errors[one.run.name]) for one in group] for name, group in sources.items()}


@dataclass(frozen=True, kw_only=True)
class HoursAccuracy:
    """The mean error of predicted chip-hours without a run's source, and the share inside their bands.

    `without` is the mean error of the plans alone, without a factor.
    """

    runs: int
    error: float
    inside: float
    without: float


def accuracy() -> HoursAccuracy:
    """Return the accuracy of predicted chip-hours, with factor and band fitted without the run's source."""
    log_errors, inside = _log_errors(), 0
    for name, own in log_errors.items():
        others = {other: errors for other, errors in log_errors.items() if other != name}
        width = log(prediction_interval(others, COVERAGE))
        inside += sum(abs(error) <= width for error in own)
    return HoursAccuracy(
        runs=len(planned()),
        error=mean(map(abs, leave_one_out_errors().values())),
        inside=inside / len(planned()),
        without=mean(abs(one.hours / one.run.chip_hours - 1) for one in planned()),
    )


def record() -> dict[str, object]:
    """Return the record that is written."""
    errors, log_errors = leave_one_out_errors(), _log_errors()
    other = exp(mean(log(one.run.chip_hours / one.steps_hours) for one in planned() if one.steps_hours))
    return {
        "date": datetime.date.today().isoformat(),
        "runs": len(planned()),
        "factor": round(factor(), 3),
        "interval_factor": round(prediction_interval(log_errors, COVERAGE), 3),
        "slower_steps": round(factor() / other, 3),
        "other_overheads": round(other, 3),
        "leave_one_out_error": round(mean(map(abs, errors.values())), 3),
    }


def page_values() -> dict[str, str]:
    """Return the numbers for the accuracy page."""
    one, runs, found = chip_hour_overhead(), planned(), accuracy()
    parts = [run.hours / run.run.chip_hours for run in runs]
    return {
        "hours_runs": str(one.runs),
        "hours_low": share(min(parts), 0),
        "hours_high": share(max(parts), 0),
        "hours_both": str(sum(run.steps_hours is not None for run in runs)),
        "hours_meta": _over_own_steps(next(run for run in runs if run.run.name == "Llama-3.1-405B")),
        "hours_stops": f"{LLAMA3_INTERRUPTIONS.mtbf_s / 3600:.1f}",
        "hours_error": share(found.error),
        "hours_inside": share(found.inside, 0),
        "hours_without": share(found.without, 0),
        "hours_factor": f"{one.factor:.2f}",
        "hours_steps": f"{one.slower_steps:.2f}",
        "hours_besides": f"{one.other_overheads:.2f}",
        "hours_band": f"{one.interval_factor:.2f}",
    }


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the table rows of each whole run and its plan."""
    errors = leave_one_out_errors()
    for one in planned():
        hours = one.run.chip_hours
        over, error = f"{hours / one.hours:.2f}", signed(errors[one.run.name], 0)
        yield one.run.name, si(hours), si(one.hours), over, _over_own_steps(one), error


def _over_own_steps(one: Planned) -> str:
    """The published hours over those of the run's own steps, if it states their times."""
    return f"{one.run.chip_hours / one.steps_hours:.2f}" if one.steps_hours else ""


if __name__ == "__main__":
    PATH.write_text(json.dumps(record(), indent=1) + "\n")
