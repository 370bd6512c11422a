"""Compares two reports of a program: times, memory, FLOPs, collectives and findings that changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scalingbook_lib.inspection.report import ProgramReport
from scalingbook_lib.inspection.transfer_group import group
from scalingbook_lib.units import Result, binary, percent, si

SAME = 0.005  # relative: smaller changes of a total are not listed


@dataclass(frozen=True, slots=True)
class ChangedValue(Result):
    """One total before and after, with its unit: 's', 'B' or 'FLOPs'."""

    name: str
    before: float
    after: float
    unit: str

    @property
    def change(self) -> float:
        """The relative change; infinite for something that was 0."""
        if self.before == self.after:
            return 0.0
        return self.after / self.before - 1 if self.before else float("inf")

    def __str__(self) -> str:
        return f"{self.name}: {self.written(self.before)} to {self.written(self.after)} ({self.signed})"

    def written(self, value: float) -> str:
        """A value with its unit."""
        return binary(value) if self.unit == "B" else si(value, self.unit)

    @property
    def signed(self) -> str:
        """The change with its sign, in percent; 'new' for what was 0 before, 'none' without a change."""
        if self.change == 0:
            return "none"
        if self.change == float("inf"):
            return "new"
        return f"{'+' if self.change > 0 else '-'}{percent(abs(self.change))}"


@dataclass(frozen=True, slots=True)
class ChangedCollective(Result):
    """The runs and the received bytes of a kind of collective over its axes, before and after."""

    name: str
    times_before: int
    times_after: int
    bytes_before: float
    bytes_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportComparison(Result):
    """What changed from an old program to a new one."""

    values: tuple[ChangedValue, ...]
    collectives: tuple[ChangedCollective, ...]
    fixed: tuple[str, ...]
    added: tuple[str, ...]

    def __str__(self) -> str:
        lines = [str(one) for one in self.values if abs(one.change) > SAME] or ["no total changed"]
        lines += [
            f"{c.name}: {c.times_before:,} to {c.times_after:,} times, {si(c.bytes_before, 'B')} to "
            f"{si(c.bytes_after, 'B')}"
            for c in self.collectives
        ]
        lines += [f"no longer found: {one}" for one in self.fixed]
        return "\n".join([*lines, *(f"new finding: {one}" for one in self.added)])

    @property
    def as_values(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return {
            "values": [
                {"name": v.name, "before": v.before, "after": v.after, "unit": v.unit} for v in self.values
            ],
            "collectives": [
                {
                    "name": c.name,
                    "times_before": c.times_before,
                    "times_after": c.times_after,
                    "received_bytes_before": c.bytes_before,
                    "received_bytes_after": c.bytes_after,
                }
                for c in self.collectives
            ],
            "fixed_findings": list(self.fixed),
            "new_findings": list(self.added),
        }


def compare(old: ProgramReport, new: ProgramReport) -> ReportComparison:
    """Compare an old report with a new one, of the same program or of two that do the same."""
    before, after = ({f.subject: f for f in report.findings} for report in (old, new))
    return ReportComparison(
        values=tuple(_values(old, new)),
        collectives=tuple(_collectives(old, new)),
        fixed=tuple(f"{f.rule}: {f.message}" for subject, f in before.items() if subject not in after),
        added=tuple(f"{f.rule}: {f.message}" for subject, f in after.items() if subject not in before),
    )


def _values(old: ProgramReport, new: ProgramReport) -> Iterator[ChangedValue]:
    one, other = old.program, new.program
    if one.run_s and other.run_s:
        yield ChangedValue("time of a run", one.run_s, other.run_s, "s")
        yield ChangedValue("exposed communication", one.exposed_s, other.exposed_s, "s")
    yield ChangedValue("peak of memory", one.memory.peak, other.memory.peak, "B")
    for name, nbytes in one.memory.terms.items():
        yield ChangedValue(name, nbytes, other.memory.terms[name], "B")
    yield ChangedValue("FLOPs", one.work.flops, other.work.flops, "FLOPs")
    yield ChangedValue("recomputed FLOPs", one.work.recomputed, other.work.recomputed, "FLOPs")
    before, after = (sum(t.received_bytes for t in p.transfers) for p in (one, other))
    yield ChangedValue("received bytes", before, after, "B")


def _collectives(old: ProgramReport, new: ProgramReport) -> Iterator[ChangedCollective]:
    before, after = (_by_kind(report) for report in (old, new))
    for name in dict.fromkeys([*before, *after]):
        (times, nbytes), (more_times, more_bytes) = before.get(name, (0, 0.0)), after.get(name, (0, 0.0))
        if times != more_times or abs(nbytes - more_bytes) > SAME * max(nbytes, more_bytes):
            yield ChangedCollective(name, times, more_times, nbytes, more_bytes)


def _by_kind(report: ProgramReport) -> dict[str, tuple[int, float]]:
    """The runs and the received bytes of each kind of collective over its axes."""
    groups = group(report.program.transfers)
    return {one.first.collective.kind_and_axes: (one.runs, one.received_bytes) for one in groups}
