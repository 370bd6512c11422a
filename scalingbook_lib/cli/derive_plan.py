"""How do a step's time, its utilization and its memory come about? In formulas, then in numbers."""

from collections.abc import Iterator

from scalingbook_lib.cli.answer import Line
from scalingbook_lib.cli.numbers import SHARE, figure, product
from scalingbook_lib.cli.shared import memory_line, sum_line
from scalingbook_lib.training import Run, Step


def steps(step: Step, run: Run | None) -> Iterator[Line]:
    """Every collective, the step, MFU and HFU, memory, and the run."""
    for row in step.traffic:
        name = f"T, {row.name}, {row.what} over {row.n:,} chips, {row.when}"
        yield Line(name, "times · (seconds of one)", product(row.times, row.each_s), row.seconds, "s")
    formula, numbers = "FLOPs / (chips · C · efficiency)", "forward and backward, the mean stage"
    for name, took in step.math.items():
        if took:
            yield Line(f"T_math, {name}", formula, numbers, took, "s")
    yield sum_line("T", step.terms, step.total_s, "s")
    yield _share("MFU", "useful FLOPs", step, step.useful_flops, step.mfu)
    yield _share("HFU", "all FLOPs", step, step.hardware_flops, step.hfu)
    yield memory_line(step.memory)
    if run:
        yield from _run(step, run)


def _share(name: str, what: str, step: Step, flops: float, share: float) -> Line:
    numbers = f"{figure(flops)} / ({product(step.total_s, step.peak_flops_per_s)})"
    return Line(name, f"{what} / (T · chips · C)", numbers, share, SHARE)


def _run(step: Step, run: Run) -> Iterator[Line]:
    numbers = f"{figure(run.tokens)} / {figure(step.tokens)} · {figure(step.total_s)}"
    yield Line("T, the whole run", "tokens / (tokens of a step) · T", numbers, run.seconds, "s")
    numbers = f"{product(run.chips, run.seconds)} / 3600"
    yield Line("chip-hours", "chips · T / 3600", numbers, run.chip_hours)
