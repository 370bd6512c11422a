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
from scalingbook_lib.training.published.fit import Values, fit
from scalingbook_lib.training.published.scores import source

PLACE = Path("scalingbook_lib/training/published/calibrated.py")
FEWEST = 3  # runs of a chip and type that make a line
HEAD = '''"""The efficiencies of chips in training, as `fit` found them: tools/calibrate_training.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each source, the chips that it touches, without it
(no line where fewer than three are left). Chapter: Training.
"""

DATE = "2026-11-21"
'''


def lines(runs: Iterable[TrainingRun]) -> str:
    """One line for each chip and type."""
    groups: dict[tuple[str, str], list[TrainingRun]] = defaultdict(list)
    for run in runs:
        groups[run.chip.name, run.precision].append(run)
    return "".join(_line(*key, fit(group)) for key, group in sorted(groups.items()) if len(group) >= FEWEST)


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
    PLACE.write_text(text + "}\n")


if __name__ == "__main__":
    main()
