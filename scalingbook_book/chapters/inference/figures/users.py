"""Many users: what latency costs, and a draft that is checked at once."""

from dataclasses import replace

from scalingbook_book.chapters.inference.figures.steps import LLAMA, NARROW
from scalingbook_book.reader.explorers.view import Chart, Curve, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E

SHAPES = ("2x4", "4x4", "4x8", "8x8")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
S = 2048
GUESSES, KEPT, COST = 4, 3, 0.15  # drawn: drafted tokens, accepted ones, a draft's step over a plain one


def front() -> Figure:
    """What does latency cost?"""
    curves = {shape: _points(shape) for shape in SHAPES}
    fastest = min(ms for points in curves.values() for ms, _ in points)
    return Figure(
        key="inference.front",
        alt="Cost of a million answer tokens against the time of a token, a curve for each of 8, 16, 32 and 64 chips, the batch growing along "
        f"each from top left to bottom right. No curve gets below {fastest:.2g} ms.",
        caption="Along a curve the batch grows: cost falls by more than fifty times while latency rises a few times. More chips are faster only up to "
        "a point, and dearer. (LLaMA-3 70B, int8, TPU v5e at its listed price, 2,048 tokens; answers alone.)",
        parts=lambda wide: [_chart(curves)],
    )


def _points(shape: str) -> list[tuple[float, float]]:
    """Milliseconds a token and USD a million, for every batch that fits."""
    machine = Slice.of(V5E, shape)
    layout = replace(NARROW, tp=machine.chips, kv_batch=max(machine.chips // 8, 1))
    most = inference.largest_batch(LLAMA, layout, machine, S=S)
    steps = [inference.decode(LLAMA, machine, layout, batch=B, S=S) for B in BATCHES if most >= B]
    return [(1e3 * step.total_s, step.usd_per_million()) for step in steps]


def _chart(curves: dict[str, list[tuple[float, float]]]) -> Chart:
    marks = [
        Curve(
            f"{Slice.of(V5E, shape).chips} chips",
            [ms for ms, _ in points],
            [usd for _, usd in points],
            color=k,
        )
        for k, (shape, points) in enumerate(curves.items())
    ]
    return Chart(x=Scale("ms a token", "", "log"), y=Scale("USD a million tokens", "", "log"), marks=marks)


def draft() -> Figure:
    """Why is checking cheaper than writing?"""
    took = GUESSES * COST + 1
    return Figure(
        key="inference.draft",
        alt=f"Two lanes. Above, {KEPT + 1} plain steps, one token each. Below, {GUESSES} short drafted steps and one check of all of them: {KEPT} guesses are kept, "
        "one is refused, and the check adds a token of its own.",
        caption=f"One check reads weights and cache once for all guesses. {KEPT} of {GUESSES} kept and one token more are {KEPT + 1} tokens in the time of "
        f"{took:g} plain steps.",
        parts=lambda wide: [_lanes(wide)],
    )


def _lanes(wide: float) -> Sketch:
    left = 66.0
    unit = (wide - left - 8) / (KEPT + 1)
    shapes: list[Shape] = [
        Words(x=left - 10, y=30, text="plain", align="end"),
        Words(x=left - 10, y=96, text="draft", align="end"),
    ]
    shapes += [
        Area(x=left + unit * k, y=10, wide=unit - 3, high=30, text=f"{k + 1}", color=MEMORY)
        for k in range(KEPT + 1)
    ]
    x = left
    for k in range(GUESSES):
        color = CACHE if k < KEPT else IDLE
        shapes.append(Area(x=x, y=76, wide=unit * COST - 2, high=30, color=color, dashed=k >= KEPT))
        x += unit * COST
    shapes.append(Area(x=x, y=76, wide=unit - 3, high=30, text="check", color=MATH))
    shapes.append(Words(x=x + unit + 4, y=96, text=f"= {KEPT} + 1 tokens", align="start"))
    shapes.append(Words(x=left, y=66, text=f"{GUESSES} guesses, {KEPT} kept", align="start", quiet=True))
    return Sketch(wide, 116, shapes)
