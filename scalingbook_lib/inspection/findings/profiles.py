"""What to change about a profiled run, the largest saving first."""

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scalingbook_lib.inspection.findings.finding import (
    COPIES,
    INPUT,
    LAUNCHES,
    LINES,
    OVERLAP,
    PREDICT,
    RECOMPILE,
    STRAGGLERS,
    Finding,
    Section,
)
from scalingbook_lib.units import percent, si
from scalingbook_lib.words import pluralize

if TYPE_CHECKING:
    from scalingbook_lib.inspection.profile_report import ProfileReport

MOST_LEVERS = 3
LEAST = 0.02  # of a step
SLOW = 0.6  # of the roofline: an operation that attains less could be faster
ATTAINABLE = 0.85  # of the roofline, by good kernels
UNEVEN = 0.05  # more compute than the median


def levers(report: "ProfileReport", limit: int = MOST_LEVERS) -> tuple[Finding, ...]:
    """The largest levers of a profile."""
    found = [one for rule in RULES for one in rule(report) if one.severity >= LEAST]
    return tuple(sorted(found, key=lambda one: -one.severity)[:limit])


def recompiled(report: "ProfileReport") -> Iterator[Finding]:
    """Compilations while the devices wait."""
    found = report.trace.compilations
    steps = report.whole_steps
    seconds = sum(min(step.compile_s, step.wait_s) for step in steps) / (len(steps) or 1)
    if found and seconds:
        n = len(found)
        total = sum(m.duration_s for m in found)
        yield _lever(
            report,
            "compilation",
            f"{pluralize(n, 'compilation')} within the profile take{'s' * (n == 1)} {si(total, 's')} "
            "while the "
            "devices wait",
            "Pad inputs to a few shapes, and run every shape once before the profile",
            RECOMPILE,
            seconds,
        )


def waits_for_host(report: "ProfileReport") -> Iterator[Finding]:
    """Steps that wait for the host: for their input, or for its Python."""
    mean = report.mean
    seconds = max(mean.wait_s - min(mean.compile_s, mean.wait_s), 0.0)
    if not seconds:
        return
    during = f", during {mean.host!r} on the host" if mean.host else ""
    dispatches = mean.host.startswith("PjitFunction")
    yield _lever(
        report,
        "waiting for the host",
        f"The devices wait {si(seconds, 's')} of a step, {percent(seconds / mean.duration_s)}, for "
        f"the host{during}",
        "Dispatch the next step before reading results of this one, as JAX does if nothing asks for them"
        if dispatches
        else "Read and transfer batches ahead in a thread, and dispatch the next step before reading results",
        INPUT if mean.host and not dispatches else LINES,
        seconds,
    )


def launch_gaps(report: "ProfileReport") -> Iterator[Finding]:
    """Many short pauses between kernels."""
    gaps, mean = report.gaps, report.mean
    if not gaps.gaps:
        return
    graphs = (
        "" if gaps.in_graphs is None else f"; {percent(gaps.in_graphs)} of the kernels are in CUDA graphs"
    )
    yield _lever(
        report,
        "launch gaps",
        f"{gaps.gaps:,.0f} pauses between the {gaps.operations:,.0f} operations of a step, "
        f"{si(gaps.median_s, 's')} "
        f"each, take {percent(mean.launch_s / mean.duration_s)} of it{graphs}",
        "Launch several kernels as one CUDA graph (XLA's command buffers), or fuse small operations"
        if report.trace.platform == "gpu"
        else "Fuse small operations, or give each of them more work",
        LAUNCHES,
        mean.launch_s,
    )


def exposed_collectives(report: "ProfileReport") -> Iterator[Finding]:
    """Communication that overlaps with no compute."""
    found = report.collectives
    if not found:
        return
    first, mean = found[0], report.mean
    times = f"{first.times:,.3g} times a step" if first.times > 1 else "once a step"
    yield _lever(
        report,
        "exposed collectives",
        f"{si(mean.exposed_s, 's')} of a step, {percent(mean.exposed_s / mean.duration_s)}, is "
        f"communication that overlaps with no compute; most is {first.name}, {times}",
        "Move it out of loops, combine small ones, or let it overlap with independent work",
        OVERLAP,
        mean.exposed_s,
    )


def uneven(report: "ProfileReport") -> Iterator[Finding]:
    """A device or a host that computes longer than the others, which wait for it."""
    workers = report.workers
    # devices that are simulated on one CPU take turns on its cores
    if len(workers) < 2 or (report.trace.simulated and len(report.hosts) < 2):
        return
    slowest, median = workers[0], statistics.median(w.compute_s for w in workers)
    more = slowest.compute_s - median
    if median and more > UNEVEN * median:
        yield _lever(
            report,
            "straggler",
            f"{slowest.name} computes {si(slowest.compute_s, 's')} of a step, "
            f"{percent(more / median)} longer than "
            "the median: the others wait for it in collectives",
            "Balance the load, or look for a slow device: its clock, its temperature, its host",
            STRAGGLERS,
            more,
        )


def slow_operations(report: "ProfileReport") -> Iterator[Finding]:
    """The operation that loses most time against its roofline."""
    slow = [a for a in report.rooflines if 0 < a.fraction < SLOW]
    if not slow:
        return
    lost = {a: a.row.self_s * (1 - a.fraction / ATTAINABLE) for a in slow}
    worst = max(slow, key=lambda a: lost[a])
    yield _lever(
        report,
        "below the roofline",
        f"{worst.row.op} attains {percent(worst.fraction)} of its roofline ({worst.roofline.bound}) "
        "and takes "
        f"{si(worst.row.self_s, 's')} of a step",
        "Look at its shapes, layout and padding; try a hand-written kernel or another sharding",
        PREDICT,
        lost[worst],
    )


def copies(report: "ProfileReport") -> Iterator[Finding]:
    """Operations that only copy or transpose."""
    seconds = report.trace.by("kind").get("copy", 0.0)
    if seconds:
        yield _lever(
            report,
            "copies",
            f"Copies and transposes take {si(seconds, 's')} of a step, "
            f"{percent(seconds / (report.mean.duration_s or 1))}",
            "Store arrays in the order in which they are read, and donate arguments that are not "
            "needed again",
            COPIES,
            seconds,
        )


def _lever(
    report: "ProfileReport", rule: str, message: str, advice: str, section: Section, seconds: float
) -> Finding:
    """A finding that saves at most `seconds` of a step."""
    share = seconds / report.mean.duration_s if report.mean.duration_s else 0.0
    return Finding(
        rule=rule,
        message=message,
        advice=advice,
        section=section,
        severity=min(share, 1.0),
        saved_s=seconds,
    )


RULES = (
    recompiled,
    waits_for_host,
    launch_gaps,
    exposed_collectives,
    uneven,
    slow_operations,
    copies,
)
