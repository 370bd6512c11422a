"""Finds the profiles of a run, one for each host, and reads them into a report."""

import itertools
import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalingbook_lib.inspection.profile_report import ProfileReport
from scalingbook_lib.inspection.step_times import SHORT_GAP_S
from scalingbook_lib.machines import Chip
from scalingbook_lib.profiles import Trace, files, operations, xplane
from scalingbook_lib.profiles.intervals import merged, overlap

MOST_NAMES = 3  # host events that are named for a wait
LEAST_HOST_S = 1e-4  # shorter host events explain no wait


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
    _require_one_run(found, traces)
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


def _require_one_run(folder: Path, traces: dict[str, Trace]) -> None:
    """Raise a ValueError if the profiles cannot be those of the hosts of one run: no program ran on both."""
    (first, one), *others = traces.items()
    for name, other in others:
        if one.kind != other.kind or not _programs_of(one) & _programs_of(other):
            raise ValueError(
                f"{folder} holds profiles of different runs: {first} ({one.kind}, {_listed(one)}) and {name} "
                f"({other.kind}, {_listed(other)}); give one of the files, or a folder for each run"
            )


def _programs_of(trace: Trace) -> set[str]:
    """The programs that ran, or the operations if the profile does not name their programs."""
    return {op.module for op in trace.ops if op.module} or {op.name for op in trace.ops}


def _listed(trace: Trace) -> str:
    """A program that ran, as a name for the run."""
    return min(_programs_of(trace), default="no operation")


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
    busy = merged([(start, end) for _, start, end in xplane.operation_spans(planes)])
    waits = [
        (end, start) for (_, end), (start, _) in itertools.pairwise(busy) if start - end > SHORT_GAP_S * 1e9
    ]
    total = sum(end - start for start, end in waits)
    if not total:
        return ()
    seconds: dict[str, float] = {}
    for name, start, duration in xplane.host_spans(planes):
        if duration >= LEAST_HOST_S * 1e9:
            covered = overlap(waits, (start, start + duration))
            # an event that goes on while devices work, or during several waits, explains none
            second = bisect_left(waits, (start, start)) + 1
            several = second < len(waits) and waits[second][1] <= start + duration
            if covered > 0.5 * duration and not several:
                seconds[name] = seconds.get(name, 0.0) + covered
    found = [name for name in sorted(seconds, key=lambda name: -seconds[name]) if seconds[name] > 0.2 * total]
    return tuple(found[:MOST_NAMES])
