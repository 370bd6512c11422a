"""Fit the figures of training to published runs, and freeze them: `python -m tools.calibrate`.

It writes `training_efficiencies.json` in scalingbook_lib/evidence/data: all figures in `values`; in
`left_out` how each run is predicted without others (`evidence.factors.Record`). A minute.
"""

import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from zlib import crc32

from scalingbook_lib.evidence import fitting, resources, training
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.training.efficiencies import errors, expected, fit, of, step_s

FILE = Path(resources.__file__).parent / "data" / "training_efficiencies.json"
WAYS: dict[str, Callable[[TrainingRun], str]] = {
    "rows": lambda run: str(crc32(run.id.encode()) % 5),  # one in five
    "source": training.source,
    "software": lambda run: run.software[0],
    "chip": lambda run: run.chip.name,
}
"""By what runs are left out together."""


def left_out(runs: Sequence[TrainingRun], values: Values) -> dict[str, dict[str, float]]:
    """Of each run, predicted over published by the values without those that it is left out with."""
    parts = {
        (way, name): part
        for way, key in WAYS.items()
        for name, part in resources.grouped(range(len(runs)), lambda k, key=key: key(runs[k])).items()
    }
    each = fitting.without(expected(runs), errors(runs), values, parts.values())
    found: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    for ((way, _), part), without in zip(parts.items(), each, strict=True):
        for run in (runs[k] for k in part):
            found[way][run.id] = round(step_s(run, of(without, run)) / run.step_s, 4)
    return found


def frozen() -> str:
    """The record."""
    runs = training.every()
    values = fit(runs)
    record = {"date": str(date.today()), "values": values, "left_out": left_out(runs, values), "tried": {}}
    return json.dumps(record, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(frozen(), encoding="utf-8")
