"""One step of reinforcement learning: who works when, what travels, and how a batch of answers ends."""

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
    """Why does one step take so long when no FLOP was added?"""
    even, uneven = splits(0.0).best("together"), splits().best("together")
    apart = splits().best("apart, refilled")
    spans = [*_together("all equal", even), *_together("unequal", uneven)]
    spans += [
        Span(
            f"{apart.writing} chips write", 0, apart.generate_s, f"write {si(apart.generate_s, 's')}", MEMORY
        ),
        Span(f"{apart.training} chips train", 0, apart.score_s, "score", NETWORK),
        Span(f"{apart.training} chips train", apart.score_s, apart.score_s + apart.train_s, "train", MATH),
    ]
    more = percent(uneven.total_s / even.total_s - 1)
    return Figure(
        key="posttraining.three_steps",
        alt=f"Four lanes of time. With equal answers: {_said(even)}. With unequal ones: {_said(uneven)}. Two pools side by side: "
        f"{apart.writing} chips write for {si(apart.generate_s, 's')} while {apart.training} score and train.",
        caption=f"One step on 256 H100 at documented peaks. Unequal answers of nearly the same mean make it {more} longer. "
        f"Two pools that never wait for the longest get most of that back, {si(apart.total_s, 's')} a step.",
        parts=lambda wide: [lanes(wide, spans)],
    )


def _said(one: Split) -> str:
    return (
        f"writing {si(one.generate_s, 's')}, scoring {si(one.score_s, 's')}, training {si(one.train_s, 's')}"
    )


def _together(name: str, one: Split) -> list[Span]:
    a, b = one.generate_s, one.generate_s + one.score_s
    return [
        Span(name, 0, a, f"write {si(a, 's')}", MEMORY),
        Span(name, a, b, "score", NETWORK),
        Span(name, b, one.total_s, "train", MATH),
    ]


def loop() -> Figure:
    """What travels in one step?"""
    tokens = 4 * asked().tokens  # a token's number in four bytes
    weights, state = 2 * LLAMA.params, training_state(LLAMA).total
    return Figure(
        key="posttraining.loop",
        alt=f"Two boxes. Engines that write hold {si(weights, 'B')} of weights each; trainers hold {si(state, 'B')} of state. "
        f"An arrow of {si(tokens, 'B')} leads from the engines to the trainers, one of {si(weights, 'B')} back to every engine.",
        caption=f"Answers are small, {si(tokens, 'B')} of tokens a step; what comes back is the whole model, {si(weights, 'B')} to every engine. "
        f"(LLaMA-3 70B, {ANSWERS:,} answers.)",
        parts=lambda wide: [_boxes(wide, tokens, weights, state)],
    )


def _boxes(wide: float, tokens: float, weights: float, state: float) -> Sketch:
    box = 0.31 * wide
    left, right, high = 4.0, wide - box - 4, 130.0
    middle = wide / 2
    writes = f"engines\nwrite\n{si(weights, 'B')}\nweights each"
    trains = f"trainers\nscore, train\n{si(state, 'B')}\nof state"
    shapes: list[Shape] = [
        Area(x=left, y=8, wide=box, high=high, text=writes, color=MEMORY),
        Area(x=right, y=8, wide=box, high=high, text=trains, color=MATH),
        Words(x=middle, y=22, text=f"answers\n{si(tokens, 'B')}"),
        Arrow(x0=left + box + 6, y0=50, x1=right - 6, y1=50),
        Arrow(x0=right - 6, y0=86, x1=left + box + 6, y1=86, thick=4, color=NETWORK),
        Words(x=middle, y=108, text=f"new weights\n{si(weights, 'B')}"),
    ]
    return Sketch(wide, high + 16, shapes)


def tail() -> Figure:
    """How does a batch of unequal answers end?"""
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
        alt=f"Answers still being written against time. Equal ones all end at {si(even.seconds, 's')}. Unequal ones fall fast at first, to {half} at half of the "
        f"time, and the last ends at {si(uneven.seconds, 's')}.",
        caption=f"{SLOTS} answers on eight H100. In the second half of the time at most {half} of {SLOTS} slots are in use. Slots that are refilled at once would write "
        f"{ratio:.2g} times as many tokens a second.",
        parts=lambda wide: [_alive(even.end_times_s, uneven.end_times_s)],
    )


def _alive(even: list[float], uneven: list[float]) -> Chart:
    left = list(range(SLOTS, 0, -1))
    ys = [y for n in left for y in (n, n - 1)]
    xs = [x for end in uneven for x in (end, end)]
    flat = [0.0, even[-1], even[-1]]
    marks = (
        Curve("unequal", [0.0, *xs], [SLOTS, *ys], 0),
        Curve("equal", flat, [SLOTS, SLOTS, 0], 1, dashed=True),
        RefLine("half of the time", uneven[-1] / 2),
        Points("", [uneven[-1]], [0], ["the longest"], 0),
    )
    return Chart(Scale("time", "s"), Scale("answers being written", "", "linear", 0, 1.1 * SLOTS), marks)
