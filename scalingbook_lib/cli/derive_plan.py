"""How do a step's time, its utilization and its memory come about? In formulas, then in numbers."""

from collections.abc import Iterator

from scalingbook_lib.cli.answer import Step as Line
from scalingbook_lib.cli.numbers import SHARE, added, figure, product
from scalingbook_lib.training import Run, Step


def steps(step: Step, run: Run | None) -> tuple[Line, ...]:
    """Every collective, the step, MFU and HFU, memory, and the run."""
    return (*_traffic(step), *_time(step), *_memory(step), *(_run(step, run) if run else ()))


def _traffic(step: Step) -> Iterator[Line]:
    for row in step.traffic:
        name = f"T, {row.name}, {row.what} over {row.n:,} chips, {row.when}"
        numbers = product(row.times, row.each_s)
        yield Line(
            name=name, formula="times · (seconds of one)", numbers=numbers, value=row.seconds, unit="s"
        )


def _time(step: Step) -> Iterator[Line]:
    formula, numbers = "FLOPs / (chips · C · efficiency)", "forward and backward, the mean stage"
    for name, seconds in step.math.items():
        if seconds:
            yield Line(name=f"T_math, {name}", formula=formula, numbers=numbers, value=seconds, unit="s")
    yield _sum("T", step.terms, step.total_s, "s")
    yield _share("MFU", "useful FLOPs", step, step.useful_flops, step.mfu)
    yield _share("HFU", "all FLOPs", step, step.hardware_flops, step.hfu)


def _share(name: str, what: str, step: Step, flops: float, share: float) -> Line:
    numbers = f"{figure(flops)} / ({product(step.total_s, step.peak_flops_per_s)})"
    return Line(name=name, formula=f"{what} / (T · chips · C)", numbers=numbers, value=share, unit=SHARE)


def _memory(step: Step) -> Iterator[Line]:
    yield _sum("memory of one chip", step.memory.terms, step.memory.total, "B")


def _sum(name: str, terms: dict[str, float], total: float, unit: str) -> Line:
    numbers = added(map(figure, terms.values()))
    return Line(name=name, formula=" + ".join(terms), numbers=numbers, value=total, unit=unit)


def _run(step: Step, run: Run) -> Iterator[Line]:
    numbers = f"{figure(run.tokens)} / {figure(step.tokens)} · {figure(step.total_s)}"
    name, formula = "T, the whole run", "tokens / (tokens of a step) · T"
    yield Line(name=name, formula=formula, numbers=numbers, value=run.seconds, unit="s")
    numbers = f"{product(run.chips, run.seconds)} / 3600"
    yield Line(name="chip-hours", formula="chips · T / 3600", numbers=numbers, value=run.chip_hours)
