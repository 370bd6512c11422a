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
from math import ceil

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured import published
from scalingbook_lib.evidence.measured.published import PublishedRun
from scalingbook_lib.evidence.reading.cells import (
    PRECISIONS,
    Cells,
    UnpredictedRow,
    annotated,
    first,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import model
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.resources import Row
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, FP4, FP8, FP16, INT8, DType, si

_PRINTED_COLUMNS = {"tok": "output_tok_s_total", "s": "latency_s", "ms": "tpot_ms"}
LENGTHS = ("P", "input_len"), ("G", "output_len"), ("S", "context_len")
MAX_CHIPS = 2**20
NVFP4 = DType("nvfp4", 0.5 + 1 / 16)
"""Four bits, and an 8-bit scale for every 16 elements."""
INT4_G32 = DType("int4 in groups of 32", 0.5 + 4 / 32)
"""Four bits, and a 16-bit scale and zero point for every 32 elements."""
TYPES = {"bf16": BF16, "fp16": FP16, "fp8": FP8, "int8": INT8, "fp4": NVFP4, "int4-g32": INT4_G32}
"""Weight dtypes by the table's names."""
COMPUTES = TYPES | {"int8": BF16, "fp4": FP4, "int4-g32": BF16}
"""The compute dtype of weights: int8 and int4 are dequantized to 16 bits first, fp8 and fp4 are not."""
KINDS = {
    "serving": "requests come and go in one batch, as many at once as fit or as are allowed: output tokens/s",
    "batch": "B prompts together, then G tokens of each: output tokens/s, the prompts' time included",
    "prefill": "B prompts of P tokens, nothing generated: prompt tokens/s",
    "decode": "a step of B sequences, each a token: output tokens/s",
}
"""The kinds of runs and what was measured."""
PHASES = {
    "batch": r"^batch$|prefill ?\+ ?decode|static|end.?to.?end|e2e",
    "serving": r"continuous|serving|saturat|throughput|offline|server|concurren",
    "prefill": r"prefill|context|prompt|first.?token|ttft",
    "decode": r"decod|generat|tpot|itl|token",
}
"""Patterns that tell the kind of a run from its phase; the first match counts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InferenceRun(PublishedRun):
    """One row of `inference_runs.csv`, for one model replica of tp · pp chips.

    P prompt tokens and G output tokens per request, both means; a "decode" step has S cached tokens per
    sequence. None where the source does not say or it does not apply: `B` sequences at once, `requests` in
    total, and the limits `most_sequences` and `most_tokens` of a step. `weights` is the stored dtype of the
    layers, scales included, `compute` that of their matmuls, `head` that of the unembedding. `tokens_per_s`
    is the rate of all chips.
    """

    kind: str
    engine: str
    ep: int | None
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
        """Tokens per second of all chips, as printed or from the time of the work."""
        if "tok" in self.printed:
            return float(self.printed["tok"])
        if "ms" in self.printed:
            return (self.B or 1) / float(self.printed["ms"]) * 1e3
        return (self.B or 1) * (self.P if self.kind == "prefill" else self.G) / float(self.printed["s"])

    @property
    def tokens_per_s_per_chip(self) -> float:
        """Tokens per second per chip."""
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
    """Every usable run of `inference_runs.csv`."""
    return tuple(read(row) for row in resources.rows("inference_runs") if not row["use"])


@cache
def all_runs() -> tuple[InferenceRun, ...]:
    """The usable runs, and rows that were collected later and say how their chips were split."""
    later = (row for row in resources.rows("added_inference_runs") if row["tp"] or row["chips"] == "1")
    return (*runs(), *map(read, later))


def read(row: Cells) -> InferenceRun:
    """The run of one replica of a row's model, for any software.

    The library's own annotation columns take precedence over public columns (`annotated`). Raises `Refused`
    if the row says too little.
    """
    on, stack = chip(text(row, "chip", "accelerator")), software_of("inference", row)
    family = published.families("inference").get(stack.family, {})
    tp, ep, pp = whole(row, "tp"), whole(row, "ep"), whole(row, "pp") or 1
    if ep and ep > 1:  # a replica has all experts, and its tensor-parallel groups are attention DP
        tp = max(tp or 1, ep)
    chips = min(whole(row, "chips") or (tp or 1) * pp, MAX_CHIPS)
    copy = min((tp or max(chips // pp, 1)) * pp, chips)  # some sources count cores in tp
    if chips % copy or copy % pp:
        raise UnpredictedRow(f"{chips:,} chips are no copies of tp · pp = {copy:,}")
    kind = first(PHASES, text(row, "kind", "phase"))
    P, G, S = (whole(row, *annotated(row, *names)) or 0 for names in LENGTHS)
    if kind is None or not {"decode": S or P, "prefill": P}.get(kind, P and G):
        raise UnpredictedRow(
            "the row does not say phase, and the lengths in input_len, output_len and context_len"
        )
    return InferenceRun(
        id=text(row, "run_id"),
        family=stack.family,
        software=(stack.fitted_as, text(row, "family") or stack.family),
        kind=kind,
        engine=family.get("engine", stack.name if stack.known else ""),
        model=model(row),
        chip=on,
        chips=copy,
        tp=copy // pp,
        pp=pp,
        ep=ep,
        **_types(row, family, on),
        P=P,
        G=G,
        S=(S or None) if "S" in row else S or P + G // 2,
        B=_batch_size(row, kind, chips // copy),
        requests=whole(row, "requests") if "requests" in row else _requests(stack.family, P, G),
        most_sequences=whole(row, "most_sequences"),
        most_tokens=whole(row, "most_tokens"),
        printed=_printed(row, kind, chips // copy),
        source=resources.source(family if text(row, "family") else row),
        note=family.get("note", ""),
    )


def _requests(family: str, P: int, G: int) -> int | None:
    """The number of requests that a benchmark sends, if its software derives that from lengths."""
    counts = {(one["family"], one["P"], one["G"]): one["requests"] for one in resources.rows("benchmarks")}
    found = counts.get((family, str(P), str(G)))
    return int(found) if found else None


def _types(row: Cells, family: Row, on: Chip) -> dict[str, DType]:
    """Matmuls are 16-bit if the chip has no narrower unit; a cache has the dtype of 16-bit weights."""
    weights, kv = _type(text(row, "weight_dtype")), text(row, "kv_dtype").split(" ")[0]
    wide = TYPES[weights] if weights in ("bf16", "fp16") else BF16
    # MXFP4 checkpoints quantize experts alone, and have no scales for a narrow cache
    quantized = "" if "mxfp4" in text(row, "weight_dtype").lower() else family.get("kv")
    cache = weights if wide == TYPES[weights] else quantized or "bf16"
    compute = COMPUTES[weights]
    if compute.name not in on.rates():
        compute = BF16 if "bf16" in on.rates() else FP16
    return {
        "weights": TYPES[weights],
        "compute": compute,
        "head": TYPES[family["head"] or weights] if family else wide,
        "kv": TYPES[_type(kv) if first(PRECISIONS, kv) else cache],
    }


def _type(written: str) -> str:
    name = precision(written)
    return {"nvfp4": "fp4", "mxfp8": "fp8", "int4": "int4-g32"}.get(name, name)


def _batch_size(row: Cells, kind: str, copies: int) -> int | None:
    """Sequences at once on one replica; a table's total, unless it says that they are per replica."""
    B = whole(row, *annotated(row, "B", "batch_or_concurrency"))
    if B and "per replica" not in text(row, "notes"):
        B = ceil(B / copies)
    return B if kind == "serving" or "B" in row else B or 1


def _printed(row: Cells, kind: str, copies: int) -> dict[str, str]:
    """The printed quantity that counts for such a run, for one replica."""
    if "printed" in row:
        return {row["printed"]: row[_PRINTED_COLUMNS[row["printed"]]]}
    each, chips = number(row, "output_tok_s_per_chip"), whole(row, "chips")
    total = number(row, "output_tok_s_total") or (each * chips if each and chips else None)
    seconds, step, ttft = number(row, "latency_s"), number(row, "tpot_ms"), number(row, "ttft_ms")
    if kind == "prefill" and (seconds or ttft):
        return {"s": str(seconds or (ttft or 0.0) / 1e3)}
    if kind == "decode" and step:
        return {"ms": str(step)}
    if kind == "batch" and seconds:
        return {"s": str(seconds)}
    if not total:
        raise UnpredictedRow(
            "the row prints no latency_s, tpot_ms, ttft_ms or output_tok_s_total of such a run"
        )
    return {"tok": str(total / copies)}


RUNS: tuple[InferenceRun, ...]
"""Every usable run."""
REFUSED: dict[str, tuple[str, ...]]
"""The ids of the rows that are left out, by the reason.

A run is usable where the source names the model and its shapes, the chips and how they were split, the work
(prompt, tokens generated or context, and how many sequences at once, unless the engine takes all that fit),
and prints a time or a rate.
"""

__getattr__ = resources.lazy_attributes(
    __name__, {"RUNS": runs, "REFUSED": lambda: published.refused("inference")}
)


def find(id: str) -> InferenceRun:
    """The run with that id; raises a KeyError that says why there is none."""
    return published.find(id, runs(), "inference")
