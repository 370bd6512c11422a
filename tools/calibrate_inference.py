"""Fit the efficiencies of chips to published runs of inference, and freeze them in the library.

    python -m tools.calibrate_inference

writes scalingbook_lib/evidence/inference/calibrated.py: the table of all runs, and, for each model as an
engine ran it, the lines of the chips that it touches, fitted without it.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from scalingbook_lib.evidence.calibration import Key, Values, read
from scalingbook_lib.evidence.inference.fit import fit, key, source
from scalingbook_lib.evidence.inference.predicted import tokens_per_s
from scalingbook_lib.evidence.inference.table import of
from scalingbook_lib.evidence.measured.inference_runs import RUNS, InferenceRun

PLACE = Path("scalingbook_lib/evidence/inference/calibrated.py")
FEWEST = 3  # runs of a chip and type that make a line
HEAD = '''"""The efficiencies of chips in inference, as `fit` found them: calibrate_inference.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each model as an engine ran it, the chips that it
touches, without it (no line where fewer than three runs are left). `NO_HOST`: the mean errors of serving,
dense and with experts, source left out, if the host needed no time. Chapter: Inference.
"""

DATE = "2026-11-21"
'''


def grouped(runs: Iterable[InferenceRun]) -> list[tuple[Key, list[InferenceRun]]]:
    """The runs of each chip and type."""
    groups: dict[Key, list[InferenceRun]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return sorted(groups.items())


def lines(runs: Iterable[InferenceRun], fixed: Values | None = None) -> str:
    """One line for each chip and type."""
    groups = [(name, group) for name, group in grouped(runs) if len(group) >= FEWEST]
    return "".join(_line(*name, fit(group, fixed=fixed)) for name, group in groups)


def _line(chip: str, compute: str, values: Values) -> str:
    text = f"{chip} | {compute} | {' '.join(f'{name}={value:.3g}' for name, value in values.items())}"
    return fill(text, 105, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def others(name: str) -> list[InferenceRun]:
    """The runs of the chips and types that a source touches, without it."""
    touched = {key(run) for run in RUNS if source(run) == name}
    return [run for run in RUNS if key(run) in touched and source(run) != name]


def no_host() -> tuple[float, ...]:
    """Mean errors of serving, dense and with experts, source left out, with a host that needs no time."""
    errors: tuple[list[float], list[float]] = [], []
    for name in sorted({source(run) for run in RUNS}):
        table = read(lines(others(name), {"host_s": 1e-9}))
        for run in (run for run in RUNS if source(run) == name and run.kind == "serving"):
            rate = tokens_per_s(run, of(table, run.chip, run.compute, run.engine))
            errors[run.experts].append(abs(rate / run.tokens_per_s - 1))
    return tuple(round(sum(found) / len(found), 4) for found in errors)


def main() -> None:
    """Fit everything; half a minute."""
    text = f'{HEAD}ROWS = """\n{lines(RUNS)}"""\nLEFT_OUT = {{\n'
    for name in sorted({source(run) for run in RUNS}):
        text += f'    "{name}": """\n{lines(others(name))}""",\n'
    PLACE.write_text(f"{text}}}\nNO_HOST = {no_host()}\n")


if __name__ == "__main__":
    main()
