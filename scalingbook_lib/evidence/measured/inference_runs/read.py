"""How does a row of `inference_runs.csv` become a run?

The table's own columns say what the source prints. The others say how the library reads it: `use` ("" of a
usable run, else why it is left out), `transformer`, `kind`, the work (`P`, `G`, `S`, `B`, `requests` as
means), what the engine was told (`most_sequences`, `most_tokens`), and `printed`, the one figure that counts.
What is common to a family of runs stands in `inference_families.csv`. Chapter: Inference.
"""

from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import shapes
from scalingbook_lib.evidence.measured.inference_runs.run import InferenceRun
from scalingbook_lib.evidence.resources import Row, number
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8, DType

_COLUMNS = {"tok": "output_tok_s_total", "s": "latency_s", "ms": "tpot_ms"}
NVFP4 = DType("nvfp4", 0.5 + 1 / 16)
"""Four bits, and a scale of eight for every sixteen of them."""
INT4_G32 = DType("int4 in groups of 32", 0.5 + 4 / 32)
"""Four bits, and a scale and a zero of sixteen bits each for every 32 of them."""
TYPES = {"bf16": BF16, "fp16": FP16, "fp8": FP8, "int8": INT8, "fp4": NVFP4, "int4-g32": INT4_G32}
"""The types of weights, as the table calls them."""
COMPUTES = TYPES | {"int8": BF16, "fp4": FP4, "int4-g32": BF16}
"""What products are computed in: int8 and int4 weights are made 16 bits wide first, fp8 and fp4 are not."""


@cache
def runs() -> tuple[InferenceRun, ...]:
    """Every usable run."""
    return tuple(_run(row) for row in resources.rows("inference_runs") if not row["use"])


@cache
def _families() -> dict[str, Row]:
    return {row["family"]: row for row in resources.rows("inference_families")}


def _run(row: Row) -> InferenceRun:
    family, chips, pp = _families()[row["family"]], int(row["chips"]), int(row["pp"] or 1)
    weights = row["weight_dtype"] or "bf16"  # the engine's default
    return InferenceRun(
        id=row["run_id"],
        family=row["family"],
        kind=row["kind"],
        engine=family["engine"],
        model=shapes.find(row["transformer"]),
        chip=resources.chip(row["chip"]),
        chips=chips,
        tp=chips // pp,  # the table counts devices, of which a TPU7x has two
        pp=pp,
        weights=TYPES[weights],
        compute=COMPUTES[weights],
        head=TYPES[family["head"] or weights],
        kv=TYPES[family["kv"]],
        P=number(row["P"]) or 0,
        G=number(row["G"]) or 0,
        S=number(row["S"]),
        B=number(row["B"]),
        requests=number(row["requests"]),
        most_sequences=number(row["most_sequences"]),
        most_tokens=number(row["most_tokens"]),
        printed=((row["printed"], row[_COLUMNS[row["printed"]]]),),
        source=resources.source(family),
        note=family["note"],
    )
