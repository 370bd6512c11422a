"""What is one published run of a collective: which system, which sizes, whose word?

Chapter: GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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


def _source(text: str, url: str) -> Source:
    return Source(text=text, as_of="2026-11-21", url=url)


def _aiconfigurator(folder: str, version: str) -> Source:
    file = f"{folder}/comm/nccl/{version}/nccl_perf.parquet"
    text = f"aiconfigurator-core 0.12.0 (NVIDIA, Apache License 2.0), {file}"
    return _source(text, "https://pypi.org/project/aiconfigurator-core/")


DGXC = _source(
    "NVIDIA/dgxc-benchmarking, nccl/README.md at commit 841f546",
    "https://github.com/NVIDIA/dgxc-benchmarking",
)
SURVEY = _source(
    "S. Bekman, Machine Learning Engineering (CC BY-SA 4.0), network/README.md at commit 744d01e",
    "https://github.com/stas00/ml-engineering",
)

type Times = dict[tuple[str, int], tuple[float, ...]]


def swept(system: str, chip: Chip, folder: str, version: str, times: Times) -> Iterator[Run]:
    """Sizes of 512 bytes to 512 MiB."""
    source = _aiconfigurator(folder, version)
    for (collective, n), microseconds in times.items():
        yield Run(
            system=system, chip=chip, n=n, collective=collective, algorithm=f"NCCL {version}", first=9,
            microseconds=microseconds, source=source,
        )  # fmt: skip


def curve(system: str, chip: Chip, algorithm: str, first: int, source: Source, *microseconds: float) -> Run:
    """An all-reduce over eight chips, over the size."""
    return Run(
        system=system, chip=chip, n=8, collective="all-reduce", algorithm=algorithm, first=first,
        microseconds=microseconds, source=source,
    )  # fmt: skip


def rates(
    system: str,
    chip: Chip,
    algorithm: str,
    first: int,
    busbw: dict[int, float],
    collective: str = "all-reduce",
) -> Iterator[Run]:
    """One size; the survey prints bus bandwidths, in GB/s, by the number of chips."""
    for n, rate in busbw.items():
        share = (n - 1) / n * (2 if collective == "all-reduce" else 1)
        yield Run(
            system=system, chip=chip, n=n, collective=collective, algorithm=algorithm, first=first,
            microseconds=(share * 2**first / rate / 1e3,), source=SURVEY,
        )  # fmt: skip
