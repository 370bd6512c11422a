"""Findings about the time that a device waits for collectives: exposed, across nodes, latency-bound."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from scalingbook_lib.inspection.findings.collectives_in_words import named, runs_in_words, times_in_words
from scalingbook_lib.inspection.findings.finding import LATENCY, ORDER, OVERLAP, Finding
from scalingbook_lib.inspection.hardware import Hardware
from scalingbook_lib.inspection.program import NEGLIGIBLE, InspectedProgram
from scalingbook_lib.inspection.steps import WAIT
from scalingbook_lib.inspection.timeline import transfer_of
from scalingbook_lib.inspection.transfer_group import TransferGroup, group
from scalingbook_lib.machines import Cluster
from scalingbook_lib.units import percent, si

LEAST_SHARE = 0.02  # of a run: below, a reviewer would not mention it
MOST_AXES = 5  # whose orders are compared


def exposed(program: InspectedProgram) -> Iterator[Finding]:
    """Collectives for which the device waits."""
    if program.source.platform == "cpu":  # XLA:CPU overlaps nothing
        return
    for found in group(program.transfers):
        found = found.where(lambda t: t.exposed_s > NEGLIGIBLE * t.seconds)
        share = found.exposed_s / program.run_s if program.run_s else 0.0
        if share < LEAST_SHARE:
            continue
        synchronous = found.where(lambda t: t.move.when == WAIT).runs
        yield Finding(
            rule="exposed communication",
            message=f"{runs_in_words(found, synchronous)}: {si(found.exposed_s, 's')} is exposed, "
            f"{percent(share)} of the step",
            advice="Let XLA overlap it (latency-hiding scheduler, async collective flags), or shard so that "
            "it moves fewer bytes"
            if synchronous
            else "Give the chip more compute per transfer, or move fewer bytes",
            section=OVERLAP,
            severity=share,
            saved_s=found.exposed_s,
            places=found.places,
            lines=found.lines,
            collective=found.first.collective.kind_and_axes,
        )


def outer_axis(program: InspectedProgram) -> Iterator[Finding]:
    """A mesh whose busiest axis leaves the nodes of a cluster, while another order of the axes is faster."""
    hardware = program.hardware
    sizes = {name: size for name, size in hardware.sizes.items() if size > 1}
    within = isinstance(hardware.machine, Cluster) and hardware.machine.nodes > 1
    if not within or not hardware.laid or not 2 <= len(sizes) <= MOST_AXES:
        return
    now_s = _transfers_s(program, hardware)
    orders = [replace(hardware, sizes=dict(order)) for order in permutations(sizes.items())]
    best = min((one for one in orders if one.laid), key=lambda one: _transfers_s(program, one))
    saved_s = now_s - _transfers_s(program, best)
    share = saved_s / program.run_s if program.run_s else 0.0
    if share < LEAST_SHARE:
        return
    inner, outer = [*best.sizes][-1], [*sizes][-1]
    moved = TransferGroup(program.transfers).where(lambda t: inner in t.collective.axis_names)
    yield Finding(
        rule="axis across nodes",
        message=f"{inner} ({sizes[inner]} devices) leaves the node, because {outer} is the innermost axis of "
        f"the mesh: all transfers take {si(now_s, 's')}, and {si(now_s - saved_s, 's')} if {inner} is "
        "innermost",
        advice=f"Order the axes of the mesh as {', '.join(best.sizes)}, so that the devices of {inner} are "
        "neighbors",
        section=ORDER,
        severity=share,
        saved_s=saved_s,
        places=moved.places,
        lines=moved.lines,
    )


def _transfers_s(program: InspectedProgram, hardware: Hardware) -> float:
    """The time of all transfers of a run on these links, one after another."""
    found = ((t.runs, transfer_of(t.collective, hardware)) for t in program.transfers)
    return sum(runs * transfer.total_s for runs, transfer in found if transfer is not None)


def latency_bound(program: InspectedProgram) -> Iterator[Finding]:
    """Many small collectives whose time is mostly latency."""
    for found in group(program.transfers):
        small = found.where(lambda t: t.latency_s > 0.5 * t.seconds > 0 and t.exposed_s > 0)
        waited = sum(min(t.exposed_s, t.latency_s) for t in small.transfers)
        if small.runs < 4 or not program.run_s or waited < LEAST_SHARE * program.run_s:
            continue
        yield Finding(
            rule="latency-bound collectives",
            message=f"{named(small.first.collective)} runs {times_in_words(small.runs)} on at most "
            f"{si(small.largest.nbytes, 'B')}. Most of its time, {si(waited, 's')}, is latency",
            advice="Combine small arrays into one collective, or replicate what they hold",
            section=LATENCY,
            severity=waited / program.run_s,
            saved_s=waited * (1 - 1 / small.runs),
            places=small.places,
            lines=small.lines,
            collective=small.first.collective.kind_and_axes,
        )


RULES = (outer_axis, exposed, latency_bound)
