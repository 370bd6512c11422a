"""Figures of one RL step: its timeline, its data flow, and the long tail of its rollouts."""

from scalingbook_book.chapters.posttraining.case import (
    ANSWERS,
    ENGINE,
    LLAMA,
    MACHINE,
    MOST,
    SLOTS,
    SPREAD,
    P,
    asked,
    played,
    splits,
)
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale, Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference
from scalingbook_lib.models.arithmetic import training_state
from scalingbook_lib.planner import Split
from scalingbook_lib.serving import refilled_tokens_per_s, sample_lengths
from scalingbook_lib.units import percent, si


def three_steps() -> Figure:
    """Timelines of one step: equal lengths, variable lengths, and two asynchronous pools."""
    even, uneven = splits(0.0).best("colocated"), splits().best("colocated")
    apart = splits().best("fully asynchronous")
    spans = [*_colocated("equal lengths", even), *_colocated("variable lengths", uneven)]
    spans += [
        Span(
            f"pool of {apart.rollout_chips} chips",
            0,
            apart.generate_s,
            f"generate {si(apart.generate_s, 's')}",
            MEMORY,
        ),
        Span(f"pool of {apart.training_chips} chips", 0, apart.score_s, "log-probs", NETWORK),
        Span(
            f"pool of {apart.training_chips} chips",
            apart.score_s,
            apart.score_s + apart.train_s,
            "train",
            MATH,
        ),
    ]
    more = percent(uneven.total_s / even.total_s - 1)
    return Figure(
        key="posttraining.three_steps",
        alt=f"A timeline with four rows. With responses of equal length: {_said(even)}. With variable lengths: {_said(uneven)}. In two pools: "
        f"{apart.rollout_chips} chips generate for {si(apart.generate_s, 's')}, while {apart.training_chips} compute log-probabilities and train.",
        caption="Timelines of one RL step of a 70B model on 256 H100s, at peak rates. Variable response "
        f"lengths make the step {more} longer, although their mean is slightly lower. Two pools of "
        "chips that never wait for the longest response recover most of that: "
        f"{si(apart.total_s, 's')} per step.",
        parts=lambda wide: [lanes(wide, spans)],
    )


def _said(one: Split) -> str:
    return f"generation {si(one.generate_s, 's')}, log-probabilities {si(one.score_s, 's')}, training {si(one.train_s, 's')}"


def _colocated(name: str, one: Split) -> list[Span]:
    a, b = one.generate_s, one.generate_s + one.score_s
    return [
        Span(name, 0, a, f"generate {si(a, 's')}", MEMORY),
        Span(name, a, b, "log-probs", NETWORK),
        Span(name, b, one.total_s, "train", MATH),
    ]


def loop() -> Figure:
    """Data flow of one step: responses to the trainer, weights to the engines."""
    tokens = 4 * asked().tokens  # a token id takes four bytes
    weights, state = 2 * LLAMA.params, training_state(LLAMA).total
    return Figure(
        key="posttraining.loop",
        alt=f"Two boxes. Each inference engine holds {si(weights, 'B')} of weights; the trainer holds {si(state, 'B')} of training state. "
        f"An arrow labeled {si(tokens, 'B')} leads from the engines to the trainer, and one labeled {si(weights, 'B')} back to every engine.",
        caption="What generation and training exchange in each step of the RL loop. The rollouts are only "
        f"{si(tokens, 'B')} of tokens, but every engine needs the whole model back, "
        f"{si(weights, 'B')}. (Llama 3 70B, {ANSWERS:,} responses.)",
        parts=lambda wide: [_boxes(wide, tokens, weights, state)],
    )


def _boxes(wide: float, tokens: float, weights: float, state: float) -> Sketch:
    box = 0.31 * wide
    left, right, high = 4.0, wide - box - 4, 130.0
    middle = wide / 2
    writes = f"engines\ngenerate\n{si(weights, 'B')}\nweights each"
    trains = f"trainer\nlog-probs,\nupdate\n{si(state, 'B')}\nof state"
    shapes: list[Shape] = [
        Area(x=left, y=8, wide=box, high=high, text=writes, color=MEMORY),
        Area(x=right, y=8, wide=box, high=high, text=trains, color=MATH),
        Words(x=middle, y=22, text=f"rollouts\n{si(tokens, 'B')}"),
        Arrow(x0=left + box + 6, y0=50, x1=right - 6, y1=50),
        Arrow(x0=right - 6, y0=86, x1=left + box + 6, y1=86, thick=4, color=NETWORK),
        Words(x=middle, y=108, text=f"new weights\n{si(weights, 'B')}"),
    ]
    return Sketch(wide, high + 16, shapes)


def tail() -> Figure:
    """Responses still running over time, for equal and for variable lengths."""
    even, uneven = played(0.0), played()
    half = uneven.alive(uneven.seconds / 2)
    rate = refilled_tokens_per_s(
        inference.case(LLAMA, MACHINE, ENGINE),
        sample_lengths(SLOTS, 8192, SPREAD, max_tokens=MOST),
        P=P,
        slots=SLOTS,
    )
    ratio = rate / uneven.tokens_per_s
    return Figure(
        key="posttraining.tail",
        alt=f"Responses still running over time. Those of equal length all end at {si(even.seconds, 's')}. With variable lengths, their number falls quickly at first, to {half} at half of the "
        f"time, and the last one ends at {si(uneven.seconds, 's')}.",
        caption=f"Responses still running over the time of {SLOTS} rollouts on eight H100s. During the "
        f"second half of the time, at most {half} of {SLOTS} slots are in use. If free slots were "
        f"refilled at once, the engine would generate {ratio:.2g} times as many tokens per second.",
        parts=lambda wide: [_alive(even.end_times_s, uneven.end_times_s)],
    )


def _alive(even: list[float], uneven: list[float]) -> Chart:
    left = list(range(SLOTS, 0, -1))
    ys = [y for n in left for y in (n, n - 1)]
    xs = [x for end in uneven for x in (end, end)]
    flat = [0.0, even[-1], even[-1]]
    marks = (
        Curve("variable lengths", [0.0, *xs], [SLOTS, *ys], 0),
        Curve("equal lengths", flat, [SLOTS, SLOTS, 0], 1, dashed=True),
        RefLine("half time", uneven[-1] / 2),
        Points("", [uneven[-1]], [0], ["longest response"], 0),
    )
    return Chart(Scale("time", "s"), Scale("responses running", "", "linear", 0, 1.1 * SLOTS), marks)
