"""Published NCCL times within one domain, compared with the fitted model of each generation of links.

The rows are in `evidence/data/collectives.csv`; those with the same `run` are one sweep over sizes. The model
is that of `calibrated.fabrics`. Chapter: GPUs.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

from scalingbook_lib.calibrated import fabrics
from scalingbook_lib.collectives import Collective
from scalingbook_lib.collectives.attained import CollectiveTerms
from scalingbook_lib.evidence import fabric_fit, resources
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.units import KiB, MiB, Result, binary, si

SMALL, LARGE = 32 * KiB, 64 * MiB
FORMS = ("all-gather", "reduce-scatter", "all-to-all", "all-reduce")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTime(Result):
    """A measured time and the terms of the model's; `size` is counted as in the source."""

    chip: Chip
    n: int
    collective: str
    size: int
    seconds: float
    model: CollectiveTerms
    besides_s: float

    @property
    def model_s(self) -> float:
        """The model's time in seconds, including what the benchmark adds."""
        return self.model.total_s + self.besides_s

    @property
    def error(self) -> float:
        """The model's time over the measured one, minus 1; negative if the model is too fast."""
        return self.model_s / self.seconds - 1

    def __str__(self) -> str:
        what = f"{self.n} {self.chip.name}, {self.collective} of {binary(self.size)}"
        return f"{what}: {si(self.seconds, 's')} measured, {si(self.model_s, 's')} by the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRun:
    """One collective over `n` chips of one domain, timed at 2^first bytes and its doublings."""

    system: str
    chip: Chip
    n: int
    collective: str
    algorithm: str
    first: int
    timed: tuple[fabric_fit.MeasuredCollective, ...]
    source: Source

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes as the source counts them: the array, or for an all-to-all one chip's share of it."""
        return tuple(2 ** (self.first + i) for i in range(len(self.timed)))

    @property
    def microseconds(self) -> tuple[float, ...]:
        """The measured times in µs, as printed or from the bus bandwidth."""
        return tuple(1e6 * row.seconds for row in self.timed)

    def points(self, fabric: fabrics.Fabric | None = None) -> tuple[MeasuredTime, ...]:
        """Every measured time with that of a fabric, by default the chip's own."""
        one = fabric or fabrics.fabric(self.chip)
        return tuple(
            MeasuredTime(
                chip=self.chip,
                n=self.n,
                collective=self.collective,
                size=size,
                seconds=row.seconds,
                model=one.attained(row.what, row.nbytes, *row.networks, ring=row.ring),
                besides_s=fabric_fit.BENCHMARK_OVERHEAD_S * row.bench,
            )
            for size, row in zip(self.sizes, self.timed, strict=True)
        )


@cache
def runs() -> tuple[CollectiveRun, ...]:
    """Every sweep of one collective on one number of chips."""
    timed = (row for row in resources.rows("collectives") if row["run"])
    return tuple(map(_run, resources.grouped(timed, lambda row: row["run"]).values()))


def _run(sweep: list[resources.Row]) -> CollectiveRun:
    row, on = sweep[0], chip(sweep[0]["chip"])
    return CollectiveRun(
        system=row["system"],
        chip=on,
        n=int(row["n_devices"]),
        collective=Collective.named(row["collective"]).hlo,
        algorithm=row["algo_or_tool"],
        first=int(row["size_bytes"]).bit_length() - 1,
        timed=tuple(fabric_fit.measured_collective(one, on) for one in sweep),
        source=resources.source(row),
    )


_BANDS = (
    (0, SMALL, "up to 32 KiB"),
    (SMALL, 2 * MiB, "64 KiB to 2 MiB"),
    (2 * MiB, LARGE - 1, "4 to 32 MiB"),
    (LARGE - 1, math.inf, "from 64 MiB"),
)


@dataclass(frozen=True)
class CollectiveComparison:
    """Measured collectives and the model's times: `points`, and `errors()` by size and scale."""

    runs: tuple[CollectiveRun, ...]

    @cached_property
    def points(self) -> tuple[MeasuredTime, ...]:
        """Every measured time with the model's."""
        return tuple(point for run in self.runs for point in run.points())

    @property
    def large(self) -> tuple[MeasuredTime, ...]:
        """The messages of 64 MiB and more, which are bandwidth-bound."""
        return tuple(point for point in self.points if point.size >= LARGE)

    def errors(self) -> tuple[Summary, ...]:
        """Summaries by size and, for large messages, by number of chips, collective and chip."""
        groups = {name: [p for p in self.points if low < p.size <= high] for low, high, name in _BANDS}
        groups |= {f"{n} chips": [p for p in self.large if p.n == n] for n in range(2, 9)}
        groups |= {kind: [p for p in self.large if p.collective == kind] for kind in FORMS}
        names = dict.fromkeys(run.chip.name for run in self.runs)
        groups |= {name: [p for p in self.large if p.chip.name == name] for name in names}
        return tuple(Summary.of(name, [p.error for p in points]) for name, points in groups.items() if points)
