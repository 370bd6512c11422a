"""Fit chips' efficiencies to published runs and record them: `python -m tools.calibrate training`.

It writes `<training | inference>_efficiencies.json` in scalingbook_lib/calibrated/data: the fit in `values`,
and in `leave_one_out` the prediction of each run by fits without related runs (`calibrated.factors.Record`).
Each table takes a minute. The search starts at the previous record, because from the priors it may end in a
worse minimum.
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
from scalingbook_lib.evidence import fitting, inference, resources, training
from scalingbook_lib.evidence.calibration import Calibration
from scalingbook_lib.evidence.inference import efficiencies as of_inference
from scalingbook_lib.evidence.training import efficiencies as of_training

FOLDER = Path(records.__file__).parent / "data"


@dataclass(frozen=True)
class Fit:
    """One table to fit: its runs, their calibration, and the source of each run."""

    runs: Callable[[], Sequence[Any]]
    by: Calibration
    source: Callable[[Any], str]

    @property
    def ways(self) -> dict[str, Callable[[Any], str]]:
        """The keys by which related runs are left out together."""
        return {
            "rows": lambda run: str(crc32(run.id.encode()) % 5),  # one in five
            "source": self.source,
            "software": lambda run: run.software[0],
            "chip": lambda run: run.chip.name,
        }

    def leave_one_out(self, values: Values) -> dict[str, dict[str, float]]:
        """Return, for each run, predicted over published by values fitted without the runs of its group."""
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
        """Return the record as JSON text."""
        values = self.by.fit(self.runs(), start=start)
        record = {"date": str(date.today()), "values": values, "leave_one_out": self.leave_one_out(values)}
        return json.dumps(record, indent=1) + "\n"


FITS = {
    "training": Fit(training.all_runs, of_training.CALIBRATION, training.source),
    "inference": Fit(inference.all_runs, of_inference.CALIBRATION, inference.source),
}


if __name__ == "__main__":
    for what in sys.argv[1:] or FITS:
        (FOLDER / f"{what}_efficiencies.json").write_text(
            FITS[what].frozen(factors.record(what).values), encoding="utf-8"
        )
