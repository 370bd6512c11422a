"""Reads a profile as a reviewer would: what every step waits for, which host is slowest, what to change.

A step begins with an operation of the main program, the one that takes most time, and ends where its next run
begins. Its time is compute, exposed communication, gaps between operations, and the wait for the next step.
"""

import itertools
import json
import re
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scalingbook_lib.inspection.findings import profiles
from scalingbook_lib.inspection.report import finding_values
from scalingbook_lib.machines import Chip
from scalingbook_lib.profiles import Trace, attained, files, operations, xplane
from scalingbook_lib.profiles.intervals import Event, Interval, covered_s
from scalingbook_lib.profiles.trace import COLLECTIVE, COMPILE, LOOP, OperationRow
from scalingbook_lib.units import Result, percent, si

SHORT_GAP_S = 20e-6  # a shorter pause between operations is a launch gap; a longer one is a wait for the host
MOST_NAMES = 3  # host events that are named for a wait
LEAST_HOST_S = 1e-4  # shorter host events explain no wait


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

    def __str__(self) -> str:
        return f"step {self.number}: {si(self.duration_s, 's')}, waits for {self.largest_wait}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime(Result):
    """A collective in a step, averaged over devices: its runs, its time, and the exposed part."""

    name: str
    times: float
    seconds: float
    exposed_s: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGaps(Result):
    """The pauses between operations within a step on one device."""

    operations: float
    gaps: float
    median_s: float
    total_s: float
    in_graphs: float | None  # share of the kernels that CUDA graphs launched, on a GPU


@dataclass(frozen=True, kw_only=True)
class ProfileReport(Result):
    """A profile and what can be said about it. `hosts` are the profiles of one run by host."""

    trace: Trace
    hosts: dict[str, Trace] = field(default_factory=dict)
    chip: Chip | None = None
    in_graphs: float | None = None

    @cached_property
    def main(self) -> str:
        """The program that takes most of the devices' time."""
        modules = self.trace.by("module")
        return next(iter(modules), "")

    @cached_property
    def _by_device(self) -> dict[int, list[Event]]:
        """The events of each device that are operations, in order; those that contain others are left out."""
        found: dict[int, list[Event]] = {}
        for e in self.trace.events:
            if self.trace.ops[e.op].kind != LOOP:
                found.setdefault(e.device, []).append(e)
        return {device: sorted(events, key=lambda e: e.start_s) for device, events in sorted(found.items())}

    @cached_property
    def spans(self) -> tuple[Interval, ...]:
        """The start and the end of every step."""
        runs: dict[int, Interval] = {}
        for e in self.trace.events:
            if self.trace.ops[e.op].module == self.main:
                start, end = runs.get(e.run, (e.start_s, e.end_s))
                runs[e.run] = min(start, e.start_s), max(end, e.end_s)
        ordered = sorted(runs.values())
        ends = [start for start, _ in ordered[1:]] + [ordered[-1][1]] if ordered else []
        return tuple((start, max(end, start)) for (start, _), end in zip(ordered, ends, strict=True))

    @cached_property
    def steps(self) -> tuple[StepTime, ...]:
        """Every step."""
        return tuple(self._step(n, span) for n, span in enumerate(self.spans))

    def _step(self, number: int, span: Interval) -> StepTime:
        devices = [_split(self.trace, events, span) for events in self._by_device.values()]
        n = len(devices) or 1
        compute, exposed, launch, wait = (sum(part) / n for part in zip(*devices, strict=True))
        compiled = covered_s(_clipped([(m.start_s, m.end_s) for m in self.trace.compilations], span))
        return StepTime(
            number=number,
            start_s=span[0],
            duration_s=span[1] - span[0],
            compute_s=compute,
            exposed_s=exposed,
            launch_s=launch,
            wait_s=wait,
            compile_s=compiled,
            host=self._host(span),
        )

    def _host(self, span: Interval) -> str:
        """The host event that takes most of a step, besides compilations."""
        annotated = [(m.start_s, m.end_s, m.name) for m in self.trace.host if m.name not in (COMPILE, "step")]
        seconds: dict[str, float] = {}
        for start, end, name in annotated:
            overlap = min(end, span[1]) - max(start, span[0])
            if overlap > 0:
                seconds[name] = seconds.get(name, 0.0) + overlap
        return max(seconds, key=lambda name: seconds[name], default="")

    @property
    def step_s(self) -> float:
        """The median time of a step, without the last one, after which nothing follows."""
        found = self.steps[:-1] if len(self.steps) > 1 else self.steps
        return statistics.median(step.duration_s for step in found) if found else 0.0

    @cached_property
    def mean(self) -> StepTime:
        """A step on average, over all steps."""
        n = len(self.steps) or 1
        sums = {
            name: sum(getattr(step, name) for step in self.steps) / n
            for name in ("duration_s", "compute_s", "exposed_s", "launch_s", "wait_s", "compile_s")
        }
        names = [step.host for step in self.steps if step.host]
        host = statistics.mode(names) if names else ""
        return StepTime(number=-1, start_s=0.0, host=host, **sums)

    @cached_property
    def collectives(self) -> tuple[CollectiveTime, ...]:
        """The collectives of a step, those with most exposed time first."""
        n = (len(self._by_device) or 1) * (len(self.steps) or 1)
        seconds: dict[str, list[float]] = {}
        for events in self._by_device.values():
            compute = [(e.start_s, e.end_s) for e in events if self.trace.ops[e.op].kind != COLLECTIVE]
            merged = _merged(compute)
            for e in events:
                op = self.trace.ops[e.op]
                if op.kind == COLLECTIVE:
                    hidden = _overlap(merged, (e.start_s, e.end_s))
                    row = seconds.setdefault(op.moves or op.name, [0.0, 0.0, 0.0])
                    row[0] += 1 / n
                    row[1] += e.duration_s / n
                    row[2] += (e.duration_s - hidden) / n
        rows = (
            CollectiveTime(name=name, times=times, seconds=total, exposed_s=exposed)
            for name, (times, total, exposed) in seconds.items()
        )
        return tuple(sorted(rows, key=lambda row: -row.exposed_s))

    @cached_property
    def workers(self) -> tuple[WorkerTime, ...]:
        """The hosts if there are several, else the devices; the one that computes longest first."""
        if len(self.hosts) > 1:
            rows = []
            for name, trace in self.hosts.items():
                mean = ProfileReport(trace=trace).mean
                rows.append(
                    WorkerTime(
                        name=name,
                        step_s=mean.duration_s,
                        compute_s=mean.compute_s,
                        exposed_s=mean.exposed_s,
                    )
                )
        else:
            rows = [self._worker(device, events) for device, events in self._by_device.items()]
        return tuple(sorted(rows, key=lambda row: -row.compute_s))

    def _worker(self, device: int, events: list[Event]) -> WorkerTime:
        parts = [_split(self.trace, events, span) for span in self.spans]
        n = len(parts) or 1
        compute, exposed, _, _ = (
            (sum(part) / n for part in zip(*parts, strict=True)) if parts else (0, 0, 0, 0)
        )
        return WorkerTime(
            name=f"device {device}", step_s=self.mean.duration_s, compute_s=compute, exposed_s=exposed
        )

    @cached_property
    def gaps(self) -> LaunchGaps:
        """The launch gaps of a step on one device."""
        n = (len(self._by_device) or 1) * (len(self.steps) or 1)
        gaps: list[float] = []
        for events in self._by_device.values():
            for span in self.spans:
                inside = _clipped([(e.start_s, e.end_s) for e in events], span)
                gaps += [gap for gap in _pauses(inside) if gap <= SHORT_GAP_S]
        count = sum(len(events) for events in self._by_device.values())
        return LaunchGaps(
            operations=count / n,
            gaps=len(gaps) / n,
            median_s=statistics.median(gaps) if gaps else 0.0,
            total_s=sum(gaps) / n,
            in_graphs=self.in_graphs,
        )

    @cached_property
    def rooflines(self) -> tuple[attained.AttainedOperation, ...]:
        """The operations and their rooflines; none if the chip or what the operations do is unknown."""
        chip = self.chip
        if chip is None:
            if self.trace.simulated:
                return ()
            try:
                chip = attained.chip_of(self.trace)
            except ValueError:
                return ()
        return attained.against(self.trace, chip).rows

    @property
    def operations(self) -> tuple[OperationRow, ...]:
        """The operations of a run, the slowest first, without those that contain others."""
        return tuple(row for row in self.trace.rows if row.op.kind != LOOP)

    @property
    def summary(self) -> tuple[str, str, str]:
        """Three lines: the time of a step and its parts, what it waits for and who is slowest, the levers."""
        mean, n = self.mean, len(self.steps)
        total = mean.duration_s or 1.0
        idle = percent((mean.launch_s + mean.wait_s) / total)
        first = (
            f"{n} step{'s' * (n != 1)} of {si(self.step_s, 's')} on {self._devices}; "
            f"{percent(mean.compute_s / total)} compute, {percent(mean.exposed_s / total)} exposed "
            f"transfers, {idle} "
            "idle"
        )
        second = f"Steps wait most for {mean.largest_wait}"
        if len(self.workers) > 1:
            slowest, median = self.workers[0], statistics.median(w.compute_s for w in self.workers)
            more = slowest.compute_s / median - 1 if median else 0.0
            second += f"; {slowest.name} computes longest, {percent(more)} more than the median"
        found = profiles.levers(self)
        third = f"{len(found)} lever{'s' * (len(found) != 1)}"
        third += (
            f"; the first: {found[0].rule}, at most {si(found[0].saved_s, 's')} per step" if found else ""
        )
        return first, second, third if found else "No lever larger than 2% of a step"

    @property
    def _devices(self) -> str:
        t = self.trace
        if t.simulated:
            return f"{t.devices} CPU device{'s' * (t.devices > 1)}"
        hosts = f" on {len(self.hosts)} hosts" if len(self.hosts) > 1 else ""
        return f"{t.devices} × {t.kind}{hosts}"

    @property
    def values(self) -> dict[str, Any]:
        """Everything as plain values for JSON, in base units."""
        mean, t = self.mean, self.trace
        return {
            "profile": t.title,
            "platform": t.platform,
            "device_kind": t.kind,
            "devices": t.devices,
            "simulated": t.simulated,
            "hosts": list(self.hosts),
            "main_program": self.main,
            "step_s": self.step_s,
            "mean_step": _step_values(mean) | {"waits_for": mean.largest_wait},
            "steps": [_step_values(step) | {"waits_for": step.largest_wait} for step in self.steps],
            "compilations": len(t.compilations),
            "operations": [self._operation_values(row) for row in self.operations],
            "collectives": [
                {"name": c.name, "times": c.times, "total_s": c.seconds, "exposed_s": c.exposed_s}
                for c in self.collectives
            ],
            "launches": {
                "operations": self.gaps.operations,
                "gaps": self.gaps.gaps,
                "median_gap_s": self.gaps.median_s,
                "total_s": self.gaps.total_s,
                "graph_share": self.gaps.in_graphs,
            },
            "workers": [
                {
                    "name": w.name,
                    "step_s": w.step_s,
                    "compute_s": w.compute_s,
                    "exposed_s": w.exposed_s,
                    "idle_s": w.idle_s,
                }
                for w in self.workers
            ],
            "levers": [
                {name: value for name, value in finding_values(f).items() if name not in ("places", "lines")}
                for f in profiles.levers(self)
            ],
        }

    def _operation_values(self, row: OperationRow) -> dict[str, Any]:
        found = next((a for a in self.rooflines if a.row == row), None)
        return {
            "name": row.op.name,
            "kind": row.op.kind,
            "program": row.op.module or None,
            "scope": row.op.scope or None,
            "times": row.times,
            "total_s": row.self_s,
            "share": row.share,
            "flops": row.op.flops,
            "bytes": row.op.nbytes,
            "roofline_share": found.fraction if found else None,
        }

    def __str__(self) -> str:
        found = profiles.levers(self)
        parts = ["\n".join(self.summary)]
        parts += [f"{n}. {one}\n   {one.section}" for n, one in enumerate(found, 1)]
        return "\n\n".join([*parts, *map(str, self.steps[:8])])


def profile(
    path: str | Path,
    *programs: Any,
    chip: Chip | None = None,
    annotations: Sequence[str] = (),
) -> ProfileReport:
    """The report on a profile: a file of the profiler, a folder above some, or a trace that `save` wrote.

    `programs` are compiled programs that ran, or their texts: they add FLOPs, bytes and scopes to operations.
    `annotations` are names of host events to show. Raises a FileNotFoundError or a ValueError that says what
    is wrong with the file.
    """
    found = Path(path)
    if found.is_file() and (stored := _stored(found)) is not None:
        return ProfileReport(trace=stored, chip=chip)
    newest = xplane.newest(found)
    paths = _of_one_run(newest, found)
    traces, planes_of = {}, {}
    for one in paths:
        planes = xplane.planes_of(one)
        planes_of[one] = planes
        names = tuple(dict.fromkeys(("step", *annotations)))
        traces[_host_name(one)] = xplane.read(one, *programs, annotations=names, title=_title(one))
    slowest = max(traces, key=lambda name: ProfileReport(trace=traces[name]).mean.compute_s)
    chosen = next(one for one in paths if _host_name(one) == slowest)
    trace = traces[slowest]
    known = operations.of_programs(programs)
    names = _busy_during_waits(planes_of[chosen])
    if names:  # read again, because times count from the first event
        told = tuple(dict.fromkeys(("step", *annotations, *names)))
        about = {"title": trace.title, "platform": trace.platform, "kind": trace.kind}
        trace = xplane.from_planes(planes_of[chosen], known, told, **about)
    return ProfileReport(
        trace=trace,
        hosts=traces,
        chip=chip,
        in_graphs=xplane.share_in_graphs(planes_of[chosen]) if trace.platform == "gpu" else None,
    )


def _stored(path: Path) -> Trace | None:
    """A trace that `profiles.save` wrote; None for a file of another kind."""
    if path.suffix != ".json":
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None
    return files.load(path) if isinstance(told, dict) and "format" in told and "ops" in told else None


def _of_one_run(newest: Path, given: Path) -> list[Path]:
    """The profiles of all hosts of the newest run: those of the same kind in the same folder."""
    if given.is_file():
        return [given]
    kind = "".join(newest.suffixes[-2:]) if newest.suffix == ".gz" else newest.suffix
    ending = ".xplane.pb" if ".xplane.pb" in newest.name else kind
    return sorted(p for p in newest.parent.iterdir() if p.is_file() and ending in p.name)


def _host_name(path: Path) -> str:
    return re.sub(r"\.?(xplane\.pb|trace\.json)?(\.gz)?$", "", path.name) or path.parent.name


def _title(path: Path) -> str:
    return re.sub(r"\.(xplane\.pb|trace\.json)(\.gz)?$", "", path.name)


def _busy_during_waits(planes: Any) -> tuple[str, ...]:
    """The host events that cover most of the time in which no operation runs, innermost first."""
    busy = _merged([(start, end) for _, start, end in xplane.operation_spans(planes)])
    waits = [
        (end, start) for (_, end), (start, _) in itertools.pairwise(busy) if start - end > SHORT_GAP_S * 1e9
    ]
    total = sum(end - start for start, end in waits)
    if not total:
        return ()
    seconds: dict[str, float] = {}
    for name, start, duration in xplane.host_spans(planes):
        if duration >= LEAST_HOST_S * 1e9:
            overlap = _overlap(waits, (start, start + duration))
            # an event that goes on while devices work, or during several waits, explains none
            second = bisect_left(waits, (start, start)) + 1
            several = second < len(waits) and waits[second][1] <= start + duration
            if overlap > 0.5 * duration and not several:
                seconds[name] = seconds.get(name, 0.0) + overlap
    found = [name for name in sorted(seconds, key=lambda name: -seconds[name]) if seconds[name] > 0.2 * total]
    return tuple(found[:MOST_NAMES])


def _split(trace: Trace, events: Sequence[Event], span: Interval) -> tuple[float, float, float, float]:
    """Compute, exposed communication, launch gaps and waits of one device in a step, in seconds."""
    inside = [e for e in events if e.start_s < span[1] and e.end_s > span[0]]
    compute = _clipped([(e.start_s, e.end_s) for e in inside if trace.ops[e.op].kind != COLLECTIVE], span)
    everything = _clipped([(e.start_s, e.end_s) for e in inside], span)
    busy, computing = covered_s(everything), covered_s(compute)
    launch = sum(gap for gap in _pauses(everything) if gap <= SHORT_GAP_S)
    return computing, busy - computing, launch, max(span[1] - span[0] - busy - launch, 0.0)


def _clipped(intervals: Iterable[Interval], span: Interval) -> list[Interval]:
    """The parts of intervals within a span."""
    cut = ((max(start, span[0]), min(end, span[1])) for start, end in intervals)
    return [(start, end) for start, end in cut if end > start]


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Overlapping intervals joined, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _pauses(intervals: Iterable[Interval]) -> list[float]:
    """The lengths of the pauses between intervals."""
    merged = _merged(intervals)
    return [start - end for (_, end), (start, _) in itertools.pairwise(merged)]


def _overlap(merged: Sequence[Interval], span: Interval) -> float:
    """The part of a span that ordered, disjoint intervals cover."""
    first = max(bisect_left(merged, (span[0], span[0])) - 1, 0)
    total = 0.0
    for start, end in merged[first:]:
        if start >= span[1]:
            break
        total += max(min(end, span[1]) - max(start, span[0]), 0.0)
    return total


def _step_values(step: StepTime) -> dict[str, float]:
    return {
        "duration_s": step.duration_s,
        "compute_s": step.compute_s,
        "exposed_s": step.exposed_s,
        "launch_gaps_s": step.launch_s,
        "wait_s": step.wait_s,
        "compile_s": step.compile_s,
    }
