"""Fits chips' efficiencies to published runs and records them: `python -m tools.calibrate training`.

It writes `<training | inference>_efficiencies.json` in scalingbook_lib/calibrated/data: the fit in `values`,
and in `leave_one_out` how each run is predicted without others (`calibrated.factors.Record`). Each takes a
minute. The search starts at the previous record, because from the priors it may end in a worse minimum. With
either, or as `python -m tools.calibrate bands` alone, it writes the bands of predictions that follow from the
left-out runs (`prediction_bands.json`, which `calibrated.bands` reads).
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from zlib import crc32

from scalingbook_lib.calibrated import factors, records
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.evidence import bands, fitting, inference, resources, training
from scalingbook_lib.evidence.calibration import Calibration
from scalingbook_lib.evidence.inference import efficiencies as of_inference
from scalingbook_lib.evidence.training import efficiencies as of_training

FOLDER = Path(records.__file__).parent / "data"


@dataclass(frozen=True)
class Fit:
    """What to fit: the runs, their calibration, and the source of a run."""

    runs: Callable[[], Sequence[Any]]
    by: Calibration
    source: Callable[[Any], str]

    @property
    def ways(self) -> dict[str, Callable[[Any], str]]:
        """The keys by which runs are left out together."""
        return {
            "rows": lambda run: str(crc32(run.id.encode()) % 5),  # one in five
            "source": self.source,
            "software": lambda run: run.software[0],
            "chip": lambda run: run.chip.name,
        }

    def leave_one_out(self, values: Values) -> dict[str, dict[str, float]]:
        """For each run, predicted over published by the values without the runs that are left out with it."""
        runs = self.runs()
        parts = {
            (way, name): part
            for way, key in self.ways.items()
            for name, part in resources.grouped(range(len(runs)), lambda k, key=key: key(runs[k])).items()
        }
        asked = self.by.priors(runs), self.by.errors(runs), values, parts.values()
        found: dict[str, dict[str, float]] = {way: {} for way in self.ways}
        for (way, _), part, without in zip(parts, parts.values(), fitting.without(*asked), strict=True):
            found[way] |= {runs[k].id: round(self.by.ratio(without, runs[k]), 4) for k in part}
        return found

    def frozen(self, start: Values) -> str:
        """The record as JSON text."""
        values = self.by.fit(self.runs(), start=start)
        record = {"date": str(date.today()), "values": values, "leave_one_out": self.leave_one_out(values)}
        return json.dumps(record, indent=1) + "\n"


FITS = {
    "training": Fit(training.all_runs, of_training.CALIBRATION, training.source),
    "inference": Fit(inference.all_runs, of_inference.CALIBRATION, inference.source),
}


def prediction_bands() -> str:
    """The record of the bands as JSON text, from the recorded left-out runs."""
    found = {"date": str(date.today()), "bands": bands.computed(), "classes": bands.class_rows()}
    return json.dumps(found, indent=1) + "\n"


def _forget() -> None:
    """Let what follows read the records that were just written."""
    for remembered in (records.record, factors.record):
        remembered.cache_clear()


if __name__ == "__main__":
    asked = sys.argv[1:] or [*FITS]
    for what in asked:
        if what in FITS:
            fit = FITS[what].frozen(factors.record(what).values)
            (FOLDER / f"{what}_efficiencies.json").write_text(fit, encoding="utf-8")
    _forget()
    (FOLDER / "prediction_bands.json").write_text(prediction_bands(), encoding="utf-8")
