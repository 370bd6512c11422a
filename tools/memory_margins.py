"""Records how far memory counts are off: `python -m tools.memory_margins`, a few seconds.

PyTorch's ratios are the peaks that published runs print and those of the own measurements with Hugging Face's
transformers. XLA's are those of the compiled training programs, of which the compiler says what they hold. It
writes `memory_margins.json` in scalingbook_lib/calibrated/data.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from scalingbook_lib.calibrated import records
from scalingbook_lib.evidence import memory
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells
from scalingbook_lib.evidence.scoring import read_table
from scalingbook_lib.evidence.training.candidate_plans import candidates
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.training.memory import memory as counted
from scalingbook_lib.units import BF16, GiB
from tools.compiled import beside
from tools.environment import ROOT

FILE = Path(records.__file__).parent / "data" / "memory_margins.json"
CLASS = next(name for name, kind in beside.CLASSES.items() if kind is beside.Step)
"""Plain JAX programs; the laboratory's own trainer writes its collectives out and keeps more."""


def compiled() -> list[float]:
    """Held over counted bytes of the compiled programs."""
    return [1 / (1 + one.errors[beside.HELD]) for one in beside.every() if one.kind == CLASS]


def own() -> Iterator[float]:
    """Held over counted bytes of the own measurements on H100, under PyTorch in eager mode."""
    for row in read_table(ROOT / "data" / "own_training.csv"):
        if (row["run_id"] or "").startswith("own-hf") and row["chip"] == "H100-SXM":
            yield _ratio(row)


def _ratio(row: Cells) -> float:
    run = candidates(row, read(row))[0]
    p = planned(run)
    plan = replace(p.plan, logit_bytes=14.0)
    if "all in bf16" in (row["notes"] or ""):
        plan = replace(plan, weights=BF16, master=None, moments=BF16)
    held = counted(p.model, plan, batch=run.batch, T=run.T, machine=p.machine).total
    return float(row["peak_mem_gib"] or 0) * GiB / held


def frozen() -> str:
    """The record as JSON text."""
    ratios = {"PyTorch": [*memory.measured("PyTorch"), *own()], "XLA": compiled()}
    found = {name: asdict(memory.margin(name, each)) for name, each in ratios.items()}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(frozen(), encoding="utf-8")
