"""A simulation of a pipeline schedule: each stage runs its turns in order, as soon as inputs have arrived.

Times are scaled to integers and added exactly. Chapter: Training.
"""

from fractions import Fraction
from itertools import pairwise
from math import lcm

from scalingbook_lib.steps.pipelines.orders import (
    ORDERS,
    V_SHAPED,
    Order,
    PipelineError,
    Turn,
    check,
    chunked,
)
from scalingbook_lib.steps.pipelines.run import Number, PipelineRun, TaskSpan, share

type Place = tuple[int, int]  # stage, chunk
type _Row = tuple[int, str, int, int, int, int]  # stage, kind, microbatch, chunk, start, end


def simulate(
    schedule: str,
    stages: int,
    microbatches: int,
    *,
    forward_s: Number = 1,
    backward_s: Number = 2,
    weight_s: Number | None = None,
    both_s: Number | None = None,
    chunks: int = 1,
    hop_s: Number = 0,
) -> PipelineRun:
    """One step of `microbatches` through `stages`; whole numbers and fractions stay exact.

    A stage takes `forward_s` and `backward_s` for one microbatch, in `chunks` equal parts. `weight_s` (by
    default half) of the backward is for the weight gradients, which the zero-bubble schedules and DualPipe
    defer; `both_s` is the time of a forward and a backward overlapped in "dualpipe" and "dualpipe-v" (by
    default their sum). "zb-v" and "dualpipe-v" always have two chunks. A send to the next stage occupies no
    stage. Raises a PipelineError if the schedule or a time is not valid.
    """
    check(schedule, stages, microbatches, chunks)
    chunks = chunked(schedule, chunks)
    times = _refused(
        forward_s=forward_s,
        backward_s=backward_s,
        weight_s=share(backward_s, 2) if weight_s is None else weight_s,
        both_s=forward_s + backward_s if both_s is None else both_s,
        hop_s=hop_s,
    )
    scale, took = _whole(times, chunks)
    orders = [ORDERS[schedule](s, stages, microbatches, chunks) for s in range(stages)]
    rows, total = _play(
        orders, took, _ArrivalTimes(*_links(schedule, stages, chunks), microbatches, took["hop"])
    )
    clock = _TickClock(scale, exact=not any(isinstance(value, float) for value in times.values()))
    return PipelineRun(
        schedule=schedule,
        stages=stages,
        microbatches=microbatches,
        chunks=chunks,
        spans=tuple(TaskSpan(s, k, m, c, clock[start], clock[end]) for s, k, m, c, start, end in rows),
        total_s=clock[total],
        work_s=tuple(clock[_work(order, took)] for order in orders),
        live=tuple(_held(order, chunks) for order in orders),
    )


def _refused(**given: Number) -> dict[str, Number]:
    """The times by name. Raises a PipelineError if a time is negative or the parts do not fit."""
    for name, value in given.items():
        if not 0 <= value < float("inf"):
            raise PipelineError(f"{name}={value}; write a time of at least 0")
    if given["weight_s"] > given["backward_s"]:
        raise PipelineError(
            f"weight_s={given['weight_s']} is part of backward_s={given['backward_s']}; "
            "write no more than that"
        )
    return given


def _whole(times: dict[str, Number], chunks: int) -> tuple[int, dict[str, int]]:
    """The time of each kind of turn in integer units of 1/scale seconds, multiples of the chunks."""
    exact = {name: Fraction(time) for name, time in times.items()}
    # a float is a fraction with denominator 2^k, so everything adds up exactly
    scale = chunks * lcm(*(time.denominator for time in exact.values()))
    ticks = {name: int(time * scale) for name, time in exact.items()}
    forward, backward, weight = ticks["forward_s"], ticks["backward_s"], ticks["weight_s"]
    parts = {"F": forward, "B": backward, "I": backward - weight, "W": weight, "FB": ticks["both_s"]}
    return scale, {kind: time // chunks for kind, time in parts.items()} | {"hop": ticks["hop_s"]}


class _TickClock(dict[int, Number]):
    """A conversion from integer ticks to seconds, cached."""

    def __init__(self, scale: int, *, exact: bool) -> None:
        self.scale, self.exact = scale, exact

    def __missing__(self, ticks: int) -> Number:
        whole, rest = divmod(ticks, self.scale)
        self[ticks] = value = (
            (Fraction(ticks, self.scale) if rest else whole) if self.exact else ticks / self.scale
        )
        return value


def _links(schedule: str, P: int, v: int) -> tuple[dict[Place, Place], list[Place]]:
    """The destination of the output of each stage and chunk, and all destinations."""
    if schedule == "dualpipe":
        places = [(s, way) for s in range(P) for way in (0, 1)]
        return {(s, 0): (s + 1, 0) for s in range(P - 1)} | {(s + 1, 1): (s, 1) for s in range(P - 1)}, places
    line = [(s, c) for c in range(v) for s in range(P)]
    if schedule in V_SHAPED:
        # chunk 1 returns through the stages, and the last stage passes its own output on to itself
        line[P:] = [(s, 1) for s in reversed(range(P))]
    return dict(pairwise(line)), line


class _ArrivalTimes:
    """The times at which the inputs of each stage's tasks arrive and their outputs leave, by microbatch.

    `inputs[stage][kind, chunk]` are lists of times, None for inputs that have not arrived; `outputs` are the
    same lists of the following stages, with the latency of the send. `rows[stage]` are the completed tasks.
    """

    def __init__(self, after: dict[Place, Place], places: list[Place], M: int, hop: int) -> None:
        self.inputs: list[dict[tuple[str, int], list[int | None]]] = [{} for _ in places]
        self.rows: list[list[_Row]] = [[] for _ in places]
        self.outputs: list[dict[tuple[str, int], tuple[list[int | None], int]]] = [{} for _ in places]
        first = set(places) - set(after.values())
        for s, c in places:
            backward: list[int | None] = [None] * M
            self.inputs[s]["F", c] = [0 if (s, c) in first else None] * M
            self.inputs[s]["B", c] = self.inputs[s]["I", c] = backward
            self.inputs[s]["W", c] = [0] * M
            # outputs without a destination are dropped
            self.outputs[s] |= {(kind, c): ([None] * M, 0) for kind in "BIW"}
        for s, c in places:
            # after the last forward the same stage may begin the backward
            follows, (t, d) = (s, c) in after, after.get((s, c), (s, c))
            waits = hop if s != t else 0  # no send within a stage
            self.outputs[s]["F", c] = (self.inputs[t]["F" if follows else "B", d], waits)
            for kind in "BI" if follows else "":
                self.outputs[t][kind, d] = (self.inputs[s]["B", c], waits)


def _play(orders: list[Order], took: dict[str, int], times: _ArrivalTimes) -> tuple[list[_Row], int]:
    """Every task as (stage, kind, microbatch, chunk, start, end), stage by stage, and the end of the last."""
    done, free, left = [0] * len(orders), [0] * len(orders), sum(map(len, orders))
    while left:
        before = left
        for s, order in enumerate(orders):
            count = len(order)
            while done[s] < count and (end := _turn(order[done[s]], s, free[s], took, times)) >= 0:
                free[s] = end
                done[s] += 1
                left -= 1
        if left == before:
            raise AssertionError("the stages wait for each other")
    return [row for stage in times.rows for row in stage], max(free)


def _turn(turn: Turn, s: int, free: int, took: dict[str, int], times: _ArrivalTimes) -> int:
    """The time at which the stage finishes a turn, or -1 if its input has not arrived.

    Tasks executed together end together; they are shown one after the other.
    """
    start, inputs, outputs, rows = free, times.inputs[s], times.outputs[s], times.rows[s]
    for kind, m, c in turn:
        arrived = inputs[kind, c][m]
        if arrived is None:
            return -1
        start = max(start, arrived)  # as soon as both inputs have arrived
    length = took["FB" if len(turn) == 2 else turn[0][0]]  # two tasks together have their own duration
    end = start + length
    alone = sum(took[task[0]] for task in turn) if len(turn) == 2 else 0
    for kind, m, c in turn:
        until = start + length * took[kind] // alone if alone and kind == "F" else end
        rows.append((s, "B" if kind == "I" else kind, m, c, start, until))
        reached, hop = outputs[kind, c]
        reached[m] = end + hop
        start = until
    return end


def _work(order: Order, took: dict[str, int]) -> int:
    return sum(took["FB" if len(turn) == 2 else turn[0].kind] for turn in order)


def _held(order: Order, chunks: int) -> Number:
    """The maximum held at once, from a forward to its backward, or to its weight gradient if deferred."""
    held = most = 0
    for turn in order:
        held += sum(task.kind == "F" for task in turn)
        most = max(most, held)
        held -= sum(task.kind in "BW" for task in turn)
    return most // chunks if most % chunks == 0 else Fraction(most, chunks)
