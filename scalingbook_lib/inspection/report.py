"""The report on a program: what a run costs, and the findings, as text and as plain values."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scalingbook_lib.hlo.text_table import text_table
from scalingbook_lib.inspection.findings import Finding, findings
from scalingbook_lib.inspection.limits import Limits
from scalingbook_lib.inspection.program import InspectedProgram, PlacedKernel, PlacedTransfer
from scalingbook_lib.inspection.transfer_group import TransferGroup, group
from scalingbook_lib.notation import format_sizes
from scalingbook_lib.units import Result, binary, percent, si
from scalingbook_lib.words import pluralize

FIRST = 5  # findings that a reviewer would raise
MOST_KERNELS = 10


@dataclass(frozen=True, kw_only=True)
class ProgramReport(Result):
    """An inspected program, the limits that it breaks, and everything that can be said about it."""

    program: InspectedProgram
    limits: Limits

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What a reviewer would say, the most expensive first."""
        return findings(self.program)

    @cached_property
    def broken(self) -> tuple[str, ...]:
        """The limits that the program exceeds, a sentence each."""
        return self.limits.broken(self.program)

    @cached_property
    def transfers(self) -> tuple[TransferGroup, ...]:
        """The collectives by kind, axes, size, schedule and line, those with most exposed time first."""

        def row(t: PlacedTransfer) -> Hashable:
            c = t.collective
            return c.shift, c.dtype, c.nbytes, t.schedule, tuple(loop.trips for loop in t.loops), t.line

        rows = group(self.program.transfers, row)
        return tuple(sorted(rows, key=lambda row: (-row.exposed_s, -row.received_bytes)))

    @cached_property
    def kernels(self) -> tuple[PlacedKernel, ...]:
        """The kernels, the slowest first; in the order of the program if there are no times."""
        return tuple(sorted(self.program.kernels, key=lambda k: -k.seconds))

    @property
    def title(self) -> str:
        """The program, its machine and its mesh."""
        source, machine = self.program.source, self.program.hardware.machine
        mesh = f", {format_sizes(source.mesh)}" if source.devices > 1 else ""
        n, kind = source.devices, source.platform.upper()
        on = (
            machine.name
            if machine
            else " ".join(filter(None, (f"{n:,}", kind, "devices" if n > 1 else "device")))
        )
        return f"{source.name} on {on}{mesh}"

    @property
    def summary(self) -> tuple[str, str, str]:
        """Three lines: the time of a run, its memory and FLOPs, and the first finding."""
        p = self.program
        if p.run_s and p.transfers and not p.hardware.laid:
            time = f"estimated {si(p.run_s, 's')} of compute per run; transfers have no times"
        elif p.run_s:
            time = f"estimated {si(p.run_s, 's')} per run, {percent(p.exposed_share)} exposed communication"
        else:
            n = len(p.transfers)
            why = "the mesh does not fit" if p.hardware.machine else "no machine is named"
            time = f"{pluralize(n, 'collective')} in the text; no times, because {why}"
        capacity = p.hardware.hbm_bytes
        of = f" of {binary(capacity)}" if capacity else ""
        useful = p.work.useful_share
        needed = f", of which the model needs {percent(useful)}" if useful is not None else ""
        memory = (
            f"{binary(p.memory.peak)}{of} per device{' (estimated)' * p.memory.estimated}; {p.work}{needed}"
        )
        n = len(self.findings)
        first = f"; the first: {self.findings[0].rule}" if n else ""
        found = f"{pluralize(n, 'finding')}{first}" if n else "No findings"
        return f"{self.title}: {time}", f"Memory {memory}", found

    @property
    def values(self) -> dict[str, Any]:
        """Everything as plain values for JSON, in base units."""
        p = self.program
        need, work = p.work.need, p.work
        timed = p.run_s and (p.hardware.laid or not p.transfers)
        return {
            "program": p.source.name,
            "platform": p.source.platform or None,
            "machine": p.hardware.machine.name if p.hardware.machine else None,
            "devices": p.source.devices,
            "mesh": dict(p.source.mesh),
            "estimated_run_s": p.run_s or None,
            "exposed_s": p.exposed_s if timed else None,
            "exposed_share": p.exposed_share if timed else None,
            "flops": {
                "device_flops": work.flops,
                "recomputed_flops": work.recomputed,
                "padding_flops": work.padded,
                "lower_bound": work.at_least,
                "needed_device_flops": need.device_flops if need else None,
                "useful_share": work.useful_share,
            },
            "memory": {
                "peak_bytes": p.memory.peak,
                "hbm_bytes": p.hardware.hbm_bytes,
                "arguments_bytes": p.memory.arguments,
                "outputs_bytes": p.memory.outputs,
                "temporaries_bytes": p.memory.temporaries,
                "aliased_bytes": p.memory.aliased,
                "estimated": p.memory.estimated,
                "largest": [
                    {"name": b.name, "type": b.type, "bytes": b.nbytes, "scope": b.source}
                    for b in p.memory.largest
                ],
            },
            "collectives": [_transfer_values(row) for row in self.transfers],
            "kernels": [_kernel_values(k) for k in self.kernels],
            "findings": [finding_values(f) for f in self.findings],
            "not_counted": [one.message for one in p.not_counted],
            "notes": list(p.source.notes),
            "broken_limits": list(self.broken),
        }

    def __str__(self) -> str:
        parts = ["\n".join(self.summary)]
        parts += [f"{n}. {one}\n   {one.section}" for n, one in enumerate(self.findings[:FIRST], 1)]
        if rows := [*_transfer_lines(self.transfers)]:
            head = ("collective", "axes", "array", "schedule", "times", "received")
            parts.append(text_table([head, *rows]))
        parts.append(str(self.program.memory))
        parts += [f"limit exceeded: {one}" for one in self.broken]
        return "\n\n".join(parts)


def _transfer_lines(rows: Iterable[TransferGroup]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        c = row.first.collective
        times = "≥ 1" if row.times is None else f"{row.times:,}"
        array = f"{c.dtype} {si(c.nbytes, 'B')}"
        yield c.kind, c.over, array, row.first.schedule, times, si(row.received_bytes, "B")


def _transfer_values(row: TransferGroup) -> dict[str, Any]:
    c = row.first.collective
    timed = row.seconds > 0
    return {
        "kind": c.kind,
        "axes": c.axes,
        "shift": c.shift,
        "dtype": c.dtype,
        "array_bytes": c.nbytes,
        "devices": c.devices,
        "times": row.times,
        "loop_trips": [loop.trips for loop in row.first.loops],
        "received_bytes": row.received_bytes,
        "schedule": row.first.schedule,
        "transfer_s": row.seconds if timed else None,
        "exposed_s": row.exposed_s if timed else None,
        "line": row.first.line or None,
        "instructions": [t.move.name for t in row.transfers],
    }


def _kernel_values(k: PlacedKernel) -> dict[str, Any]:
    return {
        "name": k.kernel.name,
        "kind": k.kernel.kind,
        "times": k.times,
        "flops": k.kernel.flops,
        "hbm_bytes": k.kernel.nbytes,
        "cycles": k.kernel.cycles or None,
        "total_s": k.seconds or None,
        "roofline_s": k.roofline_s or None,
        "roofline_share": k.fraction,
        "line": k.line or None,
    }


def finding_values(f: Finding) -> dict[str, Any]:
    """A finding as plain values."""
    return {
        "rule": f.rule,
        "message": f.message,
        "advice": f.advice,
        "section": f.section.path,
        "severity": f.severity,
        "saved_s": f.saved_s or None,
        "saved_bytes": f.saved_bytes or None,
        "places": list(f.places),
        "lines": list(f.lines),
    }
