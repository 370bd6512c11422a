"""The command `scalingbook profile`: what the steps of a profiled run wait for, and what to change."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import click

from scalingbook_cli import book_site, inspection_report, parameter_types
from scalingbook_cli.answer import Answer, DerivationLine, TextTable, answer_command, figure
from scalingbook_lib.inspection.findings import profiles
from scalingbook_lib.inspection.profile_files import profile
from scalingbook_lib.inspection.profile_report import ProfileReport
from scalingbook_lib.machines import Chip
from scalingbook_lib.units import percent, si

MOST_STEPS, MOST_OPERATIONS, MOST_WORKERS, MOST_NAME = 8, 10, 8, 30


@click.command("profile", short_help="What the steps of a profile wait for, and the largest levers.")
@click.argument("file", metavar="FILE", type=parameter_types.PATH)
@click.option(
    "--hlo",
    "programs",
    multiple=True,
    type=parameter_types.PATH,
    help="The text of a program that ran, for FLOPs, bytes and scopes.",
)
@click.option(
    "--chip",
    type=parameter_types.CHIP,
    help="The chip whose roofline to compare with.  [default: the profile's]",
)
@click.option("--annotation", "annotations", multiple=True, help="A host event to name in waits.")
@click.option(
    "--max-exposed",
    type=parameter_types.SHARE_OR_SECONDS,
    help="Exit with 3 if exposed communication of a step is more: 10% or 2ms.",
)
@click.option(
    "--max-idle",
    type=parameter_types.SHARE_OR_SECONDS,
    help="Exit with 3 if a device idles more of a step: 10% or 2ms.",
)
@click.option("--html", type=click.Path(path_type=Path), help="Write the report with drawings to a file.")
@book_site.option
@answer_command
def command(
    *,
    file: str,
    programs: tuple[str, ...],
    chip: Chip | None,
    annotations: tuple[str, ...],
    max_exposed: tuple[str, float] | None,
    max_idle: tuple[str, float] | None,
    html: Path | None,
    site: str | None,
) -> Answer:
    """Read the profile in FILE: what each step waited for, and the three largest levers.

    \b
    FILE is
      host.xplane.pb       a file of the profiler of JAX or TensorFlow, compressed or not
      host.trace.json.gz   the trace for viewers next to it, which has less
      logs/                a TensorBoard folder: the newest run below it, of all hosts
      trace.json           a trace that profiles.save wrote

    A step begins with an operation of the program that takes most time and ends where its next run begins,
    so averages leave out the last step, whose end the profile does not show.
    A short pause between two operations is a launch gap; a longer one is a wait for the host. Profiles of
    GPUs name no FLOPs or bytes: give the program's text with --hlo to compare operations with rooflines.
    """
    try:
        report = profile(_existing(file), *map(_program, programs), chip=chip, annotations=annotations)
    except OSError as error:
        raise ValueError(str(error) if error.strerror is None else f"{file}: {error.strerror}") from error
    if not report.steps:
        raise ValueError(f"{file} holds no run of a program; record the profile while a step runs")
    broken = tuple(_broken(report, max_exposed, max_idle))
    if html:
        from scalingbook_book import inspection_page

        html.write_text(inspection_page.profile_page(report, book=site), encoding="utf-8")
    return Answer(
        summary="\n".join(inspection_report.short(report.summary)),
        tables=(
            *inspection_report.limits_table(broken),
            *inspection_report.findings_table(profiles.levers(report), title="Levers"),
            _steps(report),
            _operations(report),
            *_collectives(report),
            *_gaps(report),
            *_workers(report),
        ),
        values=report.values | {"broken_limits": list(broken)},
        steps=tuple(_derivation(report)),
        limit_exceeded=bool(broken),
    )


def _existing(file: str) -> Path:
    if not Path(file).exists():
        raise ValueError(
            f"there is no file or folder {file!r}; give a *.xplane.pb, a *.trace.json.gz, or a "
            "TensorBoard folder"
        )
    return Path(file)


def _program(path: str) -> str:
    """The text of a program, perhaps compressed."""
    try:
        content = Path(path).read_bytes()
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        text = content.decode("utf-8")
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not the text of a program; write compiled.as_text() to a file"
        ) from error
    except OSError as error:
        raise ValueError(
            f"there is no program {path!r}: {error.strerror}; give the path of a text"
        ) from error
    if "ENTRY" not in text:
        raise ValueError(f"{path} has no entry computation; write compiled.as_text() to a file")
    return text


def _broken(
    report: ProfileReport, exposed: tuple[str, float] | None, idle: tuple[str, float] | None
) -> Iterator[str]:
    mean = report.mean
    for limit, seconds, what in (
        (exposed, mean.exposed_s, "exposed communication"),
        (idle, mean.launch_s + mean.wait_s, "idle time"),
    ):
        if limit is None:
            continue
        kind, most = limit
        share = seconds / mean.duration_s if mean.duration_s else 0.0
        if kind == "share" and share > most:
            yield f"{what} is {percent(share)} of a step, more than {percent(most)}"
        if kind != "share" and seconds > most:
            yield f"{what} takes {si(seconds, 's')} of a step, more than {si(most, 's')}"


def _steps(report: ProfileReport) -> TextTable:
    rows = []
    for step in report.steps[:MOST_STEPS]:
        parts = (step.compute_s, step.exposed_s, step.launch_s, step.wait_s)
        times = (si(step.duration_s, "s"), *(si(part, "s") for part in parts))
        rows.append((f"{step.number}", *times, _short(step.largest_wait)))
    more = f", the first {MOST_STEPS} of {len(report.steps)}" if len(report.steps) > MOST_STEPS else ""
    more += ", averages without the last" if len(report.steps) > 1 else ""
    columns = ("step", "time", "compute", "exposed", "gaps", "wait", "waits most for")
    return TextTable(f"Steps{more}", columns, tuple(rows), words=(6,))


def _operations(report: ProfileReport) -> TextTable:
    beside = {a.row.op: a for a in report.rooflines}
    rows = []
    for row in report.operations[:MOST_OPERATIONS]:
        found = beside.get(row.op)
        bound = (si(row.times * found.roofline.lower_s, "s"), percent(found.fraction)) if found else ("", "")
        cells = (f"{row.times:.3g}", si(row.self_s, "s"), percent(row.share))
        rows.append((_short(row.op.name), row.op.kind, _short(row.op.scope), *cells, *bound))
    columns = ("operation", "kind", "scope", "times", "time", "share", "roofline", "attained")
    if not any(row[2] for row in rows):
        rows, columns = [row[:2] + row[3:] for row in rows], columns[:2] + columns[3:]
    if not beside:
        rows, columns = [row[:-2] for row in rows], columns[:-2]
    words = (0, 1, 2) if "scope" in columns else (0, 1)
    return TextTable("Slowest operations of a run", columns, tuple(rows), words=words)


def _collectives(report: ProfileReport) -> Iterator[TextTable]:
    rows = [
        (_short(c.name, 48), f"{c.times:.3g}", si(c.seconds, "s"), si(c.exposed_s, "s"))
        for c in report.collectives[:MOST_OPERATIONS]
    ]
    if rows:
        yield TextTable("Collectives of a step", ("collective", "times", "time", "exposed"), tuple(rows))


def _gaps(report: ProfileReport) -> Iterator[TextTable]:
    gaps = report.gaps
    if gaps.gaps:
        rows = [
            ("operations", f"{gaps.operations:,.3g}"),
            ("launch gaps", f"{gaps.gaps:,.3g}"),
            ("median gap", si(gaps.median_s, "s")),
            ("all gaps", si(gaps.total_s, "s")),
        ]
        if gaps.in_graphs is not None:
            rows.append(("kernels in CUDA graphs", percent(gaps.in_graphs)))
        yield TextTable("Launch gaps of a step on one device", ("", ""), tuple(rows))


def _workers(report: ProfileReport) -> Iterator[TextTable]:
    workers = report.workers
    if len(workers) > 1:
        rows = [
            (w.name, si(w.compute_s, "s"), si(w.exposed_s, "s"), si(w.idle_s, "s"))
            for w in workers[:MOST_WORKERS]
        ]
        what = "Hosts" if len(report.hosts) > 1 else "Devices"
        columns = ("", "compute", "exposed", "idle")
        yield TextTable(f"{what} in a step, the slowest first", columns, tuple(rows))


def _short(name: str, most: int = MOST_NAME) -> str:
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"


def _derivation(report: ProfileReport) -> Iterator[DerivationLine]:
    """A step as the sum of its parts."""
    mean = report.mean
    parts = {
        "compute": mean.compute_s,
        "exposed communication": mean.exposed_s,
        "launch gaps": mean.launch_s,
        "waits": mean.wait_s,
    }
    numbers = " + ".join(map(figure, parts.values()))
    yield DerivationLine("step, on average", " + ".join(parts), numbers, mean.duration_s, "s")
