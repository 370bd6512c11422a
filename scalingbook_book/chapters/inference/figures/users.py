"""Figures of serving many users: cost against latency, and speculative decoding."""

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
GUESSES, KEPT, COST = (
    4,
    3,
    0.15,
)  # in the drawing: draft tokens, accepted tokens, time of a draft step over a plain one


def front() -> Figure:
    """Cost per million output tokens against inter-token latency, for four slices."""
    curves = {shape: _points(shape) for shape in SHAPES}
    fastest = min(ms for points in curves.values() for ms, _ in points)
    return Figure(
        key="inference.front",
        alt="Cost of a million output tokens against the time per token, both axes logarithmic, with one curve for each of 8, 16, 32 and 64 chips. The batch grows along "
        f"each curve from top left to bottom right. No curve gets below {fastest:.2g} ms.",
        caption="Cost of output tokens against time per token, on 8 to 64 chips. The batch grows along each "
        "curve: the cost falls by a factor of more than fifty, while the latency rises only a few-"
        "fold. More chips are faster only up to a point, and a token costs more on them. (Llama 3 70B, int8, "
        "TPU v5e at its list price, context 2,048; decode only.)",
        parts=lambda wide: [_chart(curves)],
    )


def _points(shape: str) -> list[tuple[float, float]]:
    """Milliseconds per token and USD per million tokens, for every batch that fits."""
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
    return Chart(
        x=Scale("ms per token", "", "log"), y=Scale("USD per million tokens", "", "log"), marks=marks
    )


def draft() -> Figure:
    """A round of speculative decoding and the plain steps it replaces, on one time axis."""
    took = GUESSES * COST + 1
    return Figure(
        key="inference.draft",
        alt=f"Two rows on one time axis. Top: {KEPT + 1} plain steps, one token each. Bottom: {GUESSES} short draft steps and one verification of all of them. {KEPT} draft tokens are accepted, "
        "one is rejected, and the verification adds a token of its own.",
        caption="One round of speculative decoding, compared with plain decode steps. A verification reads "
        f"the weights and the cache once for all draft tokens. If {KEPT} of {GUESSES} are accepted "
        f"and the large model adds one, the round yields {KEPT + 1} tokens in the time of {took:g} "
        "plain steps. (To scale; the rejected draft token is dashed.)",
        parts=lambda wide: [_lanes(wide)],
    )


def _lanes(wide: float) -> Sketch:
    left = 104.0
    unit = (wide - left - 8) / (KEPT + 1)
    shapes: list[Shape] = [
        Words(x=left - 10, y=30, text="plain decode", align="end"),
        Words(x=left - 10, y=96, text="speculative", align="end"),
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
    shapes.append(Area(x=x, y=76, wide=unit - 3, high=30, text="verify", color=MATH))
    shapes.append(Words(x=x + unit + 4, y=96, text=f"= {KEPT} + 1 tokens", align="start"))
    shapes.append(
        Words(x=left, y=66, text=f"{GUESSES} draft tokens, {KEPT} accepted", align="start", quiet=True)
    )
    return Sketch(wide, 116, shapes)
