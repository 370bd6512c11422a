"""What ran on which device, when and for how long? A recorded profile as a table.

`trace` records and reads profiles; a `Trace` is plain values. Loaded from its small file it needs no JAX.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scalingbook_lib.lab.compiler import scopes
from scalingbook_lib.lab.compiler.hlo import table
from scalingbook_lib.lab.profiler import times
from scalingbook_lib.lab.profiler.times import Event
from scalingbook_lib.units import Result, percent, si

COLLECTIVE, LOOP, COMPILE = "collective", "loop", "compile"
EXPECTED = "expected"  # in the place of a platform: nothing was run
SHOWN = 12  # rows of a printed table


@dataclass(frozen=True, slots=True)
class Op(Result):
    """An operation of a compiled program: what it is, and what one run of it does on one device.

    `source` is the path of named scopes that wrote it. FLOPs are those of its matmuls, bytes what it reads
    and writes, unpadded; None where the program's text was not at hand.
    """

    name: str
    kind: str  # matmul, elementwise, copy, collective, loop; kernel: what is in it is not known
    module: str = ""
    source: str = ""
    flops: int | None = None
    nbytes: int | None = None
    moves: str = ""  # of a collective: 'all-reduce over X of 1.05 MB'

    @property
    def scope(self) -> str:
        """The named scopes that wrote it: 'up', 'loop/up backward'."""
        return "/".join(scopes.named(self.source))

    def __str__(self) -> str:
        return self.moves or f"{self.kind} {self.name}" + (f" in {self.scope}" if self.scope else "")


class Moment(NamedTuple):
    """What the host did meanwhile: a compilation, or a step that was marked."""

    name: str
    start_s: float
    took_s: float


@dataclass(frozen=True, slots=True)
class OperationRow(Result):
    """An operation in the mean over runs and devices; `share` is of all that devices were busy with."""

    op: Op
    times: float
    own_s: float
    least_s: float
    share: float

    def __str__(self) -> str:
        return f"{self.op}: {si(self.own_s, 's')} a run, {percent(self.share)}"


@dataclass(frozen=True)
class Trace(Result):
    """A recorded profile. `warmup`: how many calls went before it; None where a block ran as it was."""

    title: str
    platform: str  # cpu, gpu, tpu, expected
    kind: str
    devices: int
    simulated: bool
    warmup: int | None
    versions: str
    ops: tuple[Op, ...]
    events: tuple[Event, ...]
    host: tuple[Moment, ...] = ()
    folder: str = field(default="", repr=False, compare=False)

    @property
    def runs(self) -> int:
        """How often the program ran."""
        return 1 + max((e.run for e in self.events), default=-1)

    @property
    def compilations(self) -> tuple[Moment, ...]:
        """When the host compiled something: a program that has run before should need none."""
        return tuple(m for m in self.host if m.name == COMPILE)

    @property
    def run_s(self) -> float:
        """The time of a run, from the first operation of any device to the last: the median."""
        return statistics.median(end - start for start, end in self._spans.values()) if self.events else 0.0

    @cached_property
    def _spans(self) -> dict[int, tuple[float, float]]:
        spans: dict[int, tuple[float, float]] = {}
        for e in self.events:
            start, end = spans.get(e.run, (e.start_s, e.end_s))
            spans[e.run] = min(start, e.start_s), max(end, e.end_s)
        return spans

    def span(self, run: int) -> tuple[float, float]:
        """When a run began and ended; run -1 is the last."""
        if not -self.runs <= run < self.runs:
            raise ValueError(f"there is no run {run}; {self.title!r} has {self.runs}, counted from 0")
        return self._spans[run % self.runs]

    @cached_property
    def rows(self) -> tuple[OperationRow, ...]:
        """Every operation, the one that took longest first."""
        pairs = len({(e.device, e.run) for e in self.events})
        busy = sum(e.own_s for e in self.events) or 1.0
        own: dict[int, list[float]] = {}
        for e in self.events:
            own.setdefault(e.op, []).append(e.own_s)
        found = (
            OperationRow(self.ops[op], len(s) / pairs, sum(s) / pairs, min(s), sum(s) / busy)
            for op, s in own.items()
        )
        return tuple(sorted(found, key=lambda row: (-row.own_s, row.op.name)))

    def of(self, words: str) -> tuple[OperationRow, ...]:
        """The rows of a named scope, an operation's name or a collective: `of("up")`, `of("all-reduce")`."""
        return tuple(r for r in self.rows if words in f"{r.op.scope} {r.op.name} {r.op.moves}")

    def by(self, what: str = "kind") -> dict[str, float]:
        """Seconds a run and device by 'kind', 'scope', 'name' or 'module', the largest first."""
        total: dict[str, float] = {}
        for row in self.rows:
            key = getattr(row.op, what)
            total[key] = total.get(key, 0.0) + row.own_s
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def collectives(self) -> dict[str, float]:
        """How often each collective runs, by what it moves."""
        found: dict[str, float] = {}
        for row in self.rows:
            if row.op.kind == COLLECTIVE:
                key = row.op.moves or row.op.name
                found[key] = found.get(key, 0) + row.times
        return found

    @cached_property
    def lanes(self) -> times.Lanes:
        """How a device spends a run in the mean: computing, communicating, both at once, neither."""
        moves = [None if op.kind == LOOP else op.kind == COLLECTIVE for op in self.ops]
        return times.lanes(self.events, moves, self._spans)

    @property
    def where(self) -> str:
        """The devices, and what of the figures is real."""
        if self.platform == EXPECTED:
            return f"{self.kind}: cycles by its compiler, transfers by the formulas; nothing was run"
        if not self.simulated:
            return f"{self.devices} × {self.kind}"
        plural = "s" if self.devices > 1 else ""
        return (
            f"{self.devices} CPU device{plural} on one machine: durations and counts are real, "
            "rates say nothing about an accelerator"
        )

    @property
    def warmed(self) -> str:
        """What went before: calls to warm up, compilations within."""
        n = len(self.compilations)
        compiled = f"{n} compilation{'s' * (n != 1)} within" if n else "nothing compiled within"
        if self.warmup is None:
            return compiled
        return f"{self.warmup} call{'s' * (self.warmup != 1)} before to warm up, {compiled}"

    def __str__(self) -> str:
        expected = f"{si(self.run_s, 's')} a run expected"
        runs = f"{self.runs} run{'s' * (self.runs != 1)}, {si(self.run_s, 's')} each ({self.warmed})"
        runs = expected if self.platform == EXPECTED else runs
        return f"{self.title}: {runs}\n{self.where}\n{shown(self.rows)}"


def shown(rows: Sequence[OperationRow], most: int = SHOWN) -> str:
    """The first rows as a table of text."""
    head = ("operation", "what", "scope", "times", "time a run", "share")
    lines = [
        (r.op.name, r.op.moves or r.op.kind, r.op.scope, f"{r.times:.3g}", si(r.own_s, "s"), percent(r.share))
        for r in rows[:most]
    ]
    rest = rows[most:]
    share = percent(sum(row.share for row in rest))
    return table([head, *lines]) + (f"\n... and {len(rest)} more, {share} together" if rest else "")
