"""How far off is the model of a collective, alpha plus bytes over a bandwidth, on real switches?

What published runs of NCCL took is in `evidence/data/collectives.csv`: rows that have the same `run` are one
sweep over sizes.

For each chip and class of collective two figures are calibrated, both read off one system alone: alpha, the
median time of messages up to 32 KiB, and the efficiency, the median share of the bound (`collectives` at
documented peaks) that messages from 64 MiB on reach after alpha. One efficiency for every size and number of
chips. All rows are of one domain; no row of the table crosses a network.

Where the model is worse: between 2 and 64 MiB it is about a quarter too fast, because NCCL goes from its
low-latency protocols to full bandwidth step by step; two chips reach less of the peak than four or eight, and
the model, with one efficiency for all, is then too fast; runs of larger messages than the calibrated, or of
another system of the same chip, reach more, up to a third. Chapter: GPUs.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median

from scalingbook_lib import collectives
from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.resources import Row
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.units import KiB, MiB, Told, binary, percent, si

SMALL, LARGE = 32 * KiB, 64 * MiB
IN_SWITCH = "all-reduce in the switch"
_FORMS = ("all-gather", "reduce-scatter", "all-to-all", "all-reduce")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRun:
    """One collective among `n` chips of one domain, timed at sizes of 2^first bytes and its doubles."""

    system: str
    chip: Chip
    n: int
    collective: str
    algorithm: str
    first: int
    microseconds: tuple[float, ...]
    source: Source

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes as the source counts them: the array; for an all-to-all, one chip's part of it."""
        return tuple(2 ** (self.first + i) for i in range(len(self.microseconds)))


@cache
def runs() -> tuple[CollectiveRun, ...]:
    """Every run, one collective and number of chips each."""
    timed = (row for row in resources.rows("collectives") if row["run"])
    return tuple(map(_run, resources.grouped(timed, lambda row: row["run"]).values()))


def _run(sweep: list[Row]) -> CollectiveRun:
    row = sweep[0]
    return CollectiveRun(
        system=row["system"],
        chip=chip(row["chip"]),
        n=int(row["n_devices"]),
        collective=Collective.named(row["collective"]).hlo,
        algorithm=row["algo_or_tool"],
        first=int(row["size_bytes"]).bit_length() - 1,
        microseconds=tuple(map(_microseconds, sweep)),
        source=resources.source(row),
    )


def _microseconds(row: Row) -> float:
    """As printed; else from the bus bandwidth, in which an all-reduce passes each link twice."""
    if row["time_us"]:
        return float(row["time_us"])
    n, passes = int(row["n_devices"]), 2 if row["collective"] == "all_reduce" else 1
    return (n - 1) / n * passes * int(row["size_bytes"]) / float(row["busbw_GBps"]) / 1e3


def classed(run: CollectiveRun) -> str:
    """Its class: NCCL sums in the switch from five chips on, where it can and is not told otherwise."""
    if run.collective != "all-reduce" or run.algorithm.startswith("Ring"):
        return run.collective
    sums = run.n > 4 and Cluster.of(run.chip, run.n).levels[0].reduces
    return IN_SWITCH if sums else run.collective


def bound_s(run: CollectiveRun, size: float) -> float:
    """The time of the bytes at documented peaks; the source counts one chip's part of an all-to-all."""
    levels = Cluster.of(run.chip, run.n).levels
    if classed(run) == IN_SWITCH:
        return collectives.all_reduce(size, *levels, in_switch=True).bandwidth_s
    nbytes = size * run.n if run.collective == "all-to-all" else size
    return collectives.FORMULAS[Collective.named(run.collective)](nbytes, *levels).bandwidth_s


@dataclass(frozen=True, slots=True)
class CollectiveFit(Told):
    """What was calibrated for one chip and class of collective, on which system."""

    chip: Chip
    collective: str
    alpha_s: float
    efficiency: float
    system: str

    def seconds(self, bound_s: float) -> float:
        """Alpha, then the bytes at this share of the documented peak."""
        return self.alpha_s + bound_s / self.efficiency

    @property
    def half_speed_s(self) -> float:
        """The bound at which alpha is half of the time: arrays that take less are latency-bound."""
        return self.alpha_s * self.efficiency

    def __str__(self) -> str:
        reached = f"{percent(self.efficiency)} of the documented peak"
        return f"{self.chip.name}, {self.collective}: {si(self.alpha_s, 's')}, then {reached} ({self.system})"


@dataclass(frozen=True, slots=True)
class CollectiveTime(Told):
    """One measured time, its bound at documented peaks, and the model's time."""

    run: CollectiveRun
    size: int
    seconds: float
    bound_s: float
    fit: CollectiveFit

    @property
    def model_s(self) -> float:
        """What the calibrated model says."""
        return self.fit.seconds(self.bound_s)

    @property
    def error(self) -> float:
        """The model's time over the measured one, less 1: negative where the model is too fast."""
        return self.model_s / self.seconds - 1

    @property
    def held_out(self) -> bool:
        """Whether another system of the same chip was calibrated on."""
        return self.run.system != self.fit.system

    def __str__(self) -> str:
        what = f"{self.run.n} {self.run.chip.name}, {self.fit.collective} of {binary(self.size)}"
        return f"{what}: {si(self.seconds, 's')} measured, {si(self.model_s, 's')} by the model"


_BANDS = (
    (0, SMALL, "up to 32 KiB"),
    (SMALL, 2 * MiB, "64 KiB to 2 MiB"),
    (2 * MiB, LARGE - 1, "4 to 32 MiB"),
    (LARGE - 1, math.inf, "from 64 MiB"),
)


@dataclass(frozen=True)
class Comparison(Told):
    """Measured collectives beside the model: `points`, `fits`, and `errors()` by size and scale."""

    runs: tuple[CollectiveRun, ...]

    @cached_property
    def fits(self) -> dict[tuple[str, str], CollectiveFit]:
        """What was calibrated, by chip and class: on the first system of that chip with such a run."""
        found: dict[tuple[str, str], CollectiveFit] = {}
        for run in self.runs:
            key = run.chip.name, classed(run)
            if key not in found:
                found[key] = self._fit(run)
        return found

    def _fit(self, first: CollectiveRun) -> CollectiveFit:
        # where a class was timed on large messages alone, alpha is of the same collective by another way
        own = [run for run in self.runs if run.system == first.system]
        alike = [run for run in own if classed(run) == classed(first)]
        small = _timed(alike, 0, SMALL) or [
            pair for pair in _timed(own, 0, SMALL) if pair[0].collective == first.collective
        ]
        alpha_s = median(seconds for _, _, seconds in small) if small else 0.0
        shares = [bound_s(run, size) / (seconds - alpha_s) for run, size, seconds in _timed(alike, LARGE)]
        return CollectiveFit(first.chip, classed(first), alpha_s, median(shares), first.system)

    @cached_property
    def points(self) -> tuple[CollectiveTime, ...]:
        """Every measured time beside the model's."""
        return tuple(
            CollectiveTime(run, size, seconds, bound_s(run, size), self.fits[run.chip.name, classed(run)])
            for run, size, seconds in _timed(self.runs)
        )

    @property
    def large(self) -> tuple[CollectiveTime, ...]:
        """The messages from 64 MiB on, where the bytes decide."""
        return tuple(point for point in self.points if point.size >= LARGE)

    def errors(self) -> tuple[Summary, ...]:
        """By size; then, of the large messages: by number of chips, by class, by chip, and held out."""
        bands = {name: [p for p in self.points if low < p.size <= high] for low, high, name in _BANDS}
        groups = bands | {f"{n} chips": [p for p in self.large if p.run.n == n] for n in range(2, 9)}
        groups |= {kind: [p for p in self.large if p.fit.collective == kind] for kind in (*_FORMS, IN_SWITCH)}
        groups |= {name: [p for p in self.large if p.run.chip.name == name] for name, _ in self.fits}
        groups["other systems than the calibrated"] = [p for p in self.large if p.held_out]
        return tuple(Summary.of(name, [p.error for p in points]) for name, points in groups.items() if points)

    def __str__(self) -> str:
        lines = [f"{len(self.points)} times of {len(self.runs)} runs; from 64 MiB on unless a size is named:"]
        for e in self.errors():
            shares = f"median {percent(e.median)}, mean {percent(e.mean)}, 90th percentile {percent(e.p90)}"
            lines.append(f"{e.name}: {e.runs} points, {shares}, bias {100 * e.bias:+.2g} %")
        return "\n".join(lines)


def _timed(
    runs: Iterable[CollectiveRun], low: float = 0, high: float = math.inf
) -> list[tuple[CollectiveRun, int, float]]:
    """Run, size and seconds of every time within these sizes."""
    return [
        (run, size, us / 1e6)
        for run in runs
        for size, us in zip(run.sizes, run.microseconds, strict=True)
        if low <= size <= high
    ]
