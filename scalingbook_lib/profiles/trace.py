"""A profile as a table: which operation ran on which device, when, and for how long.

A `Trace` holds plain values. `files` stores and loads it, `xplane` reads it from a profiler's file, and
`expected` derives one from a compiled program.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scalingbook_lib.hlo import scopes
from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.profiles import intervals
from scalingbook_lib.profiles.intervals import Event
from scalingbook_lib.units import Result, percent, si
from scalingbook_lib.words import pluralize

COLLECTIVE, LOOP, COMPILE = "collective", "loop", "compile"
EXPECTED = "expected"  # instead of a platform: nothing was run
SHOWN = 12  # rows of a printed table


@dataclass(frozen=True, slots=True)
class Op(Result):
    """An operation of a compiled program, and what one run of it does on one device.

    `source` is its `op_name`, the path of named scopes. `flops` are those of its matmuls; `nbytes` is what it
    reads and writes, unpadded. Both are None if the program's text was not available.
    """

    name: str
    kind: str  # matmul, elementwise, copy, collective, loop, or kernel if its contents are unknown
    module: str = ""
    source: str = ""
    flops: int | None = None
    nbytes: int | None = None
    moves: str = ""  # of a collective: 'all-reduce over X of 1.05 MB'

    @property
    def scope(self) -> str:
        """The named scopes that the operation comes from: 'up', 'loop/up backward'."""
        return "/".join(scopes.scope_names(self.source))

    def __str__(self) -> str:
        return self.moves or f"{self.kind} {self.name}" + (f" in {self.scope}" if self.scope else "")


class HostEvent(NamedTuple):
    """An event on the host: a compilation, or a step that was annotated."""

    name: str
    start_s: float
    duration_s: float

    @property
    def end_s(self) -> float:
        """The time at which it ended, in seconds since the start of the trace."""
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True)
class OperationRow(Result):
    """An operation in a run: `times` on average, `self_s` in the median run, as in `Trace.run_s`.

    Both are averages over the devices. `min_s` is its shortest event, and `share` the fraction of `self_s` in
    the sum over all operations.
    """

    op: Op
    times: float
    self_s: float
    min_s: float
    share: float

    def __str__(self) -> str:
        return f"{self.op}: {si(self.self_s, 's')} per run, {percent(self.share)}"


@dataclass(frozen=True)
class Trace(Result):
    """A profile: its operations, their events, and the devices on which they ran.

    `warmup` is the number of calls before the profile; None if a block of code was profiled as it ran.
    """

    title: str
    platform: str  # cpu, gpu, tpu, expected
    kind: str
    devices: int
    simulated: bool
    warmup: int | None
    versions: str
    ops: tuple[Op, ...]
    events: tuple[Event, ...]
    host: tuple[HostEvent, ...] = ()
    folder: str = field(default="", repr=False, compare=False)

    @property
    def runs(self) -> int:
        """The number of runs of the program."""
        return 1 + max((e.run for e in self.events), default=-1)

    @property
    def compilations(self) -> tuple[HostEvent, ...]:
        """The compilations on the host; a program that has run before should need none."""
        return tuple(m for m in self.host if m.name == COMPILE)

    @property
    def run_s(self) -> float:
        """The median time of a run in seconds, from the first operation of any device to the last."""
        return statistics.median(end - start for start, end in self._spans.values()) if self.events else 0.0

    @cached_property
    def _spans(self) -> dict[int, tuple[float, float]]:
        """The start and end of each run in seconds."""
        spans: dict[int, tuple[float, float]] = {}
        for e in self.events:
            start, end = spans.get(e.run, (e.start_s, e.end_s))
            spans[e.run] = min(start, e.start_s), max(end, e.end_s)
        return spans

    def span(self, run: int) -> tuple[float, float]:
        """The start and end of a run in seconds; run -1 is the last.

        Raises a ValueError if there is no such run.
        """
        if not -self.runs <= run < self.runs:
            raise ValueError(f"there is no run {run}; {self.title!r} has {self.runs} run(s), numbered from 0")
        return self._spans[run % self.runs]

    @cached_property
    def rows(self) -> tuple[OperationRow, ...]:
        """Every operation, in descending order of self time."""
        pairs = len({(e.device, e.run) for e in self.events})
        events: dict[int, list[Event]] = {}
        for e in self.events:
            events.setdefault(e.op, []).append(e)
        seconds = {op: self._median_s(op, own) for op, own in events.items()}
        busy_s = sum(seconds.values()) or 1.0
        found = (
            OperationRow(
                self.ops[op],
                times=len(own) / pairs,
                self_s=seconds[op],
                min_s=min(e.self_s for e in own),
                share=seconds[op] / busy_s,
            )
            for op, own in events.items()
        )
        return tuple(sorted(found, key=lambda row: (-row.self_s, row.op.name)))

    def _median_s(self, op: int, own: Sequence[Event]) -> float:
        """The self time of an operation in the median run of its program, averaged over devices.

        A mean would be longer than the median run if one run, for example the first, took long.
        """
        runs = self._devices_of[self.ops[op].module]
        seconds = dict.fromkeys(runs, 0.0)
        for e in own:
            seconds[e.run] += e.self_s / runs[e.run]
        return statistics.median(seconds.values())

    @cached_property
    def _devices_of(self) -> dict[str, dict[int, int]]:
        """By program and run, the number of devices on which the program ran."""
        found: dict[str, dict[int, set[int]]] = {}
        for e in self.events:
            runs = found.setdefault(self.ops[e.op].module, {})
            runs.setdefault(e.run, set()).add(e.device)
        return {
            module: {run: len(devices) for run, devices in runs.items()} for module, runs in found.items()
        }

    def of(self, words: str) -> tuple[OperationRow, ...]:
        """The rows of a named scope, an operation or a collective: `of("up")`, `of("all-reduce")`."""
        return tuple(r for r in self.rows if words in f"{r.op.scope} {r.op.name} {r.op.moves}")

    def by(self, attribute: str = "kind") -> dict[str, float]:
        """The self time in seconds per run and device, by 'kind', 'scope', 'name' or 'module'.

        The largest time is first.
        """
        total: dict[str, float] = {}
        for row in self.rows:
            key = getattr(row.op, attribute)
            total[key] = total.get(key, 0.0) + row.self_s
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def collectives(self) -> dict[str, float]:
        """How often each collective runs, by the array that it moves."""
        found: dict[str, float] = {}
        for row in self.rows:
            if row.op.kind == COLLECTIVE:
                key = row.op.moves or row.op.name
                found[key] = found.get(key, 0) + row.times
        return found

    @cached_property
    def breakdown(self) -> intervals.Breakdown:
        """The compute, communication, overlap and idle time of a device in an average run."""
        communicates = [None if op.kind == LOOP else op.kind == COLLECTIVE for op in self.ops]
        return intervals.breakdown(self.events, communicates, self._spans)

    @property
    def provenance(self) -> str:
        """The devices, and which of the numbers are measured."""
        if self.platform == EXPECTED:
            return (
                f"{self.kind}: cycles estimated by its compiler, transfers by the formulas; nothing was run"
            )
        if not self.simulated:
            return f"{self.devices} × {self.kind}"
        plural = "s" if self.devices > 1 else ""
        return (
            f"{self.devices} CPU device{plural} on one machine: durations and counts are real, "
            "rates do not apply to an accelerator"
        )

    @property
    def warmup_note(self) -> str:
        """The number of warm-up calls, and the number of compilations within the profile."""
        n = len(self.compilations)
        compiled = f"{pluralize(n, 'compilation')} within" if n else "nothing compiled within"
        if self.warmup is None:
            return compiled
        return f"{pluralize(self.warmup, 'call')} for warm-up, {compiled}"

    def __str__(self) -> str:
        expected = f"{si(self.run_s, 's')} per run expected"
        runs = f"{pluralize(self.runs, 'run')}, {si(self.run_s, 's')} each ({self.warmup_note})"
        runs = expected if self.platform == EXPECTED else runs
        return f"{self.title}: {runs}\n{self.provenance}\n{format_rows(self.rows)}"


def format_rows(rows: Sequence[OperationRow], limit: int = SHOWN) -> str:
    """The first `limit` rows as a table of text."""
    head = ("operation", "what", "scope", "times", "time per run", "share")
    lines = [
        (
            r.op.name,
            r.op.moves or r.op.kind,
            r.op.scope,
            f"{r.times:.3g}",
            si(r.self_s, "s"),
            percent(r.share),
        )
        for r in rows[:limit]
    ]
    rest = rows[limit:]
    share = percent(sum(row.share for row in rest))
    return text_table([head, *lines]) + (f"\n... and {len(rest)} more, {share} together" if rest else "")
