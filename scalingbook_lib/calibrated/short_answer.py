"""The three lines that answer a question about training or serving: what runs, how fast, in which memory."""

from collections.abc import Iterator

from scalingbook_lib.calibrated import bands
from scalingbook_lib.calibrated.bands import COVERAGE
from scalingbook_lib.calibrated.confidence import Confidence
from scalingbook_lib.calibrated.training_efficiency import Software
from scalingbook_lib.inference import Layout, Serving, ServingMemory
from scalingbook_lib.machines import Chip
from scalingbook_lib.models import Transformer
from scalingbook_lib.training import TrainingMemory, TrainingStep
from scalingbook_lib.units import BF16, DType, count, percent, price, si
from scalingbook_lib.words import pluralize

type Memory = TrainingMemory | ServingMemory

LINE = 100  # characters of a line of the answer, at most


def training_factor(model: Transformer, chip: Chip, compute: DType, software: Software = ()) -> float:
    """The factor of the interval of a calibrated step time."""
    doubts, experts = bands.chip_doubts("training", chip, compute), model.experts is not None
    return bands.training_band(experts=experts, seen=bands.seen(software, experts)).widened(doubts)


def serving_factor(model: Transformer, chip: Chip) -> float:
    """The factor of the interval of a calibrated latency."""
    doubts = bands.chip_doubts("inference", chip, BF16)
    return bands.serving_band(experts=model.experts is not None).widened(doubts)


def training_lines(step: TrainingStep, factor: float | None, confidence: Confidence | None) -> Iterator[str]:
    """The plan; its step time with the band, MFU and throughput; the memory of a chip and whether it fits."""
    yield f"Plan: {step.plan.summary.replace('microbatch', 'MBS')}"  # as in the table of plans
    time = f"Step time {si(step.total_s, 's')}{band(step.total_s, factor, 's')}"
    if factor is not None and confidence:
        time += f", P80 {si(confidence.objective.p80(step), 's')}"
    yield f"{time}, MFU {percent(step.mfu)}, {si(step.tokens_per_s, 'tokens/s')}"
    memory = memory_line(step.memory, step.machine.chip)
    yield f"{memory}; {confidence.fit(step)}" if confidence else memory


def serving_lines(
    one: Serving, held: ServingMemory, replicas: int, factor: float | None, usd: float | None = None
) -> Iterator[str]:
    """The layout; latencies with their band, throughput and cost; the memory of a chip."""
    many = pluralize(replicas, "replica")
    line = f"Layout: {one.step.layout.degrees}; {many} with batch size {count(int(one.slots))}"
    typed = f"{line}; {dtypes(one.step.layout)}"
    yield typed if len(typed) <= LINE else line  # the command line then has the types in a table
    itl = f"ITL {si(one.itl_s, 's')}{band(one.itl_s, factor, 's')}"
    cost = "" if usd is None else f", ${price(usd)} per million tokens"
    times = f"TTFT {si(one.ttft_s, 's')}, {itl}, {si(replicas * one.tokens_per_s, 'tokens/s')}{cost}"
    yield times if len(times) <= LINE else times.replace(" million ", " M ")
    yield memory_line(held, held.chip)


def dtypes(layout: Layout) -> str:
    """The types of the weights, of the cache and, if it is not bf16, of matmuls."""
    own = layout.experts and layout.experts.name != layout.weights.name
    experts = f", experts {layout.experts}" if own else ""
    compute = f", compute {layout.compute}" * (layout.compute is not BF16)
    return f"weights {layout.weights}{experts}, KV {layout.kv}{compute}"


def memory_line(held: Memory, chip: Chip) -> str:
    """'Memory 51.2 GB of 85.9 GB per chip, 34.7 GB free', or by how much it is too large."""
    of = f"Memory {si(held.total, 'B')} of {si(chip.hbm_bytes, 'B')} per chip"
    free = chip.hbm_bytes - held.total
    if free >= 0:
        return f"{of}, {si(free, 'B')} ({percent(free / chip.hbm_bytes)}) free"
    return f"{of}, {percent(-free / chip.hbm_bytes)} over"


def band(value: float, factor: float | None, unit: str) -> str:
    """' (80% band 1.52 s to 2.15 s)'; '' without a factor, for times at documented peaks."""
    if factor is None:
        return ""
    return f" ({percent(COVERAGE)} band {si(value / factor, unit)} to {si(value * factor, unit)})"
