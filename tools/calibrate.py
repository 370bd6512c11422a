"""Fit the efficiencies of chips to published runs, and freeze them: `python -m tools.calibrate [training]`.

It writes `<training | inference>_efficiencies.json` in scalingbook_lib/evidence/data: `table` of all usable
runs, by chip and type; `left_out`, for each source, the lines that it touches, fitted without it; `tried`,
what the pages say of other rules. Training takes a minute or two, inference half a minute.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from math import log, log2
from pathlib import Path
from statistics import mean
from typing import Any

from scalingbook_lib.evidence import inference, resources, training
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.inference import efficiencies as of_inference
from scalingbook_lib.evidence.measured import inference_runs, training_runs
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.tables import Key, Table
from scalingbook_lib.evidence.training import efficiencies as of_training
from scalingbook_lib.evidence.training.compared import ratios

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


def _training(fit: Callable[[Sequence[TrainingRun]], Values] = of_training.fit) -> Fits[TrainingRun]:
    return Fits(training_runs.RUNS, lambda run: (run.chip.name, run.precision), training.source, fit)


def _inference(fit: Callable[[Sequence[InferenceRun]], Values] = of_inference.fit) -> Fits[InferenceRun]:
    return Fits(inference_runs.RUNS, of_inference.key, inference.source, fit)


def _one_kernel() -> tuple[Summary, Summary]:
    """The errors, dense and with experts, if attention were one class for all software."""
    errors: tuple[list[float], list[float]] = [], []
    fits = _training(lambda runs: of_training.fit(runs, kernel="attention"))
    for _, group in fits.grouped(fits.runs):
        table = of_training.efficiency(fits.fit(group), "attention", group[0].chip)
        for run in group:
            errors[run.experts].append(training.seconds(run, table).total_s / run.step_s - 1)
    return Summary.of("dense", errors[0]), Summary.of("experts", errors[1])


def _doubling(share: float = 0.008) -> dict[str, float]:
    """What if a step took that share longer with each doubling of the chips, by tables fitted to that?

    `near`: how many runs are within 5 % in their series; mean errors with the source left out, dense and with
    experts; and the mean error of the runs that are held out.
    """
    fits = _training(lambda runs: of_training.fit(runs, doubling=share))

    def error(run: TrainingRun, table: Table) -> float:
        found = of_training.of(table, run.chip, run.precision, training.planned(run).kernel)
        return training.seconds(run, found).total_s * (1 + share * log2(run.chips)) / run.step_s - 1

    whole = fits.table(fits.runs)
    logarithms = {run.id: log(1 + error(run, whole)) for run in fits.runs}
    left_out: tuple[list[float], list[float]] = [], []
    for name in fits.sources:
        touched = {fits.key(run) for run in fits.of(name)}
        table = {line: row for line, row in whole.items() if line not in touched} | fits.left_out(name)
        for run in fits.of(name):
            left_out[run.experts].append(abs(error(run, table)))
    return {
        "share": share,
        "near": sum(abs(one.error) <= 0.05 for one in ratios(logarithms)),
        "dense": round(mean(left_out[0]), 4),
        "experts": round(mean(left_out[1]), 4),
        "held_out": round(mean(abs(error(run, whole)) for run in training_runs.HELD_OUT), 4),
    }


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
    dense, experts = ({"mean": round(one.mean, 4), "p90": round(one.p90, 4)} for one in _one_kernel())
    tried = {"one_kernel_dense": dense, "one_kernel_experts": experts, "doubling": _doubling()}
    return _frozen(_training(), tried)


if __name__ == "__main__":
    for what in sys.argv[1:] or ("training", "inference"):
        (FOLDER / f"{what}_efficiencies.json").write_text(frozen(what), encoding="utf-8")
