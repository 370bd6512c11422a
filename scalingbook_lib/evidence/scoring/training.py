"""How long is a step of somebody's training run predicted to take? In every plan that its row leaves open.

What a row says counts; what it does not is every value that fits in memory: the prediction is the geometric
middle of the fastest and the slowest of these plans, and the band is as much wider. Where none fits, the
count of memory is wrong and not the run: all are taken. Chapter: Training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import gcd, sqrt

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.measured.training_runs import TrainingRun
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, Refused, text, whole
from scalingbook_lib.evidence.reading.stacks import Stack, kin
from scalingbook_lib.evidence.scoring.report import Found, Interval
from scalingbook_lib.evidence.tables import frozen
from scalingbook_lib.training.memory import memory

POWERS = (1, 2, 4, 8)  # of microbatches, chunks and tensor ways, where a row leaves them open
STAGES, EXPERT_WAYS = (*POWERS, 16), (1, 8, 32, 64)
NEAR_BEST = 1.25  # of the plans that are open, those that take longer nobody would choose
OPEN = {
    "batch": "global_batch",
    "microbatch": "microbatch",
    "chunks": "chunks",
    "tp": "tp and pp",
    "ep": "ep",
    "zero": "sharding",
}


def predict(row: Cells) -> Found:
    """The step in seconds, measured and predicted; Refused where the row says too little."""
    run = read(row)
    stack = kin("training", row)
    runs = [one for plan in _split(row, run, stack) for one in _inner(row, plan)]
    counts = [run.convention] if run.convention or run.bases else ["half", "full"]
    steps = [replace(run, convention=one).step_s for one in counts]
    measured = Interval(min(steps), max(steps))
    own = any(line[0] == run.chip.name for line in frozen("training").table)
    return Found(
        kind=f"training, {'experts' if run.experts else 'dense'}",
        chip=run.chip.name,
        stack=stack.name,
        params=run.model.params,
        measured=measured,
        predicted=_steps(runs, run.batch),
        factor=training.band(run.experts) ** (1 if own else sqrt(2)),  # kin: twice the variance
        assumed=tuple(_assumed(runs, stack, own, len(counts) > 1)),
    )


def _split(row: Cells, run: TrainingRun, stack: Stack) -> Iterator[TrainingRun]:
    """Tensor ways and stages, where neither is said (JAX's users shard data first), and what is shared."""
    alone = run.chip.torus or whole(row, "tp", "pp", "shards")
    shared = alone or stack.known or text(row, "fsdp") or run.fsdp == 1
    for tp, pp in [(run.tp, run.pp)] if alone else product(POWERS, STAGES):
        ranks, rest = divmod(run.chips, tp * pp * run.cp * run.dcn)
        fsdp = run.fsdp if alone else ranks
        for zero in [run.zero] if shared else (1, 3):
            if ranks and not rest:
                yield replace(run, tp=tp, pp=pp, fsdp=fsdp, dp=ranks // fsdp, zero=zero)


def _inner(row: Cells, run: TrainingRun) -> Iterator[TrainingRun]:
    """Batch, microbatch, chunks and expert ways; a batch becomes the nearest that divides over data ranks."""
    ranks, batch, micro = run.fsdp * run.dp * run.dcn, whole(row, "global_batch"), run.microbatch
    given = max(round((batch or run.batch) / ranks), 1)
    rate_alone = not batch and "s" not in run.printed
    each = [n * run.pp * (micro or 1) for n in POWERS] if rate_alone else [given]
    layers = run.model.L // run.pp  # of a stage: its chunks are of one layer at least
    deep = [n for n in sorted({*POWERS, layers}) if n <= layers] if run.pp > 1 else [1]
    room, E = run.tp * run.cp * run.fsdp, run.model.experts.E if run.model.experts else 1
    spread = [run.ep if run.experts else 1]
    if run.experts and not whole(row, "ep") and not run.chip.torus:
        spread = [n for n in EXPERT_WAYS if E % n == 0 and room % n == 0]
    for sequences, chunks, ep in product(each, [run.chunks] if run.chunks else deep, spread):
        for b in [gcd(micro, sequences)] if micro else [n for n in POWERS if sequences % n == 0]:
            whole_rounds = sequences // b % run.pp == 0
            parts = chunks if run.chunks or whole_rounds else 1
            yield replace(run, batch=sequences * ranks, microbatch=b, chunks=parts, ep=ep)


def _steps(runs: Sequence[TrainingRun], batch: int) -> Interval:
    """The fastest and the slowest step of these plans, of those that fit, if any does."""
    times, why = [], "no plan divides"
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


def _assumed(runs: Sequence[TrainingRun], stack: Stack, own: bool, counted: bool) -> Iterator[str]:
    """What the row left open, or what the model cannot say."""
    several = (told for name, told in OPEN.items() if len({getattr(run, name) for run in runs}) > 1)
    yield from (f"{told} not given" for told in several)
    said = {
        "remat not given": runs[0].remat is None,
        "software not known": not stack.known,
        "chip by its kin": not own,
        "frozen weights": runs[0].convention == "frozen",
        "how FLOPs are counted not given": counted,
        "shapes by size alone": ", as " in runs[0].model.name,
        "fits no chip by the count of memory": not any(map(_fits, runs)),
    }
    yield from (told for told, holds in said.items() if holds)
