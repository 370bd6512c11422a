"""What the book measured itself, on GPUs that it had for quarters of an hour, beside what it predicts."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

from scalingbook_lib import evidence, training
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import opened
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.units import BF16, GiB
from tools.environment import ROOT
from tools.published import Cells, share

TABLES = "own_kernels", "own_training", "own_inference"
PURE = "all in bf16"  # what a row's notes say where no copy of the weights is wider


def _peaks(pure: bool) -> Iterator[float]:
    """The peaks of the training runs over what is counted of their plans."""
    for row in opened(ROOT / "data" / "own_training.csv"):
        if (PURE in row["notes"]) == pure:
            found = planned(read(row))
            types = {"weights": BF16, "gradients": BF16, "moments": BF16, "master": None} if pure else {}
            plan = replace(found.plan, **types)
            asked = {"batch": int(row["global_batch"]), "T": int(row["seq"])}
            yield float(row["peak_mem_gib"]) * GiB / training.memory(found.model, plan, **asked).total


def memory() -> dict[str, str]:
    """The least and the most of these: of small models in mixed types, and of a large one all in bf16."""
    found = {"own": list(_peaks(pure=False)), "own_8b": list(_peaks(pure=True))}
    ends = {"least": min, "most": max}
    return {f"{name}_{end}": f"{of(each):.2f}" for name, each in found.items() for end, of in ends.items()}


def rows() -> Cells:
    """By what was run, on which chip, and by class; no fit has seen any."""
    found = [
        (row.row["source"].partition(": ")[2], row.found)
        for table in TABLES
        for row in evidence.score([*opened(ROOT / "data" / f"{table}.csv")]).rows
        if row.found
    ]
    for (chip, by, kind), same in grouped(found, lambda pair: (pair[1].chip, pair[0], pair[1].kind)).items():
        errors = Summary.of(kind, [one.error for _, one in same])
        held = share(mean(one.in_band for _, one in same), 0)
        sizes = share(errors.mean), share(errors.median), signed(errors.bias)
        yield f"{chip}, {by}: {kind}", str(errors.runs), *sizes, held
