"""The answer of `scalingbook inspect`: the summary, findings, and tables of a report on a program."""

from collections.abc import Hashable, Iterable, Iterator

from scalingbook_cli.answer import Answer, DerivationLine, TextTable, figure
from scalingbook_lib.inspection import Finding, ProgramReport, ReportComparison
from scalingbook_lib.inspection.program import PlacedTransfer
from scalingbook_lib.inspection.report import FIRST, MOST_KERNELS
from scalingbook_lib.inspection.transfer_group import group
from scalingbook_lib.units import binary, percent, si

MOST_TRANSFERS, MOST_NAME = 16, 24
LINE_WIDTH = 100


def answer(report: ProgramReport, *, notes: Iterable[str] = ()) -> Answer:
    """The report on a program as the answer of a command; `notes` say how the program was read."""
    notes = (*notes, *report.program.source.notes)
    broken = report.broken
    return Answer(
        summary="\n".join(short(report.summary)),
        tables=(
            *limits_table(broken),
            *findings_table(report.findings),
            *_transfers(report),
            _memory(report),
            *_kernels(report),
            _work(report),
            *_notes(report, notes),
        ),
        values=report.values | {"notes": list(notes)},
        steps=tuple(_derivation(report)),
        limit_exceeded=bool(broken),
    )


def comparison(found: ReportComparison, report: ProgramReport, *, notes: Iterable[str] = ()) -> Answer:
    """The comparison with an old program as an answer."""
    broken = report.broken
    changed = [one for one in found.values if one.before != one.after]
    largest = max(changed, key=lambda one: min(abs(one.change), 1e9), default=None)
    first = f"Largest change: {largest}" if largest else "No total changed"
    rows = [(one.name, one.written(one.before), one.written(one.after), one.signed) for one in found.values]
    collectives = [
        (c.name, f"{c.times_before:,}", f"{c.times_after:,}", si(c.bytes_before, "B"), si(c.bytes_after, "B"))
        for c in found.collectives
    ]
    findings = [("no longer", one) for one in found.fixed] + [("new", one) for one in found.added]
    columns = ("collective", "times before", "after", "received before", "after")
    return Answer(
        summary="\n".join(
            (
                f"{report.title}, compared with the old program",
                first,
                f"findings: {len(found.fixed)} of the old program's are gone, {len(found.added)} are new",
            )
        ),
        tables=(
            *limits_table(broken),
            TextTable("Totals", ("", "before", "after", "change"), tuple(rows)),
            *([TextTable("Collectives that changed", columns, tuple(collectives))] if collectives else []),
            *([TextTable("Findings", ("", "finding"), tuple(findings), words=(0, 1))] if findings else []),
            *_notes(report, notes),
        ),
        values={"comparison": found.as_values, "broken_limits": list(broken), "notes": list(notes)},
        limit_exceeded=bool(broken),
    )


def short(lines: Iterable[str]) -> Iterator[str]:
    """Lines of at most 100 characters; a long one is shortened at a semicolon or a comma."""
    for line in lines:
        while len(line) > LINE_WIDTH and ("; " in line or ", " in line):
            line = line.rpartition("; " if "; " in line else ", ")[0]
        yield line


def limits_table(broken: tuple[str, ...]) -> Iterator[TextTable]:
    """The limits that are exceeded."""
    if broken:
        yield TextTable("Limits exceeded", ("",), tuple((one[0].upper() + one[1:],) for one in broken))


def findings_table(
    found: tuple[Finding, ...], limit: int = FIRST, *, title: str = "Findings"
) -> Iterator[TextTable]:
    """The first findings: what is wrong, what to change, what that saves, and where to read about it."""
    if not found:
        return
    rows = []
    for n, one in enumerate(found[:limit], 1):
        lines = f" [{', '.join(one.lines[:2])}]" if one.lines else ""
        section = f"{one.section.page}#{one.section.anchor}"
        rows.append(
            (
                f"{n}",
                f"{one.message}{lines}.\n{one.advice}.\nBook: {one.section.title} ({section})",
                saved(one),
            )
        )
    more = f", the first {limit} of {len(found)}" if len(found) > limit else ""
    yield TextTable(f"{title}{more}", ("", "finding", "saves\nat most"), tuple(rows), words=(0, 1))


def saved(one: Finding) -> str:
    """What a change saves at most: seconds of a run, or bytes of a device."""
    if one.saved_s:
        return si(one.saved_s, "s")
    return binary(one.saved_bytes) if one.saved_bytes else ""


def _transfers(report: ProgramReport) -> Iterator[TextTable]:
    """The rows of the report, with those that differ only in their line of Python added up."""

    def row(t: PlacedTransfer) -> Hashable:
        c = t.collective
        return c.shift, c.dtype, c.nbytes, t.schedule, tuple(loop.trips for loop in t.loops)

    groups = group((t for one in report.transfers for t in one.transfers), row)
    if not groups:
        return
    timed = any(one.seconds for one in groups)
    lines = []
    for one in groups[:MOST_TRANSFERS]:
        c = one.first.collective
        times = "≥ 1" if one.times is None else f"{one.times:,}"
        array, received = f"{c.dtype} {si(c.nbytes, 'B')}", si(one.received_bytes, "B")
        exposed = (si(one.exposed_s, "s"),) if timed else ()
        lines.append((c.kind, c.over, array, one.trips, times, received, one.first.schedule, *exposed))
    columns = ("collective", "axes", "array", "loops", "times", "received", "schedule")
    columns = (*columns, *(("exposed",) if timed else ()))
    more = f", {len(lines)} of {len(groups)} rows" if len(groups) > len(lines) else ""
    yield TextTable(f"Collectives of one run{more}", columns, tuple(lines), words=(0, 1, 2, 6))


def _memory(report: ProgramReport) -> TextTable:
    """The peak by source, then the largest temporaries that are live at it."""
    memory, limit = report.program.memory, report.program.hardware.hbm_bytes
    rows = [
        (name, binary(nbytes), percent(nbytes / memory.peak if memory.peak else 0))
        for name, nbytes in memory.terms.items()
    ]
    rows.append(("peak", binary(memory.peak), ""))
    if memory.aliased:
        rows.append(("outputs in donated arguments", binary(memory.aliased), ""))
    if limit:
        rows.append(("memory of a device", binary(limit), ""))
    rows += [(f"  {b.type} {b.name}", binary(b.nbytes), "") for b in memory.largest[:4]]
    how = ", temporaries estimated from the text" if memory.estimated else ""
    return TextTable(f"Memory of one device at the peak{how}", ("source", "bytes", "share"), tuple(rows))


def _kernels(report: ProgramReport) -> Iterator[TextTable]:
    """The slowest kernels compared with their rooflines."""
    found = [k for k in report.kernels if k.seconds or k.kernel.flops][:MOST_KERNELS]
    if not found:
        return
    timed = any(k.seconds for k in found)
    total = sum(k.seconds for k in report.kernels)
    rows = []
    for k in found:
        times = "≥ 1" if k.times is None else f"{k.times:,}"
        work = (si(k.kernel.flops, "") if k.kernel.flops else "", si(k.kernel.nbytes, "B"))
        cycles = f"{k.kernel.cycles:,}" if k.kernel.cycles else ""
        fraction = percent(k.fraction) if k.fraction is not None else ""
        time = (cycles, si(k.seconds, "s"), fraction) if timed else ()
        rows.append((_short(k.kernel.name), times, *work, *time, _short(k.line)))
    columns = ("kernel", "times", "FLOPs", "bytes")
    columns = (*columns, *(("cycles", "time", "roofline") if timed else ()), "line")
    estimated = any(k.kernel.cycles for k in found)
    share = percent(sum(k.seconds for k in found) / total) if timed and total else ""
    source = "estimated by the compiler" if estimated else "at their rooflines"
    how = f" ({share} of the compute time, {source})" if share else ""
    yield TextTable(f"Slowest kernels{how}", columns, tuple(rows), words=(0, len(columns) - 1))


def _short(name: str) -> str:
    """A name with an ellipsis in the middle if it is long."""
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 9]}…{name[-8:]}"


def _work(report: ProgramReport) -> TextTable:
    work = report.program.work
    bound = "≥ " if work.at_least else ""
    rows = [("of the program", f"{bound}{si(work.flops, 'FLOPs')}", "")]
    if work.need:
        rows.append(
            (
                "that the model needs",
                si(work.need.device_flops, "FLOPs"),
                _share(work.need.device_flops, work.flops),
            )
        )
    rows.append(("recomputed", si(work.recomputed, "FLOPs"), _share(work.recomputed, work.flops)))
    rows.append(("added by padding", si(work.padded, "FLOPs"), _share(work.padded, work.flops)))
    return TextTable("Matmul FLOPs of one device", ("", "FLOPs", "share"), tuple(rows))


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else ""


def _notes(report: ProgramReport, notes: Iterable[str]) -> Iterator[TextTable]:
    """How the program was read, and what its text does not reveal."""
    told = [*notes, *(one.message for one in report.program.not_counted)]
    if told:
        yield TextTable("Notes", ("",), tuple((one[0].upper() + one[1:],) for one in told))


def _derivation(report: ProgramReport) -> Iterator[DerivationLine]:
    """How the totals follow from the tables."""
    p = report.program
    if p.run_s:
        compute = sum(k.seconds for k in p.kernels)
        yield DerivationLine(
            "time of a run", "kernels + exposed communication", f"{figure(compute)} + {figure(p.exposed_s)}",
            p.run_s, "s",
        )  # fmt: skip
    memory = p.memory
    yield DerivationLine(
        "peak of memory",
        " + ".join(memory.terms),
        " + ".join(map(figure, memory.terms.values())),
        memory.peak,
        "B",
    )
    yield DerivationLine(
        "FLOPs",
        "2 · outputs · terms of each matmul, loops included",
        "counted from the text",
        p.work.flops,
        "FLOPs",
    )
    if need := p.work.need:
        yield DerivationLine(
            "FLOPs that the model needs",
            f"those of {need.tokens:,} tokens in sequences of {need.sequence:,}, over all devices",
            f"{figure(need.flops)} / {need.devices:,}",
            need.device_flops,
            "FLOPs",
        )
