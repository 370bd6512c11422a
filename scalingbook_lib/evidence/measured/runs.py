"""What did published runs of NCCL take? Every time, by system, collective, chips and size.

Rows of `evidence/data/collectives.csv` that have the same `run` are one sweep over sizes.
Chapter: GPUs.
"""

from dataclasses import dataclass
from functools import cache

from scalingbook_lib.collectives import Collective
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.resources import Row
from scalingbook_lib.machines.chips import Chip, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
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
def runs() -> tuple[Run, ...]:
    """Every run, one collective and number of chips each."""
    timed = (row for row in resources.rows("collectives") if row["run"])
    return tuple(map(_run, resources.grouped(timed, lambda row: row["run"]).values()))


def _run(sweep: list[Row]) -> Run:
    row = sweep[0]
    return Run(
        system=row["system"],
        chip=resources.chip(row["chip"]),
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
