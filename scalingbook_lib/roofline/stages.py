"""Times of an operation that moves data through several memories and links, at once or in chunks.

A `Ladder` compares one operation with all bandwidths of a chip and finds the bottleneck. A `CopyPipeline`
copies in, computes and copies out: the first chunk passes every stage, and each further chunk finishes one
turn of the slowest stage later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType, Result, percent, require_min, si
from scalingbook_lib.words import pluralize


@dataclass(frozen=True, slots=True)
class ChunkTurn(Result):
    """One chunk in one stage, from `start_s` to `end_s`; chunks are numbered from 0."""

    stage: str
    chunk: int
    start_s: float
    end_s: float

    def __str__(self) -> str:
        return f"chunk {self.chunk} in {self.stage}: {si(self.start_s, 's')} to {si(self.end_s, 's')}"


@dataclass(frozen=True, slots=True)
class CopyPipeline(Result):
    """Equal chunks that pass through stages; `chunk_s` is the seconds of one chunk in each stage in order."""

    chunk_s: Mapping[str, float]
    chunks: int

    @property
    def slowest(self) -> str:
        """The bottleneck: the first of the stages with the longest turn."""
        return max(self.chunk_s, key=lambda stage: self.chunk_s[stage])

    @property
    def pace_s(self) -> float:
        """The time of one turn of the slowest stage in seconds, from one chunk's end to the next one's."""
        return self.chunk_s[self.slowest]

    @property
    def first_s(self) -> float:
        """The seconds after which the first chunk has passed every stage."""
        return sum(self.chunk_s.values())  # nothing overlaps for it

    @property
    def total_s(self) -> float:
        """The time in seconds: all stages for one chunk, plus the slowest stage for every further chunk."""
        # the slowest stage never waits once it has begun, and the others keep up with it
        return self.first_s + (self.chunks - 1) * self.pace_s

    @property
    def lower_s(self) -> float:
        """The lower bound in seconds of any schedule: the slowest stage's time for all chunks."""
        return self.chunks * self.pace_s

    @property
    def upper_s(self) -> float:
        """The time in seconds without overlap."""
        return self.chunks * self.first_s  # each chunk waits until the previous one has left

    @property
    def busy(self) -> dict[str, float]:
        """The fraction of the total time in which each stage works."""
        total = self.total_s
        return {stage: self.chunks * t / total if total else 0.0 for stage, t in self.chunk_s.items()}

    @property
    def turns(self) -> tuple[ChunkTurn, ...]:
        """The schedule, stage by stage: every chunk runs as soon as its previous stage and this stage allow.

        Chunk c enters a stage after one pass of the stages before it and c turns of the slowest of them.
        """
        times = list(self.chunk_s.values())
        before = [0.0, *accumulate(times)][: len(times)]
        # a chunk leaves a stage no faster than the slowest stage before it delivers chunks
        paces = accumulate(times, max)
        return tuple(
            ChunkTurn(stage, c, reached + c * pace, reached + c * pace + t)
            for (stage, t), reached, pace in zip(self.chunk_s.items(), before, paces, strict=True)
            for c in range(self.chunks)
        )

    def __str__(self) -> str:
        return (
            f"{pluralize(self.chunks, 'chunk')} through {', '.join(self.chunk_s)}: "
            f"{si(self.total_s, 's')}, bottleneck {self.slowest}, busy "
            f"{percent(self.busy[self.slowest], 3)} of the time"
        )


def pipeline(stages: Mapping[str, float], chunks: int) -> CopyPipeline:
    """`chunks` equal chunks through `stages`: Σ + (n - 1) · max.

    `stages` maps each stage's name to the seconds of one chunk. To split the whole work of each stage into n
    chunks, write `pipeline({name: t / n ...}, n)`. A double buffer between stages is enough; `pipelined` is
    the case of two stages. Raises a ValueError if there is no stage.
    """
    require_min(1, chunks=chunks)
    if not stages:
        raise ValueError("a pipeline needs at least one stage, as in {'copy in': 2e-6, 'compute': 3e-6}")
    require_min(0, **stages)
    return CopyPipeline(dict(stages), chunks)


def levels(chip: Chip) -> dict[str, float]:
    """Every documented bandwidth of the chip in bytes/s, unidirectional, by level.

    ICI is one torus axis with wraparound, NVLink is all links of the chip.
    """
    ladder = {
        "VMEM": chip.vmem_bytes_per_s,
        "HBM": chip.hbm_bytes_per_s,  # reads and writes together
        "ICI": 2 * chip.link_bytes_per_s if chip.torus else None,  # both links of an axis
        "NVLink": None if chip.torus else chip.links * chip.link_bytes_per_s,
        "PCIe": chip.pcie_bytes_per_s,
        "DCN": chip.dcn_bytes_per_s,  # a chip's share of its host's NICs
    }
    return {name: rate for name, rate in ladder.items() if rate}


@dataclass(frozen=True, slots=True)
class Ladder(Result):
    """One operation against several bandwidths: the compute time and one transfer time per level."""

    math_s: float
    level_s: Mapping[str, float]

    @property
    def terms(self) -> dict[str, float]:
        """Every term in seconds by name, the longest first."""
        return dict(sorted({"math": self.math_s, **self.level_s}.items(), key=lambda term: -term[1]))

    @property
    def slowest(self) -> str:
        """The name of the longest term."""
        return next(iter(self.terms))

    @property
    def lower_s(self) -> float:
        """The time in seconds if everything overlaps."""
        return max(self.terms.values())

    @property
    def upper_s(self) -> float:
        """The time in seconds if nothing overlaps."""
        return sum(self.terms.values())

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {si(seconds, 's')}" for name, seconds in self.terms.items())
        return f"{self.slowest} takes longest: {terms}"


def ladder(flops: float, nbytes: Mapping[str, float], chip: Chip, dtype: DType = BF16) -> Ladder:
    """An operation that moves bytes over several levels: `ladder(f, {"HBM": 1e9, "ICI": 1e8}, V5E)`.

    Raises a ValueError if the chip has no documented bandwidth for a level.
    """
    known = levels(chip)
    for name in nbytes:
        if name not in known:
            raise ValueError(
                f"{chip.name} has no documented {name} bandwidth; write one of {', '.join(known)}"
            )
    level_s = {name: moved / known[name] for name, moved in nbytes.items()}
    return Ladder(flops / chip.flops_per_s(dtype), level_s)


def bytes_in_flight(bytes_per_s: float, latency_s: float) -> float:
    """The bytes in flight that use a bandwidth fully: rate · latency (Little's law)."""
    return bytes_per_s * latency_s  # little1961proof, with bytes as the requests
