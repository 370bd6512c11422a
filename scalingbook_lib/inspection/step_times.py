"""The parts of a profiled step: compute, exposed communication, launch gaps and waits, in seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.profiles import Trace
from scalingbook_lib.profiles.intervals import Event, Interval, clipped, covered_s, pauses
from scalingbook_lib.profiles.trace import COLLECTIVE
from scalingbook_lib.units import Result, si

SHORT_GAP_S = 20e-6  # a shorter pause between operations is a launch gap; a longer one is a wait for the host


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime(Result):
    """One step, averaged over devices, in seconds.

    `launch_s` are short pauses between operations, `wait_s` longer ones and those until the next step.
    `compile_s` is the part of the step during which the host compiles. `host` names what the host did while
    the devices waited.
    """

    number: int
    start_s: float
    duration_s: float
    compute_s: float
    exposed_s: float
    launch_s: float
    wait_s: float
    compile_s: float = 0.0
    host: str = ""

    @property
    def largest_wait(self) -> str:
        """What the step waits for most: collectives, compilation, the host, launches, or nothing."""
        waits = {
            "collectives": self.exposed_s,
            "compilation": min(self.compile_s, self.wait_s),
            f"the host ({self.host})" if self.host else "the host": max(self.wait_s - self.compile_s, 0.0),
            "launches": self.launch_s,
        }
        most = max(waits, key=lambda name: waits[name])
        return most if waits[most] > 0.02 * self.duration_s else "nothing"

    @property
    def values(self) -> dict[str, Any]:
        """The times as plain values for JSON."""
        return {
            "duration_s": self.duration_s,
            "compute_s": self.compute_s,
            "exposed_s": self.exposed_s,
            "launch_gaps_s": self.launch_s,
            "wait_s": self.wait_s,
            "compile_s": self.compile_s,
            "waits_for": self.largest_wait,
        }

    def __str__(self) -> str:
        return f"step {self.number}: {si(self.duration_s, 's')}, waits for {self.largest_wait}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime(Result):
    """A collective in a step, averaged over devices: its runs, its time, and the exposed part."""

    name: str
    times: float
    seconds: float
    exposed_s: float

    @property
    def values(self) -> dict[str, Any]:
        """The times as plain values for JSON."""
        return {
            "name": self.name,
            "times": self.times,
            "total_s": self.seconds,
            "exposed_s": self.exposed_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTime(Result):
    """A device or a host in a step: its compute, its exposed communication, and its idle time."""

    name: str
    step_s: float
    compute_s: float
    exposed_s: float

    @property
    def idle_s(self) -> float:
        """The rest of the step."""
        return max(self.step_s - self.compute_s - self.exposed_s, 0.0)

    @property
    def values(self) -> dict[str, Any]:
        """The times as plain values for JSON."""
        return {
            "name": self.name,
            "step_s": self.step_s,
            "compute_s": self.compute_s,
            "exposed_s": self.exposed_s,
            "idle_s": self.idle_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGaps(Result):
    """The pauses between operations within a step on one device."""

    operations: float
    gaps: float
    median_s: float
    total_s: float
    in_graphs: float | None  # share of the kernels that CUDA graphs launched, on a GPU

    @property
    def values(self) -> dict[str, Any]:
        """The pauses as plain values for JSON."""
        return {
            "operations": self.operations,
            "gaps": self.gaps,
            "median_gap_s": self.median_s,
            "total_s": self.total_s,
            "graph_share": self.in_graphs,
        }


def split(trace: Trace, events: Sequence[Event], span: Interval) -> tuple[float, float, float, float]:
    """Compute, exposed communication, launch gaps and waits of one device in a step, in seconds."""
    inside = [e for e in events if e.start_s < span[1] and e.end_s > span[0]]
    compute = clipped([(e.start_s, e.end_s) for e in inside if trace.ops[e.op].kind != COLLECTIVE], span)
    everything = clipped([(e.start_s, e.end_s) for e in inside], span)
    busy, computing = covered_s(everything), covered_s(compute)
    launch = sum(gap for gap in pauses(everything) if gap <= SHORT_GAP_S)
    return computing, busy - computing, launch, max(span[1] - span[0] - busy - launch, 0.0)
