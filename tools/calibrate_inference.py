"""Fit the efficiencies of chips to published runs of inference, and freeze them in the library.

    python -m tools.calibrate_inference

writes scalingbook_lib/inference/published/calibrated.py: the table of all runs, and, for each model as an
engine ran it, the lines of the chips that it touches, fitted without it.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from scalingbook_lib.calibration import Key, Values
from scalingbook_lib.inference.published.fit import fit, key
from scalingbook_lib.measured.inference_runs import RUNS, InferenceRun

PLACE = Path("scalingbook_lib/inference/published/calibrated.py")
FEWEST = 3  # runs of a chip and type that make a line
HEAD = '''"""The efficiencies of chips in inference, as `fit` found them: calibrate_inference.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each model as an engine ran it, the chips that it
touches, without it (no line where fewer than three runs are left). Chapter: Inference.
"""

DATE = "2026-11-21"
'''


def source(run: InferenceRun) -> str:
    """As `published.scores` has it, which reads what is written here."""
    return f"{run.model.name.split(',')[0]}, {run.engine}"


def grouped(runs: Iterable[InferenceRun]) -> list[tuple[Key, list[InferenceRun]]]:
    """The runs of each chip and type."""
    groups: dict[Key, list[InferenceRun]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return sorted(groups.items())


def lines(runs: Iterable[InferenceRun]) -> str:
    """One line for each chip and type."""
    return "".join(_line(*name, fit(group)) for name, group in grouped(runs) if len(group) >= FEWEST)


def _line(chip: str, compute: str, values: Values) -> str:
    text = f"{chip} | {compute} | {' '.join(f'{name}={value:.3g}' for name, value in values.items())}"
    return fill(text, 105, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def main() -> None:
    """Fit everything; half a minute."""
    text = f'{HEAD}ROWS = """\n{lines(RUNS)}"""\nLEFT_OUT = {{\n'
    for name in sorted({source(run) for run in RUNS}):
        touched = {key(run) for run in RUNS if source(run) == name}
        left = [run for run in RUNS if key(run) in touched and source(run) != name]
        text += f'    "{name}": """\n{lines(left)}""",\n'
        print(name, len(left))
    PLACE.write_text(f"{text}}}\n")


if __name__ == "__main__":
    main()
