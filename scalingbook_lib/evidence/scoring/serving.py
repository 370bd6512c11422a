"""How fast is somebody's server predicted to be? Prefill and decoding in seconds, saturated in tokens/s.

A row says its work by `phase`, lengths and batch. Replicas each serve their part: chips over tp · pp copies
of the model. What is open is open here, too: the prediction is the geometric middle. Chapter: Inference.
"""

import re
from collections.abc import Iterator
from math import ceil, sqrt
from typing import Any

from scalingbook_lib.evidence import inference, resources
from scalingbook_lib.evidence.measured.inference_runs import COMPUTES, TYPES, InferenceRun
from scalingbook_lib.evidence.scoring.cells import (
    Cells,
    Refused,
    chip,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.scoring.named import model
from scalingbook_lib.evidence.scoring.row import Found, Interval
from scalingbook_lib.evidence.scoring.stacks import Stack, kin
from scalingbook_lib.evidence.tables import frozen
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.units import BF16, FP16, DType

PHASES = (
    ("batch", r"prefill ?\+ ?decode|static|end.?to.?end|e2e"),
    ("serving", r"continuous|serving|saturat|throughput|offline|server|concurren"),
    ("prefill", r"prefill|context|prompt|first.?token|ttft"),
    ("decode", r"decod|generat|tpot|itl|token"),
)
"""What a row measured, by what its `phase` says: the kinds of `measured.inference_runs`."""
NARROW = {"nvfp4": "fp4", "mxfp8": "fp8", "int4": "int4-g32"}
SPLITS = (1, 2, 4, 8)  # tensor ways of a copy, where a row leaves them open
NEAR_BEST = 1.25  # of the layouts that are open, slower ones nobody would choose
VLLM_SEQUENCES = 256  # the most at once by its default (max_num_seqs); others take what fits


def predict(row: Cells) -> Found:
    """Seconds of prompts or of steps, or output tokens/s of all chips; Refused where it says too little."""
    on = chip(text(row, "chip", "accelerator"))
    stack = kin("serving", row, on)
    runs = list(_runs(row, on, stack))
    if not runs:
        raise Refused(f"{text(row, 'chips')} chips are no copies of its tp · pp")
    rates = [_rate(run, stack) * copies for run, copies in runs]
    run, copies = runs[0]
    done = _done(run) * copies
    measured = _measured(row, run, done)
    own = any(line[0] == on.name for line in frozen("inference").table)
    predicted, saturated = _near(rates), _saturated(row, run)
    names = {"tp": "tp not given", "most_sequences": "batch not given"}
    return Found(
        kind=f"serving {'saturated' if saturated else 'prefill' if run.kind == 'prefill' else 'decode'}, "
        f"{'experts' if run.experts else 'dense'}",
        chip=on.name,
        stack=stack.name,
        params=run.model.params,
        measured=Interval(done / measured, done / measured) if saturated else Interval(measured, measured),
        predicted=predicted if saturated else predicted.over(done),
        factor=inference.band(run.experts) ** (1 if own else sqrt(2)),  # kin: twice the variance
        assumed=(
            *(told for name, told in names.items() if len({getattr(one, name) for one, _ in runs}) > 1),
            *(() if stack.known else ("software not known",)),
            *(() if own else ("chip by its kin",)),
            *(() if text(row, "kv_dtype") else ("type of the cache not given",)),
        ),
    )


def _near(rates: list[float]) -> Interval:
    return Interval(min(rate for rate in rates if rate * NEAR_BEST >= max(rates)), max(rates))


def _saturated(row: Cells, run: InferenceRun) -> bool:
    """Whether the rate counts: of a server, and of a batch whose source prints no time."""
    return run.kind == "serving" or (run.kind == "batch" and "static" in text(row, "phase").lower())


def _rate(run: InferenceRun, stack: Stack) -> float:
    engine = run.engine if stack.known else ""
    return inference.tokens_per_s(run, inference.calibrated(run.chip, run.compute, engine))


def _done(run: InferenceRun) -> float:
    """The tokens of one copy that a measured time is of: prompts, a step, or all that is generated."""
    B = run.B or 1
    return B * {"prefill": run.P, "decode": 1, "batch": run.G, "serving": run.G}[run.kind]


def _measured(row: Cells, run: InferenceRun, done: float) -> float:
    """The seconds in which so many tokens were done, by what is most to be trusted for such a run."""
    latency, ttft, step = number(row, "latency_s"), number(row, "ttft_ms"), number(row, "tpot_ms")
    rate = number(row, "output_tok_s_total")
    each = number(row, "output_tok_s_per_chip")
    chips = whole(row, "chips") or run.chips
    rate = rate or (each * chips if each else None)
    if run.kind == "prefill":
        known = latency or (ttft / 1e3 if ttft else None) or (done / rate if rate and run.G == 0 else None)
    elif run.kind == "decode":
        known = step / 1e3 if step else done / rate if rate else None
        known = known or (latency / run.G if latency and run.G else None)
    else:
        known = done / rate if rate else latency if run.kind == "batch" else None
        if run.kind == "batch" and latency:
            known = latency
        if not known and step and run.kind == "batch":
            known = ((ttft or 0.0) + run.G * step) / 1e3
    if not known:
        raise Refused("the row prints no latency_s, tpot_ms, ttft_ms or output_tok_s_total of such a run")
    return known


def _runs(row: Cells, on: Chip, stack: Stack) -> Iterator[tuple[InferenceRun, int]]:
    """A run of one copy, and how many copies there are, for all that the row leaves open."""
    said = text(row, "kind", "phase").lower()
    kind = next((name for name, words in PHASES if name == said or re.search(words, said)), None)
    if kind is None:
        raise Refused(f"phase is {said[:40]!r}; prefill, decode, static batch or serving are understood")
    tp, pp = whole(row, "tp"), whole(row, "pp") or 1
    chips = whole(row, "chips") or (tp or 1) * pp
    if chips > 2**20:
        raise Refused(f"{chips:,} chips are more than anybody has")
    alone = kind == "serving" and not tp and not on.torus  # copies as small as they like
    shared, given = _shared(row, on, stack, kind), whole(row, "B", "batch_or_concurrency")
    for split in SPLITS if alone else [tp or max(chips // pp, 1)]:
        ways = min(split * pp, chips)  # some count the cores of a chip in tp
        copies, rest = divmod(chips, ways)
        if rest:
            continue
        B = ceil(given / copies) if given and "per replica" not in text(row, "notes") else given
        B = B if kind == "serving" else B or 1
        for most in _most(row, stack, kind, B):
            how = {"chips": ways, "tp": max(ways // pp, 1), "pp": min(pp, ways), "B": B}
            yield InferenceRun(**shared, **how, most_sequences=most), copies


def _most(row: Cells, stack: Stack, kind: str, B: int | None) -> list[int | None]:
    """How many at once a server takes at most: as the row says; else what fits, or what its engine allows."""
    told = whole(row, "most_sequences") or B
    if told or kind != "serving" or stack.name not in ("vLLM", "unknown, as vLLM"):
        return [told]
    return [VLLM_SEQUENCES, None]


def _shared(row: Cells, on: Chip, stack: Stack, kind: str) -> dict[str, Any]:
    """What does not depend on what is open."""
    families = {one["family"]: one for one in resources.rows("inference_families")}
    family = families.get(stack.family, {})
    weights, compute = _types(text(row, "weight_dtype"), on)
    wide = weights if weights in (BF16, FP16) else BF16
    kv = text(row, "kv_dtype").split(" ")[0]
    cache = TYPES[_named(kv)] if kv else wide if wide == weights else TYPES[family.get("kv") or "bf16"]
    S, G = whole(row, "S", "context_len"), whole(row, "G", "output_len") or 0
    P = whole(row, "P", "input_len") or (S or 0 if kind == "prefill" else 0)
    if (kind == "prefill" and not P) or (kind in ("serving", "batch") and not (P and G)):
        raise Refused("the row does not say input_len and output_len")
    if kind == "decode" and not (S or P + G):
        raise Refused("the row does not say context_len")
    return {
        "id": text(row, "run_id"),
        "family": stack.family,
        "kind": kind,
        "engine": family.get("engine", stack.name),
        "model": model(row),
        "chip": on,
        "weights": weights,
        "compute": compute,
        "head": weights if "head" in family and not family["head"] else wide,
        "kv": cache,
        "P": P,
        "G": 0 if kind == "prefill" else G,
        "S": S or P + G // 2,
        "requests": whole(row, "requests"),
        "most_tokens": whole(row, "most_tokens"),
        "printed": {},
        "source": Source(text="the table", as_of=resources.COLLECTED),
    }


def _named(written: str) -> str:
    name = precision(written)
    return NARROW.get(name, name)


def _types(written: str, on: Chip) -> tuple[DType, DType]:
    """Of the weights as stored, and of their products: 16 bits where the chip has no narrower unit."""
    name = _named(written)
    compute = COMPUTES[name]
    if compute.name not in on.rates():
        compute = BF16 if "bf16" in on.rates() else FP16
    return TYPES[name], compute
