"""The tasks of a pipeline in one step, and the idle time of each stage.

A `PipelineRun` has every task with its times, and the held activations. `bubble` is one closed form per
schedule. Two ratios are called the bubble: the fraction of the step in which a stage is idle, (P - 1)/(M + P
- 1) for 1F1B, and idle time over work, (P - 1)/M. Here they are `bubble` (or `share`) and `overhead`.
Chapter: Training.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from scalingbook_lib.steps.pipelines.orders import PipelineError, check, weight_copies
from scalingbook_lib.units import Result, percent, si

type Number = int | float | Fraction


class TaskSpan(NamedTuple):
    """One task of one stage: F forward, B backward, or W the weight gradient if it was deferred.

    A forward and a backward that overlap share their time: one starts when the other ends.
    """

    stage: int
    kind: str
    microbatch: int
    chunk: int
    start: Number
    end: Number


def share(part: Number, whole: Number) -> Number:
    """Part over whole, exact for exact numbers."""
    if not whole:
        return 0
    return part / whole if isinstance(part, float) or isinstance(whole, float) else Fraction(part) / whole


@dataclass(frozen=True, slots=True)
class PipelineRun(Result):
    """One step of a schedule, simulated."""

    schedule: str
    stages: int
    microbatches: int
    chunks: int
    spans: tuple[TaskSpan, ...]
    total_s: Number
    work_s: tuple[Number, ...]  # the compute time of each stage in seconds
    live: tuple[Number, ...]  # the most microbatches whose activations each stage holds at once

    @property
    def idle_s(self) -> Number:
        """The idle time of the most idle stage in seconds.

        Stages differ only in "dualpipe" and "dualpipe-v".
        """
        return self.total_s - min(self.work_s)

    @property
    def idle_within_s(self) -> Number:
        """The longest idle time of a stage between its first and its last task, in seconds.

        This is all that remains if no stage waits for the others before its optimizer step and the next step.
        """
        return max(
            tasks[-1].end - tasks[0].start - self.work_s[s]
            for s, tasks in enumerate(map(self.stage, range(self.stages)))
        )

    @property
    def weight_copies(self) -> int:
        """How many stages' worth of weights each chip holds: two with "dualpipe", otherwise one."""
        return weight_copies(self.schedule)

    @property
    def bubble(self) -> Number:
        """The fraction of the step in which a stage is idle."""
        return share(self.idle_s, self.total_s)

    @property
    def overhead(self) -> Number:
        """Idle time over work: the overhead of the pipeline relative to a single stage."""
        return share(self.idle_s, min(self.work_s))

    def stage(self, s: int) -> tuple[TaskSpan, ...]:
        """The tasks of that stage, in order."""
        return tuple(span for span in self.spans if span.stage == s)

    def __str__(self) -> str:
        chunks = f" of {self.chunks} chunks" if self.chunks > 1 else ""
        held = si(float(max(self.live)))
        return (
            f"{self.schedule}, {self.stages} stages{chunks}, {self.microbatches} microbatches: "
            f"{si(float(self.total_s), 's')}, idle {percent(float(self.bubble))} of the time "
            f"({percent(float(self.overhead))} over the work); a stage holds up to {held} microbatches"
        )


@dataclass(frozen=True, slots=True)
class Bubble(Result):
    """A stage's work and its idle time in a step."""

    schedule: str
    work_s: Number
    idle_s: Number
    exact: bool = True  # False if `simulate` may give a different result

    @property
    def total_s(self) -> Number:
        """The time of the step in seconds."""
        return self.work_s + self.idle_s

    @property
    def share(self) -> Number:
        """The fraction of the step in which a stage is idle."""
        return share(self.idle_s, self.total_s)

    @property
    def overhead(self) -> Number:
        """Idle time over work."""
        return share(self.idle_s, self.work_s)

    def __str__(self) -> str:
        return (
            f"{self.schedule}: idle {si(float(self.idle_s), 's')} of {si(float(self.total_s), 's')}, "
            f"{percent(float(self.share))} of the time ({percent(float(self.overhead))} over the work)"
        )


def bubble(
    schedule: str,
    stages: int,
    microbatches: int,
    chunks: int = 1,
    *,
    forward_s: Number = 1,
    backward_s: Number = 2,
    weight_s: Number | None = None,
    both_s: Number | None = None,
    hop_s: Number = 0,
) -> Bubble:
    """The idle time of a schedule in closed form; arguments as in `simulate`.

    With free sends, GPipe and 1F1B: (P - 1)(F + B); interleaved: (P - 1)(F + B)/v. With I + W = B,
    zero-bubble: (P - 1) times F + I - W, but at least F and I; DualPipe: (P/2 - 1)(F&B + B - 3W), exact for F
    = I ≥ W and F + I ≤ F&B ≤ F + B; DualPipe-V: the same with twice the stages and half the times. ZB-H2:
    (P - 1) times F + I - 2W, but at least F and I - F; ZB-V: (P - 1)/2 times F + I - 2W, but at least F, for
    F = I ≥ W. Where ZB-H2 and ZB-V have no closed form, a PipelineError says so. Sources: arXiv 1811.06965,
    2104.04473, 2401.10241, 2412.19437; the terms for sends and the lower limits are our own, tested against
    `simulate`.
    """
    P, M, v = stages, microbatches, chunks
    check(schedule, P, M, v)
    f, b, h = forward_s, backward_s, hop_s
    w = share(b, 2) if weight_s is None else weight_s
    work = M * (f + b)  # of a stage, for any schedule
    match schedule:
        case "gpipe":
            # every stage waits for P - 1 forwards and as many backwards (huang2019gpipe)
            return Bubble(schedule, work, (P - 1) * (f + b + 2 * h))
        case "1f1b":
            waits = P - 1 + (M - 1) * (P - 1) // P  # round trips that nothing else hides
            return Bubble(schedule, work, (P - 1) * (f + b) + 2 * h * waits)
        case "interleaved":
            return _interleaved(P, v, work, f=f, b=b, h=h)
        case "zero-bubble":
            waits = 4 * (P - 1) - 2 * (M == P > 1)
            exact = not h or (f == b - w == w and 2 * h <= w)
            # the ramps of 1F1B, with a stage's W in the gaps of both (qi2023zerobubble)
            return Bubble(schedule, work, (P - 1) * max(f + b - 2 * w, f, b - w) + waits * h, exact)
        case "zb-h2" | "zb-v":
            return Bubble(schedule, work, (P - 1) * _ramp(schedule, P, f=f, i=b - w, w=w, h=h))
    both = f + b if both_s is None else both_s
    if schedule == "dualpipe-v":
        # half of twice the stages, with chunks half as long and twice as many
        halves = {name: share(time, 2) for name, time in (("f", f), ("b", b), ("w", w), ("both", both))}
        return replace(_dualpipe(2 * P, 2 * M, **halves, h=h), schedule=schedule)
    return _dualpipe(P, M, f=f, b=b, w=w, both=both, h=h)


def _ramp(schedule: str, P: int, *, f: Number, i: Number, w: Number, h: Number) -> Number:
    """The idle time per later stage of ZB-H2 and ZB-V. Raises a PipelineError without a closed form."""
    if P == 1:
        return 0
    if h:
        raise PipelineError(
            f"{schedule} has no closed form if sends take time (hop_s={h}); use simulate, or write hop_s=0"
        )
    if schedule == "zb-h2":
        # the stages start F apart, and weight gradients cannot fill longer gaps (qi2023zerobubble)
        return max(f, f + i - 2 * w, i - f)
    if not f == i >= w:
        raise PipelineError(
            "zb-v has a closed form only if a forward and the backward of the inputs take equally long and "
            f"the backward of the weights no longer, not forward_s={f}, backward_s - weight_s={i} and "
            f"weight_s={w}; use simulate"
        )
    return share(max(f, f + i - 2 * w), 2)


def _interleaved(P: int, v: int, work: Number, *, f: Number, b: Number, h: Number) -> Bubble:
    """The bubble of the interleaved schedule; sends shorter than a chunk are exposed at both ends only."""
    waits = 2 * (v * P - 1) if P > 1 else 0
    exact = v * h <= min(f, b) if v > 1 else not h
    # chunks are 1/v as long, and so are the ramps (narayanan2021efficient)
    return Bubble("interleaved", work, share((P - 1) * (f + b), v) + waits * h, exact)


def _dualpipe(P: int, M: int, *, f: Number, b: Number, w: Number, both: Number, h: Number) -> Bubble:
    """The bubble of the middle stages, which overlap least: all but P + 1 of their microbatches.

    The cost of sends is approximate.
    """
    work = (M - P - 1) * both + (P + 1) * (f + b)
    exact = not h and (P == 2 or (b - w == f >= w and 2 * f <= both <= f + b))
    # the formula of deepseek2024v3, table 2
    idle = (P // 2 - 1) * (both + b - 3 * w)
    return Bubble("dualpipe", work, idle + (share(M * (P - 1), P) + P - 1) * h if h else idle, exact)
