"""The report of `inspect` and `profile` as HTML: findings with links, drawings, and tables.

`fragment` is what the site's page shows, and `page` is a whole file that needs nothing else. Both are built
from the same values as the report in a terminal.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape

from scalingbook_book import profile_timeline
from scalingbook_book.reader import draw
from scalingbook_book.reader.explorers.view import (
    Bars,
    Chart,
    Curve,
    Panel,
    Points,
    RefLine,
    Scale,
    Series,
    Span,
    Timeline,
)
from scalingbook_lib.inspection import Finding, ProgramReport, inspect, mesh_inference
from scalingbook_lib.inspection.findings.profiles import levers
from scalingbook_lib.inspection.profile_report import ProfileReport
from scalingbook_lib.inspection.program import HIDDEN
from scalingbook_lib.inspection.report import FIRST
from scalingbook_lib.inspection.step_times import StepTime
from scalingbook_lib.inspection.timeline import COMPUTES, MOVES, SKIPPED
from scalingbook_lib.units import GiB, KiB, MiB, binary, percent, si

MOST_SPANS = 300  # drawn: the longest
COLORS = {COMPUTES: 1, MOVES: 2, SKIPPED: 5}
MOST_ROWS, MOST_FINDINGS = 40, 10
UNITS = {"GiB": GiB, "MiB": MiB, "KiB": KiB}
STYLE = """
:root { color-scheme: light dark; --ex-bg: #fff; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
.inspected h2 { margin: 1.6rem 0 .5rem; font-size: 1.2rem; }
.inspected table { border-collapse: collapse; width: 100%; font-size: .9rem; }
.inspected caption { text-align: start; padding-bottom: .3rem; }
.inspected th, .inspected td { border-bottom: 1px solid #8884; padding: .25rem .5rem; text-align: start; }
.inspected .inspected-number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
.inspected .scroll { overflow-x: auto; }
.inspected li { margin-bottom: .8rem; }
.inspected .limit { border-inline-start: 4px solid #c24600; padding-inline-start: .7rem; }
.inspected svg { max-width: 100%; height: auto; }
.inspected figure { container-type: inline-size; margin: 1rem 0; }
@container (max-width: 600px) { .fig-wide { display: none; } .fig-narrow[hidden] { display: block; } }
@media (prefers-color-scheme: dark) {
  :root { --ex-bg: #121212; --ex-c0: #6ea8fe; --ex-c1: #f5924e; --ex-c2: #7ff0c5; --ex-c3: #d176b4;
    --ex-c4: #ffd24a; --ex-c5: #b8bcc4; }
  body { background: #121212; color: #eee; }
  a { color: #6ea8fe; }
}
"""


def page(report: ProgramReport, *, book: str | None = None) -> str:
    """A whole HTML file. `book` is the site's address for links to sections; without it they are text."""
    return document(f"inspect: {report.title}", fragment(report, book=book))


def inspect_json(question: str) -> str:
    """The answer to a question of the site's page, such as `{"text": "HloModule …", "machine": "v5p:4x4x4"}`.

    `machine` and `mesh` may be empty. The answer is `{"html": ...}`, or `{"error": ...}` with one sentence.
    """
    asked = json.loads(question)
    try:
        mesh = mesh_inference.read(asked["mesh"]) if asked.get("mesh", "").strip() else None
        machine = asked.get("machine", "").strip() or None
        report = inspect(asked["text"], machine=machine, mesh=mesh)
        return json.dumps({"html": fragment(report, book="", limit=MOST_FINDINGS), "title": report.title})
    except ValueError as refused:
        return json.dumps({"error": str(refused)})
    except Exception as fault:
        told = f"{type(fault).__name__}: {fault}"
        return json.dumps({"error": f"The text has a form that inspect does not know yet ({told})"})


def document(title: str, body: str) -> str:
    """An HTML file around a report."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def profile_page(report: ProfileReport, *, book: str | None = None) -> str:
    """A whole HTML file with the report on a profile."""
    timeline = profile_timeline.view(report.trace, min(1, report.trace.runs - 1))
    operations = [
        (row.op.name, row.op.kind, row.op.scope, f"{row.times:.3g}", si(row.self_s, "s"), percent(row.share))
        for row in report.operations[:MOST_ROWS]
    ]
    steps = [
        (str(step.number), *(si(t, "s") for t in _parts(step)), step.largest_wait)
        for step in report.steps[:MOST_ROWS]
    ]
    collectives = [
        (c.name, f"{c.times:.3g}", si(c.seconds, "s"), si(c.exposed_s, "s"))
        for c in report.collectives[:MOST_ROWS]
    ]
    workers = [
        (w.name, si(w.compute_s, "s"), si(w.exposed_s, "s"), si(w.idle_s, "s")) for w in report.workers
    ]
    parts = [
        *(f"<p>{escape(line)}.</p>" for line in report.summary[:2]),
        section("Levers", findings_list(levers(report), book=book)),
        section("One step", "".join(figure(panel) for panel in timeline.panels)),
        section(
            "Steps", steps_svg(report) + table("Where the time of each step goes", STEP_COLUMNS, steps, (6,))
        ),
        section(
            "Operations",
            table(
                "Operations by their time in all steps",
                ("operation", "kind", "scope", "times", "time", "share"),
                operations,
                (0, 1, 2),
            ),
        ),
        section(
            "Collectives",
            table("Time of the collectives", ("collective", "times", "time", "exposed"), collectives)
            if collectives
            else "",
        ),
        section(
            "Devices and hosts",
            table("Time of each device and host", ("", "compute", "exposed", "idle"), workers)
            if workers
            else "",
        ),
    ]
    title = f"profile: {report.trace.title}"
    return document(title, f'<div class="inspected"><h1>{escape(title)}</h1>{"".join(parts)}</div>')


STEP_COLUMNS = ("step", "time", "compute", "exposed", "gaps", "wait", "waits most for")


def _parts(step: StepTime) -> tuple[float, ...]:
    return step.duration_s, step.compute_s, step.exposed_s, step.launch_s, step.wait_s


def steps_svg(report: ProfileReport) -> str:
    """The parts of every step, as stacked bars."""
    shown = report.steps[:12]
    series = (
        Series("compute", [step.compute_s for step in shown], 1),
        Series("exposed", [step.exposed_s for step in shown], 2),
        Series("gaps", [step.launch_s for step in shown], 3),
        Series("wait", [step.wait_s for step in shown], 5),
    )
    return figure(Bars(Scale("time", "s"), [f"step {step.number}" for step in shown], series, stacked=True))


_KERNELS_SHOWN = 10  # the others are folded
_LOOPS = (
    "<p>The column <i>loops</i> gives the iterations of the loops around a collective: 8 × 4 is a loop of 8 "
    "iterations that contains a loop of 4.</p>"
)
_TEMPORARIES = (
    "<p>Temporaries are arrays that the program needs besides its arguments and results. The last column "
    "names the operation of your program that an array comes from. A custom call is an operation that HLO "
    "itself does not define, such as the allocation of a buffer or a kernel of a library.</p>"
)
_FUSIONS = (
    "<p>A fusion is a group of operations that the compiler runs as one kernel. The last column is the line "
    "of your program that it comes from.</p>"
)


def fragment(report: ProgramReport, *, book: str | None = "", limit: int = FIRST) -> str:
    """The report as an HTML element. Links to sections are relative to `book`; None writes them as text."""
    p = report.program
    parts = [
        *(f"<p>{escape(line)}.</p>" for line in report.summary[:2]),
        *(f'<p class="limit">Limit exceeded: {escape(one)}.</p>' for one in report.broken),
        section("Findings", findings_list(report.findings[:limit], book=book)),
        section("One run on one device", timeline_svg(report)),
        section("Collectives", _transfers(report)),
        section("Memory at the peak", memory_svg(report) + _largest(report)),
        section("Kernels compared with their rooflines", roofline_svg(report) + _kernels(report)),
        section("Matmul FLOPs", _work(report)),
        section("Notes", _notes([*p.source.notes, *(one.message for one in p.not_counted)])),
    ]
    return f'<div class="inspected">{"".join(parts)}</div>'


def section(title: str, content: str) -> str:
    """A titled part of a report; "" if it has no content."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def findings_list(found: Sequence[Finding], *, book: str | None = "") -> str:
    """The findings as a numbered list with links to the book."""
    if not found:
        return "<p>No findings.</p>"
    items = []
    for one in found:
        lines = f" <code>{escape(', '.join(one.lines[:3]))}</code>" if one.lines else ""
        saved = si(one.saved_s, "s") if one.saved_s else binary(one.saved_bytes) if one.saved_bytes else ""
        most = f" Saves at most {saved}." if saved else ""
        items.append(
            f"<li><b>{escape(one.message)}.</b>{lines}<br>{escape(one.advice)}.{most}<br>"
            f"{_link(one, book)}</li>"
        )
    return f"<ol>{''.join(items)}</ol>"


def _link(one: Finding, book: str | None) -> str:
    """The section of the book that explains a finding."""
    if book is None:
        return f"Book: {escape(str(one.section))}"
    return f'<a href="{escape(book + one.section.path)}">{escape(one.section.title)}</a>'


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,)
) -> str:
    """A table; columns that are not in `words` are numbers."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{'' if n in words else ' class=inspected-number'}>{escape(cell)}</{tag}>"
            for n, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', columns)}</tr></thead>"
    caption = f"<caption>{escape(title)}</caption>"
    return f'<div class="scroll"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def figure(panel: Panel) -> str:
    """A drawing, wide and, for a phone, narrow."""
    return (
        f'<figure class="fig"><div class="fig-wide">{draw.panel(panel, draw.WIDE)}</div>'
        f'<div class="fig-narrow" hidden>{draw.panel(panel, draw.NARROW)}</div></figure>'
    )


def timeline_svg(report: ProgramReport) -> str:
    """Kernels and transfers of a run; the later trips of a loop are one block."""
    played = report.program.timeline.spans
    if not report.program.run_s or not played:
        return ""
    lanes = [COMPUTES, *([MOVES] if any(s.kind == MOVES for s in played) else [])]
    longest = sorted(played, key=lambda s: s.start_s - s.end_s)[:MOST_SPANS]
    spans = [
        Span(COMPUTES if s.kind == SKIPPED else s.kind, s.start_s, s.end_s, s.label, COLORS[s.kind])
        for s in sorted(longest, key=lambda s: s.start_s)
    ]
    ends = max(report.program.run_s, max(s.end_s for s in played))
    return figure(Timeline(lanes, spans, end=ends, title="Estimated, not measured"))


def memory_svg(report: ProgramReport) -> str:
    """The memory of a device by source, as bars, with its capacity."""
    memory, limit = report.program.memory, report.program.hardware.hbm_bytes
    unit, size = next(((u, n) for u, n in UNITS.items() if memory.peak >= n), ("B", 1))
    refs = [RefLine("capacity", limit / size)] if limit and limit < 20 * memory.peak else []
    labels = [*memory.terms, "peak"]
    bars = Series(unit, [nbytes / size for nbytes in (*memory.terms.values(), memory.peak)], 0)
    estimated = ", temporaries estimated from the text" if memory.estimated else ""
    title = f"Peak {binary(memory.peak)}{estimated}"
    return figure(Bars(Scale(f"memory in {unit}", ""), labels, (bars,), refs=refs, title=title))


def roofline_svg(report: ProgramReport) -> str:
    """Every matmul kernel by its intensity and its estimated rate, below the roofline of the chip."""
    hardware = report.program.hardware
    flops_per_s, bandwidth = hardware.flops_per_s("bf16"), hardware.hbm_bytes_per_s
    found = [k for k in report.kernels if k.seconds and k.kernel.flops and k.kernel.nbytes]
    if not found or not flops_per_s or not bandwidth:
        return ""
    xs = [k.kernel.flops / k.kernel.nbytes for k in found]
    ys = [k.runs * k.kernel.flops / k.seconds for k in found]
    ridge = flops_per_s / bandwidth
    low, high = min([*xs, ridge / 4]) / 2, max([*xs, ridge * 4]) * 2
    roof = Curve("roofline", [low, ridge, high], [low * bandwidth, flops_per_s, flops_per_s], 5)
    chart = Chart(
        Scale("FLOPs per byte of HBM", "", "log", low, high),
        Scale("FLOPs/s", "", "log", min([*ys, low * bandwidth]) / 2, flops_per_s * 2),
        (roof, Points("kernels", xs, ys, color=1)),
        "Matmul kernels, by the estimated time",
    )
    return figure(chart)


def _transfers(report: ProgramReport) -> str:
    if not report.transfers:
        return "<p>The program has no collectives.</p>"
    rows = []
    for row in report.transfers[:MOST_ROWS]:
        c = row.first.collective
        times = "≥ 1" if row.times is None else f"{row.times:,}"
        exposed = si(row.exposed_s, "s") if row.seconds else ""
        array = f"{c.dtype} {si(c.nbytes, 'B')}"
        received = si(row.received_bytes, "B")
        rows.append(
            (c.kind, c.over, array, row.trips, times, received, row.first.schedule, exposed, row.first.line)
        )
    columns = ("collective", "axes", "array", "loops", "times", "received", "schedule", "exposed", "line")
    hidden = sum(row.received_bytes for row in report.transfers if row.first.schedule == HIDDEN)
    everything = sum(row.received_bytes for row in report.transfers)
    share = f"<p>{percent(hidden / everything)} of the received bytes are hidden.</p>" if everything else ""
    return f"{share}{_LOOPS}" + table("What each collective moves", columns, rows, (0, 1, 2, 6, 8))


def _largest(report: ProgramReport) -> str:
    rows = [(b.name, b.type, binary(b.nbytes), b.source) for b in report.program.memory.largest]
    title, columns = "Largest temporary arrays at the peak", ("temporary", "array", "bytes", "from")
    return f"{_TEMPORARIES}{table(title, columns, rows, (0, 1, 3))}" if rows else ""


def _kernels(report: ProgramReport) -> str:
    rows = []
    for k in [k for k in report.kernels if k.seconds or k.kernel.flops][:MOST_ROWS]:
        times = "≥ 1" if k.times is None else f"{k.times:,}"
        flops = si(k.kernel.flops, "") if k.kernel.flops else ""
        time = si(k.seconds, "s") if k.seconds else ""
        cycles = f"{k.kernel.cycles:,}" if k.kernel.cycles else ""
        fraction = percent(k.fraction) if k.fraction is not None else ""
        rows.append(
            (
                k.kernel.name,
                k.kernel.kind,
                times,
                flops,
                si(k.kernel.nbytes, "B"),
                cycles,
                time,
                fraction,
                k.line,
            )
        )
    columns = ("kernel", "kind", "times", "FLOPs", "bytes", "cycles", "time", "roofline", "line")
    if not rows:
        return ""
    title = "Kernels compared with their rooflines"
    first, rest = rows[:_KERNELS_SHOWN], rows[_KERNELS_SHOWN:]
    html = _FUSIONS + table(title, columns, first, (0, 1, 8))
    if rest:
        more = table(f"{title}, continued", columns, rest, (0, 1, 8))
        html += f"<details><summary>Show {len(rest)} more kernels</summary>{more}</details>"
    return html


def _work(report: ProgramReport) -> str:
    work = report.program.work
    rows = [("of the program", si(work.flops, "FLOPs"))]
    if work.need:
        rows.append((f"that {work.need.model} needs", si(work.need.device_flops, "FLOPs")))
    rows += [
        ("recomputed", si(work.recomputed, "FLOPs")),
        ("with padding, in addition", si(work.padded, "FLOPs")),
    ]
    return table("Matmul FLOPs of one device", ("part", "FLOPs"), rows)


def _notes(told: Sequence[str]) -> str:
    return "".join(f"<p>{escape(one[0].upper() + one[1:])}.</p>" for one in told)
