"""What the book measured itself, on an H100 that it had for a quarter of an hour, beside what it predicts."""

from statistics import mean

from scalingbook_lib import evidence, training
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import opened
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.units import GiB
from tools.environment import ROOT
from tools.published import Cells, share

TABLES = "own_kernels", "own_training"


def memory() -> dict[str, str]:
    """By how much the peaks of the training runs were above what is counted of their plans."""
    ratios = []
    for row in opened(ROOT / "data" / "own_training.csv"):
        plan = planned(read(row))
        counted = training.memory(
            plan.model, plan.plan, batch=int(row["global_batch"]), T=int(row["seq"])
        ).total
        ratios.append(float(row["peak_mem_gib"]) * GiB / counted)
    return {"own_least": f"{min(ratios):.2f}", "own_most": f"{max(ratios):.2f}"}


def rows() -> Cells:
    """By what was run and by class; no fit has seen any."""
    for table in TABLES:
        found = [row for row in evidence.score([*opened(ROOT / "data" / f"{table}.csv")]).rows if row.found]
        for by, group in grouped(found, lambda row: row.row["source"].partition(": ")[2]).items():
            for kind, same in grouped(
                [row.found for row in group if row.found], lambda one: one.kind
            ).items():
                errors = Summary.of(kind, [one.error for one in same])
                held = share(mean(one.in_band for one in same), 0)
                sizes = share(errors.mean), share(errors.median), signed(errors.bias)
                yield f"{by}: {kind}", str(errors.runs), *sizes, held
