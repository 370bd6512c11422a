"""Fit the figures of inference to published runs, and freeze them: `python -m tools.calibrate_serving`.

It writes `inference_efficiencies.json` in scalingbook_lib/evidence/data: `values` of all runs; `left_out`,
for each source, those that were found without it; `tried`, the bands that hold five in six runs of models
and of software that nobody has seen, and what the pages say of other rules. Ten minutes.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from math import exp, log
from multiprocessing import Pool
from pathlib import Path
from statistics import mean

from scalingbook_lib.evidence import inference, resources
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.evidence.inference import KINDS, efficiencies
from scalingbook_lib.evidence.inference.scores import banded
from scalingbook_lib.evidence.measured.inference_runs import InferenceRun, added, runs
from scalingbook_lib.evidence.scores import quantile

FILE = Path(resources.__file__).parent / "data" / "inference_efficiencies.json"
HELD = 5 / 6  # the share of the runs of what was left out that a band shall hold
EVERY = (*runs(), *added())
ROUNDS = 5  # from the figures of all runs the way is short

type Name = Callable[[InferenceRun], str]


def software(run: InferenceRun) -> str:
    """Whose software it is."""
    return run.software[0]


def _without(asked: tuple[str, Name, Values]) -> Values:
    name, of, start = asked
    return efficiencies.fit([run for run in EVERY if of(run) != name], ROUNDS, start)


def _errors(values: Mapping[str, Values], of: Name) -> dict[str, list[float]]:
    """Logarithms of predicted over published by what a band is for, each run by figures that never saw it."""
    found: dict[str, list[float]] = {kind: [] for kind in (*KINDS[:2], KINDS[4])}
    for run in EVERY:
        rate = inference.tokens_per_s(run, efficiencies.of(values[of(run)], run))
        found[banded(run)].append(log(rate / run.tokens_per_s))
    return found


def _band(errors: Iterable[float]) -> float:
    return round(exp(quantile(sorted(map(abs, errors)), HELD)), 3)


def frozen() -> str:
    """The record."""
    values = efficiencies.fit(EVERY)
    left_out, unseen = {}, {}
    with Pool(2) as pool:
        for of, found in ((efficiencies.source, left_out), (software, unseen)):
            names = sorted({of(run) for run in EVERY})
            asked = [(name, of, values) for name in names]
            found |= dict(zip(names, pool.map(_without, asked, chunksize=1), strict=True))
    bands = {}
    for name, of, found in (("known", efficiencies.source, left_out), ("unseen", software, unseen)):
        errors = _errors(found, of)
        bands[name] = {kind: _band(one) for kind, one in errors.items()}
        for kind, one in errors.items():
            print(name, kind, len(one), round(mean(abs(exp(e) - 1) for e in one), 3), bands[name][kind])
    used = {efficiencies.source(run) for run in runs()}
    record = {
        "date": str(date.today()),
        "values": values,
        "left_out": left_out,
        "unseen": unseen,
        "tried": bands,
    }
    record["left_out"] = {name: one for name, one in left_out.items() if name in used}
    return json.dumps(record, indent=None, separators=(", ", ": ")).replace('}, "', '},\n"') + "\n"


if __name__ == "__main__":
    FILE.write_text(frozen(), encoding="utf-8")
