"""In which plans may a run have been, where its row does not say? In every plan that fits in memory.

Where none fits, the count of memory is wrong and not the run: all are taken. Rows that were collected later
are read so, and fitted in the middle one of their plans (`every`). Chapter: Training.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import gcd

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.training_runs import TrainingRun, runs
from scalingbook_lib.evidence.measured.training_runs.read import read
from scalingbook_lib.evidence.reading.cells import Cells, text, whole
from scalingbook_lib.evidence.reading.stacks import kin
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.training.memory import memory

POWERS = (1, 2, 4, 8)  # of microbatches, chunks and tensor ways, where a row leaves them open
STAGES, EXPERT_WAYS = (*POWERS, 16), (1, 8, 32, 64)
MOST_OPEN = 8  # a row that leaves more plans open says too little to be fitted


@cache
def every() -> tuple[TrainingRun, ...]:
    """All runs that efficiencies are fitted to: the table's, and what was collected later.

    Of later rows, those whose weights are not frozen (a third of their products are no products of training)
    and that say nearly all of their plan, in the middle one of the plans that they leave open.
    """
    found = [opened(row, read(row)) for row in resources.rows("added_training_runs")]
    plain = (plans for plans in found if plans[0].convention != "frozen" and len(plans) <= MOST_OPEN)
    return (*runs(), *(plans[len(plans) // 2] for plans in plain))


def opened(row: Cells, run: TrainingRun) -> list[TrainingRun]:
    """The run in every plan that its row leaves open: those that fit, or all where none does."""
    found = [one for plan in _split(row, run) for one in _inner(row, plan)]
    return [one for one in found if fits(one)] or found


def fits(run: TrainingRun) -> bool:
    """Whether a chip can hold it, by the count of memory."""
    try:
        p = planned(run)
        return memory(p.model, p.plan, batch=run.batch, T=run.T).total <= run.chip.hbm_bytes
    except ValueError:
        return False


def _split(row: Cells, run: TrainingRun) -> Iterator[TrainingRun]:
    """Tensor ways and stages, where neither is said (JAX's users shard data first), and what is shared."""
    alone = run.chip.torus or whole(row, "tp", "pp", "shards")
    shared = alone or kin("training", row).known or text(row, "fsdp") or run.fsdp == 1
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
