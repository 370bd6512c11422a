"""The plans in which a published run may have been executed, if its row does not say.

They are all plans that fit in memory, or all plans if none fits, because then the memory estimate is wrong.
Rows that were collected later are fitted with the middle one of their plans (`all_runs`). Chapter: Training.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import gcd

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.measured.training_runs.read import read, written_batch
from scalingbook_lib.evidence.reading.cells import Cells, text, whole
from scalingbook_lib.evidence.reading.stacks import software_of
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.training.memory import memory

POWERS = (1, 2, 4, 8)  # microbatches, chunks and tensor degrees to try
STAGE_COUNTS, EP_DEGREES = (*POWERS, 16), (1, 8, 32, 64)
MAX_CANDIDATES = 8  # a row that leaves more plans open is not fitted


@cache
def all_runs() -> tuple[TrainingRun, ...]:
    """All runs that efficiencies are fitted to: those of the table, and usable rows collected later.

    Later rows are used if their weights are not frozen (a third of the matmuls would be missing) and they
    leave few plans open; the middle one is taken.
    """
    found = [candidates(row, read(row)) for row in resources.rows("added_training_runs")]
    plain = (plans for plans in found if plans[0].convention != "frozen" and len(plans) <= MAX_CANDIDATES)
    return (*runs(), *(plans[len(plans) // 2] for plans in plain))


def candidates(row: Cells, run: TrainingRun) -> list[TrainingRun]:
    """The run in every plan that its row leaves open: those that fit, or all if none does."""
    found = [one for plan in _parallelism_candidates(row, run) for one in _batch_candidates(row, plan)]
    return [one for one in found if fits(one)] or found


def fits(run: TrainingRun) -> bool:
    """Whether the plan fits in a chip's memory."""
    try:
        p = planned(run)
        return memory(p.model, p.plan, batch=run.batch, T=run.T).total <= run.chip.hbm_bytes
    except ValueError:
        return False


def fits_recomputed(run: TrainingRun) -> bool:
    """Whether the plan fits, with whatever rematerialization if the row does not say which."""
    policies = (run.remat,) if run.remat else (None, "selective", "minimal", "full")
    return any(fits(replace(run, remat=remat)) for remat in policies)


def _parallelism_candidates(row: Cells, run: TrainingRun) -> Iterator[TrainingRun]:
    """Tensor and pipeline degrees if neither is given (JAX users shard data first), and ZeRO stages."""
    alone = run.chip.torus or whole(row, "tp", "pp", "shards")
    shared = alone or software_of("training", row).known or text(row, "fsdp") or run.fsdp == 1
    for tp, pp in [(run.tp, run.pp)] if alone else product(POWERS, STAGE_COUNTS):
        ranks, rest = divmod(run.chips, tp * pp * run.cp * run.dcn)
        fsdp = run.fsdp if alone else ranks
        for zero in [run.zero] if shared else (1, 3):
            if ranks and not rest:
                yield replace(run, tp=tp, pp=pp, fsdp=fsdp, dp=ranks // fsdp, zero=zero)


def _batch_candidates(row: Cells, run: TrainingRun) -> Iterator[TrainingRun]:
    """Batch, microbatch, chunks and expert degrees; a batch is rounded to a multiple of the data ranks."""
    ranks, micro = run.fsdp * run.dp * run.dcn, run.microbatch
    batch = written_batch(row, ranks, run.chips)
    given = max(round((batch or run.batch) / ranks), 1)
    rate_alone = not batch and "s" not in run.printed
    each = [n * run.pp * (micro or 1) for n in POWERS] if rate_alone else [given]
    layers = run.model.L // run.pp  # per stage; a chunk has at least one layer
    deep = [n for n in sorted({*POWERS, layers}) if n <= layers] if run.pp > 1 else [1]
    room, E = run.tp * run.cp * run.fsdp, run.model.experts.E if run.model.experts else 1
    spread = [run.ep if run.experts else 1]
    if run.experts and not whole(row, "ep") and not run.chip.torus:
        spread = [n for n in EP_DEGREES if E % n == 0 and room % n == 0]
    for sequences, chunks, ep in product(each, [run.chunks] if run.chunks else deep, spread):
        for b in [gcd(micro, sequences)] if micro else [n for n in POWERS if sequences % n == 0]:
            whole_rounds = sequences // b % run.pp == 0
            parts = chunks if run.chunks or whole_rounds else 1
            yield replace(run, batch=sequences * ranks, microbatch=b, chunks=parts, ep=ep)
