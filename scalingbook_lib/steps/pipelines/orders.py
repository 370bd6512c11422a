"""The order in which each stage of a pipeline executes its tasks, for every schedule.

A task is (kind, microbatch, chunk); a turn is one task, or a forward and a backward executed together. Kinds:
F forward, B the whole backward, I the backward of the inputs only, W the backward of the weights only.
Everything is numbered from 0. In a V-shaped schedule, stage s holds chunks s and 2P - 1 - s of the 2P chunks
of layers as its chunks 0 and 1. Sources: GPipe (arXiv 1811.06965), 1F1B and its interleaved form (Megatron,
arXiv 2104.04473), zero bubble ZB-H1, ZB-H2 and ZB-V (arXiv 2401.10241), other V-shaped schedules (arXiv
2405.15362), DualPipe (DeepSeek-V3, arXiv 2412.19437), DualPipe-V (github.com/deepseek-ai/DualPipe).
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple


class StageTask(NamedTuple):
    """A task of one stage for one microbatch, in one of the stage's chunks of layers."""

    kind: str
    microbatch: int
    chunk: int = 0


type Turn = tuple[StageTask, ...]
type Order = list[Turn]


class PipelineError(ValueError):
    """An error for a schedule that these stages and microbatches do not allow."""


def gpipe(s: int, P: int, M: int, v: int) -> Order:
    """Every forward, then every backward, the last microbatch first."""
    # the activations of all M microbatches are held at once
    return [(StageTask("F", m),) for m in range(M)] + [(StageTask("B", m),) for m in reversed(range(M))]


def one_forward_one_backward(s: int, P: int, M: int, v: int) -> Order:
    """As many forwards as there are later stages, then alternately one forward and one backward."""
    # this many forwards start before the first gradient can return
    ahead = min(P - 1 - s, M)
    return _alternate([StageTask("F", m) for m in range(M)], [StageTask("B", m) for m in range(M)], ahead)


def interleaved(s: int, P: int, M: int, v: int) -> Order:
    """1F1B over v chunks of layers per stage: P microbatches through one chunk, then through the next."""
    forward = [StageTask("F", first + m, c) for first in range(0, M, P) for c in range(v) for m in range(P)]
    backward = [
        StageTask("B", first + m, c) for first in range(0, M, P) for c in reversed(range(v)) for m in range(P)
    ]
    # as Megatron-LM counts its warm-up: v - 1 rounds of P, and twice the number of later stages
    return _alternate(forward, backward, min(2 * (P - 1 - s) + (v - 1) * P, v * M))


def _alternate(forward: list[StageTask], backward: list[StageTask], ahead: int) -> Order:
    order: Order = [(task,) for task in forward[:ahead]]
    for f, b in zip(forward[ahead:], backward, strict=False):
        order += [(f,), (b,)]
    return order + [(b,) for b in backward[len(forward) - ahead :]]


def zero_bubble(s: int, P: int, M: int, v: int) -> Order:
    """1F1B with a split backward: stage s defers its weight gradients by s microbatches (ZB-H1)."""
    order: Order = []
    for turn in one_forward_one_backward(s, P, M, v):
        ((kind, m, _),) = turn
        order += [turn] if kind == "F" else [(StageTask("I", m),)]
        # so that no stage holds more than 1F1B does (qi2023zerobubble, ZB-H1)
        if kind == "B" and m >= s:
            order.append((StageTask("W", m - s),))
    # the s deferred weight gradients fill the slots in which 1F1B would idle
    return order + [(StageTask("W", m),) for m in range(max(M - s, 0), M)]


def zero_bubble_2(s: int, P: int, M: int, v: int) -> Order:
    """Twice the warm-up forwards of 1F1B; stage s defers its weight gradients by 2s microbatches (ZB-H2)."""
    # as many forwards as fit before the first gradient returns to this stage
    ahead = 2 * (P - 1 - s) + 1
    order: Order = [(StageTask("F", m),) for m in range(ahead)]
    for m in range(M):
        order.append((StageTask("I", m),))
        # so that every stage holds 2P - 1 microbatches, as the first must (qi2023zerobubble, ZB-H2)
        if m >= 2 * s:
            order.append((StageTask("W", m - 2 * s),))
        if m + ahead < M:
            order.append((StageTask("F", m + ahead),))
    return order + [(StageTask("W", m),) for m in range(max(M - 2 * s, 0), M)]


def zero_bubble_v(s: int, P: int, M: int, v: int) -> Order:
    """ZB-V: V-shaped placement, and weight gradients are deferred only at the end of the step."""
    queues = _MicrobatchQueues()
    later = P - 1 - s
    # the first microbatch passes every later stage twice before its backward begins here
    order = [queues.turn("F", 0) for _ in range(2 * later + 1)]
    order += [queues.turn("F", way) for _ in range(s) for way in (1, 0)]
    for _ in range(later + 1):
        order += [queues.turn("F", 1), queues.turn("I", 1), queues.weights()]
    # chunk 1 has had P forwards so far, and chunk 0 has had P - 1 - s more
    for m in range(P, M):
        if m + later < M:
            order.append(queues.turn("F", 0))
        order += [queues.turn("I", 0), queues.weights()]
        order += [queues.turn("F", 1), queues.turn("I", 1), queues.weights()]
    order += [queues.turn("I", way) for _ in range(s) for way in (0, 1)]
    for _ in range(later + 1):
        order += [queues.turn("I", 0), queues.weights()]
    return order + [queues.weights() for _ in range(2 * s)]


def dualpipe_v(s: int, P: int, M: int, v: int) -> Order:
    """DualPipe cut in half: the first half of twice the stages, with microbatches returning in chunk 1."""
    return dualpipe(s, 2 * P, 2 * M, v)


def dualpipe(s: int, P: int, M: int, v: int) -> Order:
    """Half of the microbatches enter at each end; chunk 0 runs from stage 0 on, chunk 1 from the last on.

    `outer` counts the stages between this one and the nearer end, `inner` those to the middle.
    """
    outer = min(s, P - 1 - s)
    inner = P // 2 - 1 - outer
    near, far = (0, 1) if s < P // 2 else (1, 0)
    queues = _MicrobatchQueues()
    order = [queues.turn("F", near) for _ in range(2 * inner)]
    order += [queues.turn("F", way) for _ in range(outer + 1) for way in (near, far)]
    for _ in range(inner):
        order += [queues.turn("I", far), queues.weights(), queues.turn("F", far)]
    order += _middle(queues, near, far, M // 2 - P + outer + 1, apart=inner == 0)
    for _ in range(inner):
        order += [queues.turn("B", far), queues.both(far, near)]
    whole = outer + 1  # of the last 2 · (outer + 1) backwards, half defer their weight gradients
    for i, way in enumerate([far, near] * (outer + 1)):
        order.append(queues.turn("B" if i < whole else "I", way))
    for _ in range(inner):
        order += [queues.weights(), queues.turn("I", near)]
    return order + [queues.weights() for _ in range(outer + 1)]  # the deferred weight gradients fill the end


def _middle(queues: "_MicrobatchQueues", near: int, far: int, pairs: int, *, apart: bool) -> Iterator[Turn]:
    """The steady state; the middle stages do not overlap its first two tasks."""
    for i in range(pairs):
        if i == 0 and apart:
            yield queues.turn("F", near)
            yield queues.turn("B", far)
        else:
            yield queues.both(near, far)
        yield queues.both(far, near)


class _MicrobatchQueues:
    """The next microbatch of each kind and direction; weight gradients in the order of their deferral."""

    def __init__(self) -> None:
        self._next = {(kind, way): count() for kind in "FB" for way in (0, 1)}
        self._weights: list[StageTask] = []

    def task(self, kind: str, way: int) -> StageTask:
        task = StageTask(kind, next(self._next["F" if kind == "F" else "B", way]), way)
        if kind == "I":
            self._weights.append(StageTask("W", task.microbatch, way))
        return task

    def turn(self, kind: str, way: int) -> Turn:
        return (self.task(kind, way),)

    def both(self, forward: int, backward: int) -> Turn:
        return (self.task("F", forward), self.task("B", backward))

    def weights(self) -> Turn:
        return (self._weights.pop(0),)


ORDERS: dict[str, Callable[[int, int, int, int], Order]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
    "interleaved": interleaved,
    "zero-bubble": zero_bubble,
    "dualpipe": dualpipe,
    "zb-h2": zero_bubble_2,
    "zb-v": zero_bubble_v,
    "dualpipe-v": dualpipe_v,
}
"""The schedules by name: functions of stage, stages, microbatches and chunks that return a stage's turns."""

V_SHAPED = ("zb-v", "dualpipe-v")
"""The schedules with V-shaped placement: stage s holds chunks s and 2P - 1 - s of the layers."""


def weight_copies(schedule: str) -> int:
    """How many stages' worth of weights each chip holds: two with "dualpipe", one with any other schedule."""
    return 2 if schedule == "dualpipe" else 1


def chunked(schedule: str, chunks: int) -> int:
    """The number of chunks that a stage holds: always two in a V-shaped schedule."""
    return 2 if schedule in V_SHAPED else chunks


def check(schedule: str, P: int, M: int, v: int) -> None:
    """Raise a PipelineError that says what to write instead if the schedule does not allow these numbers."""
    if schedule not in ORDERS:
        raise PipelineError(f"{schedule!r} is not a pipeline schedule; write one of {', '.join(ORDERS)}")
    for name, value in (("stages", P), ("microbatches", M), ("chunks", v)):
        if value < 1 or value != int(value):
            raise PipelineError(f"{name}={value}; write a whole number of at least 1")
    for broken, why in (
        (
            v > 1 and schedule in V_SHAPED,
            f"chunks={v}: a stage of {schedule!r} always has two chunks; write chunks=1, the default",
        ),
        (
            v > 1 and schedule != "interleaved",
            f"chunks={v}: only 'interleaved' divides a stage into chunks; write chunks=1",
        ),
        (
            schedule == "interleaved" and M % P,
            f"the interleaved schedule sends {P} microbatches at a time, so the number of microbatches "
            f"must be a multiple of {P}, not {M}; set microbatches={-(-M // P) * P}",
        ),
        (
            schedule == "zero-bubble" and M < P,
            f"zero-bubble needs at least one microbatch per stage, and {M} is less than {P}; "
            f"write microbatches={P} or more",
        ),
        (
            schedule in ("zb-h2", "zb-v") and M < 2 * P - 1,
            f"{schedule} with {P} stages needs at least {2 * P - 1} microbatches, twice the stages less "
            f"one, and {M} is less than that; write microbatches={2 * P - 1} or more",
        ),
        (
            schedule == "dualpipe-v" and M < 2 * P,
            f"dualpipe-v needs at least two microbatches per stage, and {M} is less than 2 · {P}; "
            f"write microbatches={2 * P} or more",
        ),
        (
            schedule == "dualpipe" and (P % 2 or M % 2 or M < 2 * P),
            f"dualpipe needs an even number of stages, and an even number of microbatches of at least two "
            f"per stage, not stages={P} and microbatches={M}; write stages={P + P % 2} and "
            f"microbatches={2 * (P + P % 2)}",
        ),
    ):
        if broken:
            raise PipelineError(why)
