"""What the book measured itself, on an H100 that it had for a quarter of an hour, beside what it predicts."""

from statistics import mean

from scalingbook_lib import evidence
from scalingbook_lib.evidence.resources import grouped
from scalingbook_lib.evidence.scores import Summary, signed
from scalingbook_lib.evidence.scoring import opened
from tools.environment import ROOT
from tools.published import Cells, share

TABLES = "own_kernels", "own_training"


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
