"""A finding: what a reviewer would say about a program, what it costs, and where the book explains it."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_lib.units import Result
from scalingbook_lib.words import join_and


@dataclass(frozen=True, slots=True)
class Section(Result):
    """A section of the book: its page, its anchor and its title."""

    page: str
    anchor: str
    title: str

    @property
    def path(self) -> str:
        """The address of the section within the site."""
        return f"chapters/{self.page}.html#{self.anchor}"

    def __str__(self) -> str:
        return f"{self.title} ({self.path})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Result):
    """One finding about a program or a profile.

    `message` states the fact with its numbers, `advice` what to change. `saved_s` and `saved_bytes` are what
    the change would save at most, per run and on one device. `severity` orders findings: a share of the time
    of a run, or of the memory at its peak. `places` are instructions, `lines` are lines of Python.
    `collective` is the kind and the axes of the collectives that it is about, 'all-gather over data'.
    """

    rule: str
    message: str
    advice: str
    section: Section
    severity: float
    saved_s: float = 0.0
    saved_bytes: float = 0.0
    places: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    collective: str = ""

    @property
    def subject(self) -> tuple[str, str]:
        """What the finding is about, whatever its numbers: its rule, and the kind and axes of collectives."""
        return self.rule, self.collective

    def __str__(self) -> str:
        where = f" ({', '.join(self.lines[:3])})" if self.lines else ""
        return f"{self.message}{where}. {self.advice}."


def axes_in_words(axes: Sequence[str]) -> str:
    """Names of mesh axes as a phrase: 'the axis data', 'the axes data and model'."""
    return f"the {'axis' if len(axes) == 1 else 'axes'} {join_and(axes)}"


FAULT_SHARDING = Section("profiling", "profiling-bug-sharding", "A wrong sharding")
LOOP = Section("profiling_overlap", "profiling-bug-serial", "An AllReduce in a loop")
MICROBATCHES = Section(
    "training_fsdp", "training-fsdp-accumulation", "Gradient accumulation: traffic of a step"
)
SCATTER = Section("sharding", "sharding-reducescatter", "ReduceScatter and AllReduce")
OVERLAP = Section("profiling", "profiling-exposed", "Exposed communication")
ORDER = Section("gpus_network", "gpus-recipe", "How to choose a parallelism plan: TP, EP, DP or PP first?")
LATENCY = Section("sharding", "sharding-latency", "Latency-bound collectives")
NARROW = Section("lowprecision", "lowprecision-collectives", "Quantized collectives")
FSDP = Section("training", "training-fsdp", "ZeRO and FSDP")
DONATION = Section("profiling_memory", "profiling-donation", "Buffer donation")
PEAK_MEMORY = Section("profiling_memory", "profiling-live", "Live ranges and peak memory")
TILES = Section("profiling_memory", "profiling-tiles", "Tiles and padding")
COLUMNS = Section("tpus_shapes", "tpus-shapes-columns", "One column too many")
UNEVEN = Section("sharding_resharding", "sharding-uneven", "Dimensions that do not divide evenly")
REMAT = Section("training", "training-remat", "Activation checkpointing")
COPIES = Section("profiling_kernels", "profiling-copies", "Relayout copies")
PRECISION = Section("lowprecision", "lowprecision-computes", "Which chips compute in int8, fp8 and fp4?")
SCORES = Section("profiling", "profiling-worked-explain", "Explain: attention scores go through HBM")
SMELLS = Section("profiling", "profiling-smells", "Checklist: symptoms of a slow step")
INPUT = Section("profiling", "profiling-bug-input", "Input-bound")
RECOMPILE = Section("profiling", "profiling-bug-recompile", "Recompilation")
LAUNCHES = Section("profiling_gpus", "profiling-comb", "Kernel launch overhead")
STRAGGLERS = Section("posttraining_faults", "posttraining-silent", "Stragglers and silent data corruption")
PREDICT = Section("profiling", "profiling-worked", "A worked example: predict every operation")
LINES = Section("profiling", "profiling-lanes", "Hidden, exposed and idle time")
