"""Fit the efficiencies of chips to published runs, and freeze them: `python -m tools.calibrate [training]`.

It writes `<training | inference>_efficiencies.json` in scalingbook_lib/evidence/data. Of training: all
figures in `values`; in `left_out` how each run is predicted without others (`evidence.factors.Record`). Of
inference: `table` of all usable runs, by chip and type; `left_out`, for each source, the lines that it
touches, fitted without it. `tried` is what the pages say of other rules. Each takes a minute.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any
from zlib import crc32

from scalingbook_lib.evidence import fitting, inference, resources, training
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.inference import efficiencies as of_inference
from scalingbook_lib.evidence.measured import inference_runs
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.tables import Key, Table
from scalingbook_lib.evidence.training import efficiencies as of_training

FOLDER = Path(resources.__file__).parent / "data"
FEWEST = 3  # runs of a chip and type that make a line


@dataclass(frozen=True)
class Fits[Run]:
    """How runs are told apart and fitted: which line of the table each belongs to, and which source."""

    runs: Sequence[Run]
    key: Callable[[Run], Key]
    source: Callable[[Run], str]
    fit: Callable[[Sequence[Run]], Values]

    @property
    def sources(self) -> list[str]:
        """All of them, sorted."""
        return sorted({self.source(run) for run in self.runs})

    def of(self, name: str) -> list[Run]:
        """The runs of a source."""
        return [run for run in self.runs if self.source(run) == name]

    def grouped(self, runs: Sequence[Run]) -> list[tuple[Key, list[Run]]]:
        """The runs of each line."""
        groups: dict[Key, list[Run]] = defaultdict(list)
        for run in runs:
            groups[self.key(run)].append(run)
        return sorted(groups.items())

    def table(self, runs: Sequence[Run]) -> dict[Key, Values]:
        """A line for each chip and type, of which there are enough."""
        return {line: self.fit(group) for line, group in self.grouped(runs) if len(group) >= FEWEST}

    def left_out(self, name: str) -> dict[Key, Values]:
        """The lines that a source touches, without it."""
        touched = {self.key(run) for run in self.of(name)}
        others = [run for run in self.runs if self.key(run) in touched and self.source(run) != name]
        return self.table(others)


def _inference(fit: Callable[[Sequence[InferenceRun]], Values] = of_inference.fit) -> Fits[InferenceRun]:
    return Fits(inference_runs.RUNS, of_inference.key, inference.source, fit)


WAYS: dict[str, Callable[[TrainingRun], str]] = {
    "rows": lambda run: str(crc32(run.id.encode()) % 5),  # one in five
    "source": training.source,
    "software": lambda run: run.software[0],
    "chip": lambda run: run.chip.name,
}
"""By what runs are left out together."""


def _left_out(runs: Sequence[TrainingRun], values: Values) -> dict[str, dict[str, float]]:
    """Of each run, predicted over published by the values without those that it is left out with."""
    parts = {
        (way, name): part
        for way, key in WAYS.items()
        for name, part in resources.grouped(range(len(runs)), lambda k, key=key: key(runs[k])).items()
    }
    asked = of_training.expected(runs), of_training.errors(runs), values
    found: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    for (way, _), part, without in zip(
        parts, parts.values(), fitting.without(*asked, parts.values()), strict=True
    ):
        for run in (runs[k] for k in part):
            step_s = of_training.step_s(run, of_training.of(without, run))
            found[way][run.id] = round(step_s / run.step_s, 4)
    return found


def _no_host() -> dict[str, float]:
    """Mean errors of serving, dense and with experts, source left out, with a host that needs no time."""
    fits = _inference(lambda runs: of_inference.fit(runs, fixed={"host_s": 1e-9}))
    errors: dict[str, list[float]] = {"dense": [], "experts": []}
    for name in fits.sources:
        table = _rounded(fits.left_out(name))
        for run in (run for run in fits.of(name) if run.kind == "serving"):
            efficiency = of_inference.of(table, run.chip, run.compute, run.engine)
            rate = inference.tokens_per_s(run, efficiency)
            errors["experts" if run.experts else "dense"].append(abs(rate / run.tokens_per_s - 1))
    return {kind: round(mean(found), 4) for kind, found in errors.items()}


def _rounded(table: Table) -> dict[Key, Values]:
    """To three digits, as tables are frozen."""
    return {line: {name: float(f"{value:.3g}") for name, value in row.items()} for line, row in table.items()}


def _frozen(fits: Fits[Any], tried: dict[str, dict[str, float]]) -> str:
    """One line of text for each line of a table."""
    left_out = {name: _lines(fits.left_out(name), "  ") for name in fits.sources}
    text = ",\n".join(f"  {json.dumps(name)}: {lines}" for name, lines in left_out.items())
    rest = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in tried.items())
    return (
        f'{{\n "date": "{date.today()}",\n "table": {_lines(fits.table(fits.runs), " ")},\n'
        f' "left_out": {{\n{text}\n }},\n "tried": {{\n{rest}\n }}\n}}\n'
    )


def _lines(table: Table, indent: str) -> str:
    rows = (
        f'{indent} "{chip} | {dtype}": {json.dumps(row)}' for (chip, dtype), row in _rounded(table).items()
    )
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}" if table else "{}"


def frozen(what: str) -> str:
    """The record of "training", or of "inference"."""
    if what == "inference":
        return _frozen(_inference(), {"no_host": _no_host()})
    runs = training.every()
    values = of_training.fit(runs)
    record = {"date": str(date.today()), "values": values, "left_out": _left_out(runs, values), "tried": {}}
    return json.dumps(record, indent=1) + "\n"


if __name__ == "__main__":
    for what in sys.argv[1:] or ("training", "inference"):
        (FOLDER / f"{what}_efficiencies.json").write_text(frozen(what), encoding="utf-8")
