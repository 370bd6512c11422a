"""Findings about bytes that collectives need not move: repeated, unused, or in too wide a type."""

from collections.abc import Iterator

from scalingbook_lib.collectives import Collective
from scalingbook_lib.inspection.findings import dataflow
from scalingbook_lib.inspection.findings.collectives_in_words import named, times_in_words
from scalingbook_lib.inspection.findings.finding import (
    FAULT_SHARDING,
    LOOP,
    MICROBATCHES,
    NARROW,
    SCATTER,
    Finding,
    Section,
)
from scalingbook_lib.inspection.program import InspectedProgram, PlacedTransfer
from scalingbook_lib.inspection.transfer_group import TransferGroup, group
from scalingbook_lib.units import percent, si

GATHER, REDUCE, SCATTERED = (
    Collective.ALL_GATHER.hlo,
    Collective.ALL_REDUCE.hlo,
    Collective.REDUCE_SCATTER.hlo,
)
MOST_USED = 0.5  # of a gathered array: below, most of the transfer is useless
LEAST_SHARE = 0.02  # of all received bytes: below, a reviewer would not mention it
MUCH_FP32 = 0.2  # of all received bytes
LEAST_BYTES = 1e4  # received per run


def repeated_in_loop(program: InspectedProgram) -> Iterator[Finding]:
    """A collective in a loop that moves the same bytes in every trip."""
    for found in _by_line(program):
        found = found.where(lambda t: _unchanged_trips(program, t) > 1)
        if not found:
            continue
        moved, trips = found.first.collective, _unchanged_trips(program, found.first)
        kept = sum(t.received_bytes / _unchanged_trips(program, t) for t in found.transfers)
        yield from _avoidable(
            program,
            found,
            rule="repeated in a loop",
            message=f"{named(moved)} moves the same {si(moved.nbytes, 'B')} in each of {trips} iterations "
            "of a loop",
            advice="Move it in front of the loop if memory allows, or make fewer trips",
            section=MICROBATCHES if moved.kind == GATHER else LOOP,
            share=1 - kept / max(found.received_bytes, 1.0),
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
    for found in _by_line(program):
        found = found.where(lambda t: _is_accumulated(program, t))
        if not found:
            continue
        trips = found.first.loops[-1].trips or 1
        yield from _avoidable(
            program,
            found,
            rule="summed in every trip",
            message=f"{named(found.first.collective, sized=True)} runs in each of {trips} iterations of a "
            "loop, and its results are only added up",
            advice="Add up local sums in the loop, and reduce them once after it",
            section=LOOP,
            share=1 - 1 / trips,
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
    for found in _by_line(program):
        found = found.where(lambda t: t.collective.kind == GATHER and _used(program, t) < MOST_USED)
        if not found:
            continue
        used = _used(program, found.first)
        yield from _avoidable(
            program,
            found,
            rule="gathered and mostly unused",
            message=f"{named(found.first.collective, sized=True)} runs {times_in_words(found.runs)}, and "
            f"only {percent(used)} of its bytes are used",
            advice="Shard the operation that reads it, or slice before the collective",
            section=FAULT_SHARDING,
            share=1 - used,
        )


def reduced_then_sliced(program: InspectedProgram) -> Iterator[Finding]:
    """An AllReduce of which each device reads one shard: a ReduceScatter moves half of the bytes."""
    for found in _by_line(program):
        found = found.where(
            lambda t: t.collective.kind == REDUCE and _used(program, t) <= 1.01 / t.collective.devices
        )
        if not found:
            continue
        moved = found.first.collective
        yield from _avoidable(
            program,
            found,
            rule="reduced, then sliced",
            message=f"{named(moved, sized=True)} runs, but each device uses only 1/{moved.devices} of the "
            "result",
            advice=f"Constrain the result to be sharded over {moved.axes}, so that it becomes a "
            "reduce-scatter with half of the bytes",
            section=SCATTER,
            share=0.5,
        )


def _used(program: InspectedProgram, t: PlacedTransfer) -> float:
    """The share of a transfer's result that is read."""
    result, here = dataflow.result_of(t.move), t.move.computation
    if result is None or here is None:
        return 1.0
    size = t.collective.nbytes
    return min(dataflow.used_bytes(program.module, here, result) / size, 1.0) if size else 1.0


def fp32_collectives(program: InspectedProgram) -> Iterator[Finding]:
    """Collectives of fp32 arrays, which move twice the bytes of bf16."""
    if program.source.platform == "cpu":  # XLA:CPU converts bf16 to fp32, because its matmuls need it
        return
    for found in group(program.transfers):
        wide = found.where(lambda t: t.collective.dtype == "f32")
        if not wide or wide.received_bytes < MUCH_FP32 * sum(t.received_bytes for t in program.transfers):
            continue
        sums = wide.first.collective.kind in (REDUCE, SCATTERED)
        yield from _avoidable(
            program,
            wide,
            rule="fp32 collectives",
            message=f"{named(wide.first.collective)} moves fp32: each device receives "
            f"{si(wide.received_bytes, 'B')} per run, twice as much as in bf16",
            advice="Reduce gradients in bf16 if one reduction sums few microbatches; keep fp32 for long sums"
            if sums
            else "Convert to bf16 before the collective",
            section=NARROW,
            share=0.5,
        )


def _avoidable(
    program: InspectedProgram,
    found: TransferGroup,
    *,
    rule: str,
    message: str,
    advice: str,
    section: Section,
    share: float,
) -> Iterator[Finding]:
    """A finding about transfers of which a share of the bytes could be left out; none if that is little."""
    avoided = share * found.received_bytes / (sum(t.received_bytes for t in program.transfers) or 1.0)
    if found.received_bytes < LEAST_BYTES or avoided < LEAST_SHARE:
        return
    seconds = share * found.seconds
    yield Finding(
        rule=rule,
        message=message,
        advice=advice,
        section=section,
        severity=seconds / program.run_s if program.run_s else avoided,
        saved_s=seconds,
        places=found.places,
        lines=found.lines,
        collective=found.first.collective.kind_and_axes,
    )


def _by_line(program: InspectedProgram) -> tuple[TransferGroup, ...]:
    return group(program.transfers, lambda t: t.line)


RULES = (repeated_in_loop, summed_in_loop, gathered_then_sliced, reduced_then_sliced, fp32_collectives)
