"""How fast did real engines run a model? Published prefill, decode and serving, each with its work and split.

`RUNS` are the usable rows of `evidence/data/inference_runs.csv`, `REFUSED` the others by the reason. Sources
print tokens/s, or the time of a step or of all: `InferenceRun.tokens_per_s` is one convention for all. The
table's own columns say what the source prints. The others say how the library reads it: `use` ("" of a
usable run, else why it is left out), `transformer`, `kind`, the work (`P`, `G`, `S`, `B`, `requests` as
means), what the engine was told (`most_sequences`, `most_tokens`), and `printed`, the one figure that counts.
What is common to a family of runs stands in `inference_families.csv`. Chapter: Inference.
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import published, shapes
from scalingbook_lib.evidence.measured.published import PublishedRun
from scalingbook_lib.evidence.resources import Row, number
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8, DType, si

_COLUMNS = {"tok": "output_tok_s_total", "s": "latency_s", "ms": "tpot_ms"}
NVFP4 = DType("nvfp4", 0.5 + 1 / 16)
"""Four bits, and a scale of eight for every sixteen of them."""
INT4_G32 = DType("int4 in groups of 32", 0.5 + 4 / 32)
"""Four bits, and a scale and a zero of sixteen bits each for every 32 of them."""
TYPES = {"bf16": BF16, "fp16": FP16, "fp8": FP8, "int8": INT8, "fp4": NVFP4, "int4-g32": INT4_G32}
"""The types of weights, as the table calls them."""
COMPUTES = TYPES | {"int8": BF16, "fp4": FP4, "int4-g32": BF16}
"""What products are computed in: int8 and int4 weights are made 16 bits wide first, fp8 and fp4 are not."""
KINDS = {
    "serving": "requests come and go in one batch, as many at once as fit or as are allowed: output tokens/s",
    "batch": "B prompts together, then G tokens of each: output tokens/s, the prompts' time included",
    "prefill": "B prompts of P tokens, nothing generated: prompt tokens/s",
    "decode": "a step of B sequences, each a token: output tokens/s",
}
"""What was measured, by the kind of a run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InferenceRun(PublishedRun):
    """One row of `inference_runs.csv`: tp · pp chips hold one copy of the model.

    P prompt tokens and G generated tokens of a request, both as means; a step of "decode" has S tokens a
    sequence in its cache. None where the source does not say, or it does not apply: `B` sequences at once,
    `requests` in all, and what the engine was told: at most `most_sequences` and `most_tokens` in a step.
    `weights` are those of the layers as they are stored, scales counted, `compute` the type of their
    products, `head` that of the unembedding. `tokens_per_s` is of all chips together.
    """

    kind: str
    engine: str
    weights: DType
    compute: DType
    head: DType
    kv: DType
    P: int
    G: int
    S: int | None
    B: int | None
    requests: int | None
    most_sequences: int | None
    most_tokens: int | None

    @property
    def tokens_per_s(self) -> float:
        """The rate, the one convention for all: as printed, or from the time of all that was done."""
        if "tok" in self.printed:
            return float(self.printed["tok"])
        if "ms" in self.printed:
            return (self.B or 1) / float(self.printed["ms"]) * 1e3
        return (self.B or 1) * (self.P if self.kind == "prefill" else self.G) / float(self.printed["s"])

    @property
    def tokens_per_s_per_chip(self) -> float:
        """The rate of one chip."""
        return self.tokens_per_s / self.chips

    def __str__(self) -> str:
        split = " ".join(f"{name} {ways}" for name, ways in (("tp", self.tp), ("pp", self.pp)) if ways > 1)
        work = {
            "serving": f"requests of {self.P:,} + {self.G:,} tokens",
            "batch": f"{self.B} × {self.P:,} + {self.G:,} tokens",
            "prefill": f"{self.B} × {self.P:,} tokens of prompt",
            "decode": f"steps of {self.B} at {self.S or 0:,} tokens",
        }[self.kind]
        return (
            f"{self.model.name} on {self.chips} {self.chip.name}, {self.weights}"
            f"{', ' + split if split else ''}, {work}: {si(self.tokens_per_s, 'tokens/s')}"
        )


@cache
def runs() -> tuple[InferenceRun, ...]:
    """Every usable run."""
    return tuple(_run(row) for row in resources.rows("inference_runs") if not row["use"])


def _run(row: Row) -> InferenceRun:
    family, chips, pp = published.families("inference")[row["family"]], int(row["chips"]), int(row["pp"] or 1)
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
        printed={row["printed"]: row[_COLUMNS[row["printed"]]]},
        source=resources.source(family),
        note=family["note"],
    )


RUNS: tuple[InferenceRun, ...]
"""Every usable run."""
REFUSED: dict[str, tuple[str, ...]]
"""The ids of the rows that are left out, by the reason.

A run is usable where the source names the model and its shapes, the chips and how they were split, the work
(prompt, tokens generated or context, and how many sequences at once, unless the engine takes all that fit),
and prints a time or a rate.
"""

__getattr__ = resources.lazily(__name__, {"RUNS": runs, "REFUSED": lambda: published.refused("inference")})


def find(id: str) -> InferenceRun:
    """The run of that id."""
    return published.find(id, runs(), "inference")
