"""Findings about collectives: too often, too many bytes, not overlapped."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from scalingbook_lib.collectives import Collective
from scalingbook_lib.hlo.compiled_collectives import CompiledCollective
from scalingbook_lib.inspection.findings import dataflow
from scalingbook_lib.inspection.findings.finding import (
    FAULT_SHARDING,
    LATENCY,
    LOOP,
    MICROBATCHES,
    NARROW,
    ORDER,
    OVERLAP,
    SCATTER,
    Finding,
    Section,
    axes_in_words,
)
from scalingbook_lib.inspection.hardware import Hardware
from scalingbook_lib.inspection.program import NEGLIGIBLE, InspectedProgram, PlacedTransfer
from scalingbook_lib.inspection.steps import WAIT
from scalingbook_lib.inspection.timeline import transfer_of
from scalingbook_lib.machines import Cluster
from scalingbook_lib.units import percent, si

GATHER, REDUCE, SCATTERED = (
    Collective.ALL_GATHER.hlo,
    Collective.ALL_REDUCE.hlo,
    Collective.REDUCE_SCATTER.hlo,
)
MOST_USED = 0.5  # of a gathered array: below, most of the transfer is useless
LEAST_SHARE = 0.02  # of a run, or of all received bytes: below, a reviewer would not mention it
MUCH_FP32 = 0.2  # of all received bytes
LEAST_BYTES = 1e4  # received per run
MOST_AXES = 5  # whose orders are compared


def repeated_in_loop(program: InspectedProgram) -> Iterator[Finding]:
    """A collective in a loop that moves the same bytes in every trip."""
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes, t.line)):
        same = [(t, trips) for t in group if (trips := _unchanged_trips(program, t)) > 1]
        if not same:
            continue
        moved, trips = same[0][0].collective, same[0][1]
        kept = sum(t.received_bytes / n for t, n in same)
        yield from _finding(
            program,
            [t for t, _ in same],
            "repeated in a loop",
            f"{_named(moved)} moves the same {si(moved.nbytes, 'B')} in each of {trips} iterations of a loop",
            "Move it in front of the loop if memory allows, or make fewer trips",
            MICROBATCHES if moved.kind == GATHER else LOOP,
            1 - kept / max(sum(t.received_bytes for t, _ in same), 1.0),
        )


def _unchanged_trips(program: InspectedProgram, t: PlacedTransfer) -> int:
    """The trips of the loops around a transfer in which its operands do not change; 1 if none."""
    i, here = t.move.instruction, t.move.computation
    if i is None or here is None:
        return 1
    trips = 1
    for level, loop in enumerate(t.loops):
        if not loop.trips or loop.trips < 2:
            continue
        changes = (dataflow.changes_in(program.module, t.loops, level, here, name) for name in i.operands)
        trips *= 1 if any(changes) else loop.trips
    return trips


def summed_in_loop(program: InspectedProgram) -> Iterator[Finding]:
    """A reduction in a loop whose results are only added up: one reduction after the loop does the same."""
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes, t.line)):
        found = [t for t in group if _is_accumulated(program, t)]
        if not found:
            continue
        trips = found[0].loops[-1].trips or 1
        moved = found[0].collective
        yield from _finding(
            program,
            found,
            "summed in every trip",
            f"{_named(moved, moved.nbytes)} runs in each of {trips} iterations of a loop, and its "
            "results are only added up",
            "Add up local sums in the loop, and reduce them once after it",
            LOOP,
            1 - 1 / trips,
        )


def _is_accumulated(program: InspectedProgram, t: PlacedTransfer) -> bool:
    result = dataflow.result_of(t.move)
    here = t.move.computation
    if t.collective.kind not in (REDUCE, SCATTERED) or result is None or here is None or not t.loops:
        return False
    trips = t.loops[-1].trips or 1
    return trips > 1 and dataflow.accumulates(program.module, here, result)


def gathered_then_sliced(program: InspectedProgram) -> Iterator[Finding]:
    """An AllGather of which only slices are read afterwards."""
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes, t.line)):
        used = [
            (t, share)
            for t in group
            if t.collective.kind == GATHER and (share := _used(program, t)) < MOST_USED
        ]
        if not used:
            continue
        (t, share), runs = used[0], sum(t.runs for t, _ in used)
        yield from _finding(
            program,
            [t for t, _ in used],
            "gathered and mostly unused",
            f"{_named(t.collective, t.collective.nbytes)} runs {_count(runs)}, and only {percent(share)} of "
            "its bytes are used",
            "Shard the operation that reads it, or slice before the collective",
            FAULT_SHARDING,
            1 - share,
        )


def reduced_then_sliced(program: InspectedProgram) -> Iterator[Finding]:
    """An AllReduce of which each device reads one shard: a ReduceScatter moves half of the bytes."""
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes, t.line)):
        found = [
            t
            for t in group
            if t.collective.kind == REDUCE and _used(program, t) <= 1.01 / t.collective.devices
        ]
        if not found:
            continue
        moved = found[0].collective
        yield from _finding(
            program,
            found,
            "reduced, then sliced",
            f"{_named(moved, moved.nbytes)} runs, but each device uses only 1/{moved.devices} of the result",
            f"Constrain the result to be sharded over {moved.axes}, so that it becomes a reduce-scatter with "
            "half of the bytes",
            SCATTER,
            0.5,
        )


def _used(program: InspectedProgram, t: PlacedTransfer) -> float:
    """The share of a transfer's result that is read."""
    result, here = dataflow.result_of(t.move), t.move.computation
    if result is None or here is None:
        return 1.0
    size = t.collective.nbytes
    return min(dataflow.used_bytes(program.module, here, result) / size, 1.0) if size else 1.0


def exposed(program: InspectedProgram) -> Iterator[Finding]:
    """Collectives for which the device waits."""
    if program.source.platform == "cpu":  # XLA:CPU overlaps nothing
        return
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes)):
        group = [t for t in group if t.exposed_s > NEGLIGIBLE * t.seconds]
        share = sum(t.exposed_s for t in group) / program.run_s if program.run_s else 0.0
        if share < LEAST_SHARE:
            continue
        waiting = sum(t.runs for t in group if t.move.when == WAIT)
        advice = (
            "Let XLA overlap it (latency-hiding scheduler, async collective flags), or shard so that "
            "it moves "
            "fewer bytes"
            if waiting
            else "Give the chip more compute per transfer, or move fewer bytes"
        )
        seconds = sum(t.exposed_s for t in group)
        yield Finding(
            rule="exposed communication",
            message=f"{_runs(group, waiting)}: {si(seconds, 's')} is exposed, {percent(share)} of the step",
            advice=advice,
            section=OVERLAP,
            severity=share,
            saved_s=seconds,
            places=_places(group),
            lines=_lines(group),
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
    moved = [t for t in program.transfers if inner in t.collective.axes.split(",")]
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
        places=_places(moved),
        lines=_lines(moved),
    )


def _transfers_s(program: InspectedProgram, hardware: Hardware) -> float:
    """The time of all transfers of a run on these links, one after another."""
    found = ((t.runs, transfer_of(t.collective, hardware)) for t in program.transfers)
    return sum(runs * transfer.total_s for runs, transfer in found if transfer is not None)


def latency_bound(program: InspectedProgram) -> Iterator[Finding]:
    """Many small collectives whose time is mostly latency."""
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes)):
        small = [t for t in group if t.latency_s > 0.5 * t.seconds > 0 and t.exposed_s > 0]
        runs, waited = sum(t.runs for t in small), sum(min(t.exposed_s, t.latency_s) for t in small)
        if runs < 4 or not program.run_s or waited < LEAST_SHARE * program.run_s:
            continue
        largest = max(t.collective.nbytes for t in small)
        yield Finding(
            rule="latency-bound collectives",
            message=f"{_named(small[0].collective)} runs {_count(runs)} on at most {si(largest, 'B')}. "
            f"Most of its time, {si(waited, 's')}, is latency",
            advice="Combine small arrays into one collective, or replicate what they hold",
            section=LATENCY,
            severity=waited / program.run_s,
            saved_s=waited * (1 - 1 / runs),
            places=_places(small),
            lines=_lines(small),
        )


def fp32_collectives(program: InspectedProgram) -> Iterator[Finding]:
    """Collectives of fp32 arrays, which move twice the bytes of bf16."""
    if program.source.platform == "cpu":  # XLA:CPU converts bf16 to fp32, because its matmuls need it
        return
    for group in _grouped(program.transfers, lambda t: (t.collective.kind, t.collective.axes)):
        wide = [t for t in group if t.collective.dtype == "f32"]
        received = sum(t.received_bytes for t in wide)
        if received < MUCH_FP32 * sum(t.received_bytes for t in program.transfers):
            continue
        sums = wide[0].collective.kind in (REDUCE, SCATTERED)
        yield from _finding(
            program,
            wide,
            "fp32 collectives",
            f"{_named(wide[0].collective)} moves fp32: each device receives {si(received, 'B')} per run, "
            "twice as much as in bf16",
            "Reduce gradients in bf16 if one reduction sums few microbatches; keep fp32 for long sums"
            if sums
            else "Convert to bf16 before the collective",
            NARROW,
            0.5,
        )


def _finding(
    program: InspectedProgram,
    group: list[PlacedTransfer],
    rule: str,
    message: str,
    advice: str,
    section: Section,
    avoidable: float,
) -> Iterator[Finding]:
    """A finding about these transfers, of which the share `avoidable` could be left out."""
    received = sum(t.received_bytes for t in group)
    everything = sum(t.received_bytes for t in program.transfers) or 1.0
    seconds = avoidable * sum(t.seconds for t in group)
    share = seconds / program.run_s if program.run_s else avoidable * received / everything
    if received < LEAST_BYTES or avoidable * received / everything < LEAST_SHARE:
        return
    yield Finding(
        rule=rule,
        message=message,
        advice=advice,
        section=section,
        severity=share,
        saved_s=seconds,
        saved_bytes=0.0,
        places=_places(group),
        lines=_lines(group),
    )


def _grouped(
    transfers: Iterable[PlacedTransfer], key: Callable[[PlacedTransfer], Hashable]
) -> list[list[PlacedTransfer]]:
    """Transfers with the same key, in the order of the first of each."""
    found: dict[Hashable, list[PlacedTransfer]] = {}
    for t in transfers:
        found.setdefault(key(t), []).append(t)
    return list(found.values())


def _named(c: CompiledCollective, nbytes: float | None = None) -> str:
    """'An all-gather of 8.39 MB over the axis data'."""
    size = f" of {si(nbytes, 'B')}" if nbytes is not None else ""
    if c.axes == "?":
        return f"{_article(c.kind)} {c.kind}{size} over groups that follow no axis"
    axes = c.axes.split(",") if "," in c.axes or not c.axes.isupper() else list(c.axes)
    return f"{_article(c.kind)} {c.kind}{size} over {axes_in_words(axes)}"


def _runs(group: list[PlacedTransfer], waiting: int) -> str:
    """'An all-gather of 8.39 MB over the axis data runs 4 times, 3 of them synchronously'."""
    runs, largest = sum(t.runs for t in group), max(group, key=lambda t: t.collective.nbytes).collective
    if waiting in (0, runs):
        how = " synchronously" if waiting else " with too little compute to overlap with"
    else:
        how = f", {waiting:,} of them synchronously"
    if len({t.collective.nbytes for t in group}) == 1:
        return f"{_named(largest, largest.nbytes)} runs {_count(runs)}{how}"
    several = _named(largest, largest.nbytes).partition(" ")[2]
    kind, _, rest = several.partition(" of ")
    return f"{kind.capitalize()}s of up to {rest} run {_count(runs)}{how}"


def _article(word: str) -> str:
    return "An" if word[0] in "aeiou" else "A"


def _count(runs: int) -> str:
    return "once" if runs == 1 else f"{runs:,} times"


def _places(group: Iterable[PlacedTransfer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.move.name for t in group))


def _lines(group: Iterable[PlacedTransfer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.line for t in group if t.line))


RULES = (
    repeated_in_loop,
    summed_in_loop,
    gathered_then_sliced,
    reduced_then_sliced,
    outer_axis,
    exposed,
    latency_bound,
    fp32_collectives,
)
