"""How does a row of `training_runs.csv` become a run?

The table's own columns say what the source prints. The last ones say how the library reads it: `use` ("" of
a usable run, "held-out" of one that no efficiency may be fitted to, else why it is left out), `transformer`,
the split (`micro`, `chunks`, `slices`, `shards`, `zero`; the copies of `dp` are what remains of the chips),
`policy` of rematerialization, `counts` (see `counting`), `printed` (which columns are the source's own
figures), `variant`. What is common to a family of runs stands in `training_families.csv`. Chapter: Training.
"""

from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.shapes import trained
from scalingbook_lib.evidence.measured.training_runs.run import TrainingRun, products
from scalingbook_lib.evidence.resources import Row, number

_COLUMNS = {
    "s": "step_time_s",
    "tok": "tokens_per_s_per_chip",
    "tf": "tflops_per_chip",
    "mfu": "mfu",
    "mem": "peak_mem_gib",
}


@cache
def runs(use: str = "") -> tuple[TrainingRun, ...]:
    """The runs of that use."""
    return tuple(_run(row) for row in resources.rows("training_runs") if row["use"] == use)


@cache
def _families() -> dict[str, Row]:
    return {row["family"]: row for row in resources.rows("training_families")}


def _run(row: Row) -> TrainingRun:
    family, chip, printed = _families()[row["family"]], resources.chip(row["chip"]), row["printed"].split()
    chips, slices, shards = int(row["chips"]), int(row["slices"]), int(row["shards"])
    tp, pp, cp = int(row["tp"]), int(row["pp"]), int(row["cp"] or 1)
    documented = chip.flops_per_s(products(row["dtype"]))
    return TrainingRun(
        id=row["run_id"],
        family=row["family"],
        model=trained(row),
        chip=chip,
        chips=chips,
        precision=row["dtype"],
        T=int(row["seq"]),
        batch=int(row["global_batch"]),
        microbatch=number(row["micro"]),
        tp=tp,
        pp=pp,
        chunks=number(row["chunks"]),
        cp=cp,
        ep=int(row["ep"] or 1),
        fsdp=shards,
        dp=chips // (slices * shards * tp * cp * pp),
        dcn=slices,
        zero=int(row["zero"]),
        remat=row["policy"] or None,
        convention=row["counts"] or None,
        printed=tuple((name, row[_COLUMNS[name]]) for name in printed),
        coarse=bool(family["coarse"]),
        peak_flops_per_s=float(row["peak_tflops_used"]) * 1e12 if "mfu" in printed else documented,
        source=resources.source(family),
        variant=row["variant"],
        note=family["note"],
    )
