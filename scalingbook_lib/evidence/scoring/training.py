"""How long is a step of somebody's training run predicted to take? Read by its own columns, of any software.

What a row says counts; what it does not is every value that fits in memory: the prediction is the geometric
middle of the fastest and the slowest of these plans, and the band is as much wider. Where none fits, the
count of memory is wrong and not the run: all are taken. Chapter: Training.
"""

import re
from collections.abc import Iterator, Sequence
from math import gcd, sqrt

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, counted
from scalingbook_lib.evidence.measured.training_runs.run import products
from scalingbook_lib.evidence.resources import COLLECTED
from scalingbook_lib.evidence.scoring.cells import (
    Cells,
    Refused,
    chip,
    needed,
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
from scalingbook_lib.models import Transformer
from scalingbook_lib.training.memory import memory

COUNTS = (
    ("frozen", r"lora|4n\b|frozen"),
    ("hardware", r"hardware|\bhfu\b|recompute (is )?counted|counts activation recompute|96bs"),
    ("6P", r"6\*?n \(all|incl(\.|udes|uding) (tied |input |the )?embedding|with self-attention"),
    ("full", r"non-causal"),
    ("half", r"causal|hal(f|ved)|6\*?l\*?d\*?s"),
    ("full", r"full|12\*?l\*?d\*?s|72bs"),
    ("6N", r"6\*? ?n|6 ?\* ?p"),
)
"""How a source counts FLOPs, by what it says; the first that is said holds."""
POLICIES = (
    ("none", r"^no(ne)?\b|^false|^off"),
    ("selective_op", r"selective.?op|per-op"),
    ("selective", r"selective"),
    ("minimal", r"minimal|save_dot"),
    ("full", r"^full|^yes|^true|full remat|\ball layers"),
)
"""What is computed again, by what a row says; what says none of this is as if unsaid."""
KEPT = {"in": r"\binput", "q,k,v": r"q,k,v|qkv", "context": r"context", "o": r"out_proj"}
"""The tensors that a row says are saved, or sent to the host, in the library's letters."""
SLICES = re.compile(r"\b(\d+) ?x ?(?:tpu ?)?v\d")  # '4x v5e-256'
POWERS = (1, 2, 4, 8)  # of microbatches, chunks and tensor ways, where a row leaves them open
STAGES, EXPERT_WAYS = (*POWERS, 16), (1, 8, 32, 64)
NEAR_BEST = 1.25  # of the plans that are open, those that take longer nobody would choose
FEW_CHIPS = 2**20


def predict(row: Cells) -> Found:
    """The step in seconds, measured and predicted; Refused where the row says too little."""
    T, chips, on = needed(row, "seq"), needed(row, "chips"), chip(text(row, "chip", "accelerator"))
    m, stack, written = model(row, T), kin("training", row, on), precision(text(row, "dtype"))
    dtype = "fp16" if written == "bf16" and "bf16" not in on.rates() else written
    if chips > FEW_CHIPS:
        raise Refused(f"{chips:,} chips are more than anybody has")
    peak = (number(row, "peak_tflops_used") or 0) * 1e12 or on.flops_per_s(products(dtype))
    given = whole(row, "global_batch") or _batch(row, T, chips)
    batch = given or chips  # where open, seconds are of a sequence for each chip
    runs = [
        TrainingRun(
            id="",
            family=stack.family,
            model=m,
            chip=on,
            chips=chips,
            precision=dtype,
            T=T,
            **plan,
            remat=_policy(text(row, "policy", "remat").lower()),
            convention="bridge+MTP" if "mtp" in text(row, "name").lower() else None,
            printed={},
            coarse=False,
            peak_flops_per_s=peak,
            variant="async TP" if "async" in text(row, "name").lower() else "",
            source=Source(text="the table", as_of=COLLECTED),
            note="",
        )
        for plan in _plans(row, m, on, stack, (chips, given))
    ]
    if not runs:
        raise Refused(f"{chips:,} chips are no multiple of its tp · pp · cp")
    conventions = _conventions(row)
    share = _flops("frozen", m, T) / _flops("half", m, T) if "frozen" in conventions else 1.0
    steps = _steps(runs, batch)
    own = any(line[0] == on.name for line in frozen("training").table)
    return Found(
        kind=f"training, {'experts' if m.experts else 'dense'}",
        chip=on.name,
        stack=stack.name,
        params=m.params,
        measured=_measured(row, m, conventions, (batch, T, chips, peak)),
        predicted=Interval(steps.low * share, steps.high * share),
        factor=training.band(m.experts is not None)
        ** (1 if own else sqrt(2)),  # a chip's kin: twice the variance
        assumed=tuple(_assumed(runs, stack, own, share, m)),
    )


def _batch(row: Cells, T: int, chips: int) -> int | None:
    """Sequences of a step, where the time and the rate of tokens tell; None where a rate alone is printed."""
    step_s, rate = number(row, "step_time_s"), number(row, "tokens_per_s_per_chip")
    if step_s and rate:
        return max(round(step_s * rate * chips / T), 1)
    if step_s:
        raise Refused("the row prints the time of a step and does not say global_batch")
    return None


def _plans(
    row: Cells, m: Transformer, on: Chip, stack: Stack, asked: tuple[int, int | None]
) -> Iterator[dict[str, int]]:
    """Every plan that the row leaves open, in the fields of a run."""
    chips, batch = asked
    tp, pp, cp = whole(row, "tp"), whole(row, "pp"), whole(row, "cp") or 1
    open_ways = not on.torus and not tp and not pp  # on a torus JAX's users shard data first
    slices = _slices(row, on, chips)
    for Y in [tp or 1] if not open_ways else POWERS:
        for stages in [pp or 1] if not open_ways else STAGES:
            data, rest = divmod(chips, Y * stages * cp * slices)
            for shards, zero in [] if rest or not data else _shards(row, on, stack, data):
                ways = {"tp": Y, "pp": stages, "cp": cp, "fsdp": shards, "dp": data // shards}
                for inner in _inner(row, m, on, batch, ways | {"dcn": slices}):
                    yield ways | inner | {"dcn": slices, "zero": zero}


def _inner(
    row: Cells, m: Transformer, on: Chip, batch: int | None, ways: dict[str, int]
) -> Iterator[dict[str, int]]:
    """Microbatch, chunks and expert ways; the batch becomes the nearest that divides over the data ranks."""
    ranks, stages = ways["fsdp"] * ways["dp"] * ways["dcn"], ways["pp"]
    micro, vp, ep = whole(row, "micro", "micro_batch"), whole(row, "chunks", "vp"), whole(row, "ep")
    own = [max(round(batch / ranks), 1)] if batch else [n * stages * (micro or 1) for n in POWERS]
    micros = [(each, b) for each in own for b in ([gcd(micro, each)] if micro else POWERS) if each % b == 0]
    deep = m.L // stages
    chunked = [vp] if vp else [c for c in POWERS if stages > 1 and c <= deep] or [1]
    room = ways["tp"] * ways["cp"] * ways["fsdp"]
    spread = [ep or 1]
    if m.experts and not ep and not on.torus:
        spread = [n for n in EXPERT_WAYS if m.experts.E % n == 0 and room % n == 0]
    for each, b in micros:
        for chunks in chunked:
            interleaved = chunks > 1 and each // b % stages == 0
            for experts in spread:
                yield {
                    "batch": each * ranks,
                    "microbatch": b,
                    "chunks": chunks if interleaved or vp else 1,
                    "ep": experts if m.experts else 1,
                }


def _slices(row: Cells, on: Chip, chips: int) -> int:
    """How many slices a data-center network joins: as written ('4x v5e-256'), or as few as hold the chips."""
    if not on.torus:
        return 1
    said = SLICES.search(text(row, "name").lower())
    return whole(row, "slices") or (int(said[1]) if said else -(-chips // on.torus.pod_chips))


def _shards(row: Cells, on: Chip, stack: Stack, data: int) -> list[tuple[int, int]]:
    """How many data ranks share what, by the row or else its software: ZeRO-1 in Megatron, FSDP in others."""
    said = text(row, "fsdp").upper()
    zero, shards = whole(row, "zero"), whole(row, "shards")
    if text(row, "zero") and shards:
        return [(shards, zero or 0)]
    named = re.search(r"zero-?1[= ]+(\d+)", text(row, "name").lower())
    if named and data % int(named[1]) == 0:
        return [(int(named[1]), 1)]
    if "GRAD" in said or "NO_" in said or "DDP" in said:
        return [(data, 2)] if "GRAD" in said else [(1, 0)]
    written = int(said) if said.isdigit() else 0
    if written > 1:
        return [(written if data % written == 0 else data, 3)]
    if (said and not said.isdigit()) or on.torus or stack.name in ("torchtitan", "llm-foundry", "MaxText"):
        return [(data, 3)]
    return [(data, 1)] if stack.known or data == 1 else [(data, 1), (data, 3)]


def _policy(said: str) -> str | None:
    kept = ",".join(name for name, words in KEPT.items() if re.search(words, said))
    if "offload" in said or ("save" in said and kept):
        return f"{'offload' if 'offload' in said else 'save'}:{kept or 'in'}"
    return next((name for name, words in POLICIES if re.search(words, said)), None)


def _conventions(row: Cells) -> list[str]:
    """How its source counts FLOPs; where nobody says, every pair of positions, or half of them."""
    written = text(row, "flops_convention").lower()
    lora = "lora" in text(row, "name").lower()
    found = next((name for name, words in COUNTS if re.search(words, written)), None)
    return ["frozen"] if lora else [found] if found else ["half", "full"]


def _flops(convention: str, m: Transformer, T: int, tokens: int = 0) -> float:
    """Of a step; of frozen weights no gradient is computed, which is a third of the products' FLOPs."""
    tokens = tokens or T
    if convention == "6N":
        return 6.0 * m.active_params * tokens
    if convention == "frozen":
        half, full = (counted(name, m, tokens, T) for name in ("half", "full"))
        return half - (half - (full - half)) / 3
    return counted(convention, m, tokens, T)


def _measured(
    row: Cells, m: Transformer, conventions: list[str], asked: tuple[int, int, int, float]
) -> Interval:
    """Seconds of a step by what is most to be trusted: a time, tokens/s, FLOP/s, MFU, HFU, a derived time."""
    batch, T, chips, peak = asked
    tokens = batch * T
    step_s, rate = number(row, "step_time_s"), number(row, "tokens_per_s_per_chip")
    if step_s or rate:
        known = step_s or tokens / (rate or 1) / chips
        return Interval(known, known)
    share = number(row, "mfu")
    if not share and not number(row, "tflops_per_chip") and number(row, "hfu"):
        share, conventions = number(row, "hfu"), ["hardware"]
    reached = (number(row, "tflops_per_chip") or 0) * 1e12
    reached = reached or (share or 0) * peak / (100 if share and share > 1.5 else 1)  # some write percent
    if reached:
        times = [_flops(name, m, T, tokens) / reached / chips for name in conventions]
        return Interval(min(times), max(times))
    derived = number(row, "step_time_derived_s")
    if not derived:
        raise Refused("the row prints no step_time_s, tokens_per_s_per_chip, tflops_per_chip or mfu")
    return Interval(derived, derived)


def _steps(runs: Sequence[TrainingRun], batch: int) -> Interval:
    """The fastest and the slowest step of these plans, of those that fit, if any does."""
    times, why = [], ""
    for run in [run for run in runs if _fits(run)] or runs:
        try:
            table = training.calibrated(run.chip, run.precision, training.planned(run).kernel)
            times.append(training.seconds(run, table).total_s * batch / run.batch)
        except ValueError as error:  # this plan cannot be laid on the machine; others may
            why = str(error)
    if not times:
        raise Refused(why)
    return Interval(min(times), max(t for t in times if t <= NEAR_BEST * min(times)))


def _fits(run: TrainingRun) -> bool:
    try:
        p = training.planned(run)
        return memory(p.model, p.plan, batch=run.batch, T=run.T).total <= run.chip.hbm_bytes
    except ValueError:
        return False


def _assumed(
    runs: Sequence[TrainingRun], stack: Stack, own: bool, share: float, m: Transformer
) -> Iterator[str]:
    """What the row left open, or what the model cannot say."""
    names = {
        "batch": "global_batch",
        "microbatch": "microbatch",
        "chunks": "chunks",
        "tp": "tp and pp",
        "ep": "ep",
        "zero": "sharding",
    }
    yield from (
        f"{told} not given" for name, told in names.items() if len({getattr(r, name) for r in runs}) > 1
    )
    yield from ["remat not given"] if runs[0].remat is None else []
    yield from ["software not known"] if not stack.known else []
    yield from ["chip by its kin"] if not own else []
    yield from ["frozen weights by their share of FLOPs"] if share < 1 else []
    yield from ["shapes by size alone"] if ", as " in m.name else []
    yield from ["fits no chip by the count of memory"] if not any(map(_fits, runs)) else []
