"""Fit the efficiencies of chips to published training runs, and freeze them in the library.

    python -m tools.calibrate_training

writes scalingbook_lib/evidence/training/calibrated.py: the table of all runs, and, for each family of runs,
the lines of the chips that it touches, fitted without it.
"""

from collections import defaultdict
from collections.abc import Iterable
from math import log, log2
from pathlib import Path
from statistics import mean
from textwrap import fill

from scalingbook_lib.evidence.calibration import Table, Values, summary
from scalingbook_lib.evidence.measured.training_runs import KEPT, RUNS, TrainingRun
from scalingbook_lib.evidence.training.fit import efficiency, fit
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.evidence.training.predicted import seconds
from scalingbook_lib.evidence.training.scores import source
from scalingbook_lib.evidence.training.series import ratios
from scalingbook_lib.evidence.training.table import of

PLACE = Path("scalingbook_lib/evidence/training/calibrated.py")
FEWEST = 3  # runs of a chip and type that make a line
HEAD = '''"""The efficiencies of chips in training, as `fit` found them: tools/calibrate_training.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each source, the chips that it touches, without it
(no line where fewer than three are left). `ONE_KERNEL`: the mean and the 90th percentile of the errors of
dense runs, and of those with experts, if all had the same kind of attention. `DOUBLING`: if a step took that
share longer with each doubling of the chips, how many runs would be within 5 % in their series; the mean
errors with the source left out, dense and with experts; and that of runs kept apart. Chapter: Training.
"""

DATE = "2026-11-21"
'''


def grouped(runs: Iterable[TrainingRun]) -> list[tuple[tuple[str, str], list[TrainingRun]]]:
    """The runs of each chip and type."""
    groups: dict[tuple[str, str], list[TrainingRun]] = defaultdict(list)
    for run in runs:
        groups[run.chip.name, run.precision].append(run)
    return sorted(groups.items())


def one_kernel() -> tuple[tuple[float, float], ...]:
    """Mean and 90th percentile, dense and with experts, if attention were one class for all software."""
    errors: tuple[list[float], list[float]] = [], []
    for _, group in grouped(RUNS):
        table = efficiency(fit(group, kernel="attention"), "attention", group[0].chip)
        for run in group:
            errors[run.experts].append(seconds(run, table).total_s / run.step_s - 1)
    found = [summary("", one) for one in errors]
    return tuple((round(one.mean, 4), round(one.p90, 4)) for one in found)


def doubling(share: float = 0.008) -> tuple[float, float, float, float, float]:
    """What if a step took that share longer with each doubling of the chips, by tables fitted to that?

    The share; how many runs are within 5 % in their series; mean errors with the source left out, dense and
    with experts; and the mean error of the runs that are kept apart.
    """
    whole = _tables(RUNS, share)
    errors = {run.id: log(_step_s(run, whole, share) / run.step_s) for run in RUNS}
    near = sum(abs(one.error) <= 0.05 for one in ratios(errors))
    dense, experts = _left_out(whole, share)
    kept = mean(abs(_step_s(run, whole, share) / run.step_s - 1) for run in KEPT)
    return share, near, round(dense, 4), round(experts, 4), round(kept, 4)


def _left_out(whole: Table, share: float) -> tuple[float, float]:
    errors: tuple[list[float], list[float]] = [], []
    for name in sorted({source(run) for run in RUNS}):
        touched, left = _without(name)
        table = {key: row for key, row in whole.items() if key not in touched} | _tables(left, share)
        for run in (run for run in RUNS if source(run) == name):
            errors[run.experts].append(abs(_step_s(run, table, share) / run.step_s - 1))
    return mean(errors[0]), mean(errors[1])


def _tables(runs: Iterable[TrainingRun], share: float) -> dict[tuple[str, str], Values]:
    return {key: fit(group, doubling=share) for key, group in grouped(runs) if len(group) >= FEWEST}


def _step_s(run: TrainingRun, table: Table, share: float) -> float:
    found = of(table, run.chip, run.precision, planned(run).kernel)
    return seconds(run, found).total_s * (1 + share * log2(run.chips))


def _without(name: str) -> tuple[set[tuple[str, str]], list[TrainingRun]]:
    """The chips and types that a source touches, and their runs without it."""
    touched = {(run.chip.name, run.precision) for run in RUNS if source(run) == name}
    runs = [run for run in RUNS if (run.chip.name, run.precision) in touched and source(run) != name]
    return touched, runs


def lines(runs: Iterable[TrainingRun]) -> str:
    """One line for each chip and type."""
    return "".join(_line(*key, fit(group)) for key, group in grouped(runs) if len(group) >= FEWEST)


def _line(chip: str, precision: str, values: Values) -> str:
    text = f"{chip} | {precision} | {' '.join(f'{name}={value:.3g}' for name, value in values.items())}"
    return fill(text, 105, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def main() -> None:
    """Fit everything; a minute or two."""
    text = f'{HEAD}ROWS = """\n{lines(RUNS)}"""\nLEFT_OUT = {{\n'
    for name in sorted({source(run) for run in RUNS}):
        _, left = _without(name)
        text += f'    "{name}": """\n{lines(left)}""",\n'
        print(name, len(left))
    PLACE.write_text(f"{text}}}\nONE_KERNEL = {one_kernel()}\nDOUBLING = {doubling()}\n")


if __name__ == "__main__":
    main()
