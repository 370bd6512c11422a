"""Fit the efficiencies of chips to published training runs, and freeze them in the library.

    python -m tools.calibrate_training

writes scalingbook_lib/training/published/calibrated.py: the table of all runs, and, for each family of runs,
the lines of the chips that it touches, fitted without it.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from scalingbook_lib.measured.training_runs import RUNS, TrainingRun
from scalingbook_lib.training.published.fit import Values, efficiency, fit
from scalingbook_lib.training.published.predicted import seconds
from scalingbook_lib.training.published.scores import source, summary

PLACE = Path("scalingbook_lib/training/published/calibrated.py")
FEWEST = 3  # runs of a chip and type that make a line
HEAD = '''"""The efficiencies of chips in training, as `fit` found them: tools/calibrate_training.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each source, the chips that it touches, without it
(no line where fewer than three are left). `ONE_KERNEL`: the mean and the 90th percentile of the errors of
dense runs, and of those with experts, if all had the same kind of attention. Chapter: Training.
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
        touched = {(run.chip.name, run.precision) for run in RUNS if source(run) == name}
        left = [run for run in RUNS if (run.chip.name, run.precision) in touched and source(run) != name]
        text += f'    "{name}": """\n{lines(left)}""",\n'
        print(name, len(left))
    PLACE.write_text(f"{text}}}\nONE_KERNEL = {one_kernel()}\n")


if __name__ == "__main__":
    main()
