"""Reads a profile as a reviewer would: what every step waits for, which host is slowest, what to change.

A step begins with an operation of the main program, the one that takes most time, and ends where its next run
begins. Its time is compute, exposed communication, gaps between operations, and the wait for the next step.
The profile does not show how long the wait after the last step is, so averages leave that step out.
"""

import statistics
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scalingbook_lib.inspection.findings import profiles
from scalingbook_lib.inspection.report import finding_values
from scalingbook_lib.inspection.step_times import (
    SHORT_GAP_S,
    CollectiveTime,
    LaunchGaps,
    StepTime,
    WorkerTime,
    split,
)
from scalingbook_lib.machines import Chip
from scalingbook_lib.profiles import Trace, attained
from scalingbook_lib.profiles.intervals import Event, Interval, clipped, covered_s, merged, overlap, pauses
from scalingbook_lib.profiles.trace import COLLECTIVE, COMPILE, LOOP, OperationRow
from scalingbook_lib.units import Result, percent, si
from scalingbook_lib.words import pluralize


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
        """The events of each device that are operations, in order, without those that contain others."""
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

    @property
    def whole_steps(self) -> tuple[StepTime, ...]:
        """The steps whose end is known, those before the last one, or the only step."""
        return self.steps[:-1] or self.steps

    @property
    def _whole_spans(self) -> tuple[Interval, ...]:
        return self.spans[:-1] or self.spans

    @cached_property
    def _averaged(self) -> dict[int, list[Event]]:
        """The events of each device that begin in one of the whole steps."""
        spans = self._whole_spans
        if not spans:
            return {}
        start, end = spans[0][0], spans[-1][1]
        return {
            device: [e for e in events if start <= e.start_s < end]
            for device, events in self._by_device.items()
        }

    def _step(self, number: int, span: Interval) -> StepTime:
        devices = [split(self.trace, events, span) for events in self._by_device.values()]
        n = len(devices) or 1
        compute, exposed, launch, wait = (sum(part) / n for part in zip(*devices, strict=True))
        compiled = covered_s(clipped([(m.start_s, m.end_s) for m in self.trace.compilations], span))
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
        """The time of a step on average, to which all shares refer."""
        return self.mean.duration_s

    @cached_property
    def mean(self) -> StepTime:
        """A step on average, over the whole steps."""
        n = len(self.whole_steps) or 1
        sums = {
            name: sum(getattr(step, name) for step in self.whole_steps) / n
            for name in ("duration_s", "compute_s", "exposed_s", "launch_s", "wait_s", "compile_s")
        }
        names = [step.host for step in self.whole_steps if step.host]
        host = statistics.mode(names) if names else ""
        return StepTime(number=-1, start_s=0.0, host=host, **sums)

    @cached_property
    def collectives(self) -> tuple[CollectiveTime, ...]:
        """The collectives of a step, those with most exposed time first."""
        n = (len(self._averaged) or 1) * (len(self._whole_spans) or 1)
        seconds: dict[str, list[float]] = {}
        for events in self._averaged.values():
            compute = [(e.start_s, e.end_s) for e in events if self.trace.ops[e.op].kind != COLLECTIVE]
            computing = merged(compute)
            for e in events:
                op = self.trace.ops[e.op]
                if op.kind == COLLECTIVE:
                    hidden = overlap(computing, (e.start_s, e.end_s))
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
        parts = [split(self.trace, events, span) for span in self._whole_spans]
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
        n = (len(self._averaged) or 1) * (len(self._whole_spans) or 1)
        gaps: list[float] = []
        for events in self._averaged.values():
            for span in self._whole_spans:
                inside = clipped([(e.start_s, e.end_s) for e in events], span)
                gaps += [gap for gap in pauses(inside) if gap <= SHORT_GAP_S]
        count = sum(len(events) for events in self._averaged.values())
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
            f"{pluralize(n, 'step')} of {si(self.step_s, 's')} on {self._devices}; "
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
        third = pluralize(len(found), "lever")
        third += (
            f"; the first: {found[0].rule}, at most {si(found[0].saved_s, 's')} per step" if found else ""
        )
        return first, second, third if found else "No lever larger than 2% of a step"

    @property
    def _devices(self) -> str:
        t = self.trace
        if t.simulated:
            return pluralize(t.devices, "CPU device")
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
            "mean_step": mean.values,
            "steps": [step.values for step in self.steps],
            "compilations": len(t.compilations),
            "operations": [self._operation_values(row) for row in self.operations],
            "collectives": [one.values for one in self.collectives],
            "launches": self.gaps.values,
            "workers": [one.values for one in self.workers],
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
