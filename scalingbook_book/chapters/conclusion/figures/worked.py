"""Figures of the chapter's example: its seven questions as a loop, and its prediction step by step."""

from dataclasses import dataclass

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import calibrated, models, training
from scalingbook_lib.evidence import training as published
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V6E
from scalingbook_lib.training import Plan
from scalingbook_lib.units import count, percent, si

FALCON, POD = models.find("Falcon 40B"), Slice.of(V6E, "16x16")
PLAN = Plan(fsdp=POD.chips, remat="selective")
PEAK, REAL = training.PEAK, calibrated.training(V6E)
PARTS = {"compute": MATH, "memory": MEMORY, "network": NETWORK}

# Numbers to remember: parameters, tokens of a step, chips, their rates; L and D of the model.
P, B, N, C, LINK = 40e9, 1e6, POD.chips, 9e14, 100e9
MATH_S = 6 * P * B / (N * C)
PASSES, GATHERS, LINKS = 2, 3, 4  # microbatches; the weights twice and the gradients; links of a chip
NETWORK_S = PASSES * GATHERS * 2 * P / (LINKS * LINK)
HELD = 16 * P / N + 7 * 2 * FALCON.L * (B / N) * FALCON.D


@dataclass(frozen=True, slots=True)
class Card:
    """A question, its answer for Falcon, and its color."""

    question: str
    answer: str
    color: int | None = None


CARDS = (
    Card("1  FLOPs", f"6PB, over {N} chips:\n{si(MATH_S, 's')}", MATH),
    Card("2  bytes held", f"{HELD / 1e9:.0f} GB of {V6E.hbm_bytes / 1e9:.0f}: in\ntwo microbatches", MEMORY),
    Card("3  bytes moved", f"{PASSES} × {GATHERS} × {si(2 * P, 'B')}:\n{si(NETWORK_S, 's')}", NETWORK),
    Card("4  bottleneck", f"{si(NETWORK_S, 's')} > {si(MATH_S, 's')}:\nthe network", NETWORK),
    Card("5  batch needed", f"{count(round(C / (LINKS * LINK)))} tokens per\nmicrobatch"),
    Card("6  sharding", f"FSDP={N},\nTP=1"),
    Card("7  overlap", f"full: {si(NETWORK_S, 's')},\nnone: {si(MATH_S + NETWORK_S, 's')}"),
)


def step(efficiency: training.TrainingEfficiency) -> training.TrainingStep:
    """The training step of the chapter at these efficiencies."""
    return training.step(FALCON, POD, PLAN, batch=512, T=2048, efficiency=efficiency)


def seven_questions() -> Figure:
    """In which order are the seven questions asked, and when do you go back?"""
    said = "; ".join(f"{card.question.strip()}: {' '.join(card.answer.split())}" for card in CARDS)
    return Figure(
        key="conclusion.seven_questions",
        alt=f"Seven cards joined by arrows, each with Falcon's answer. {said}. A dashed arrow leads from the sharding back to the "
        "bytes moved.",
        caption="The seven questions of an estimate, with the answers for Falcon 40B. Each question needs "
        "the answers before it. A second round is normal, because a different sharding or "
        "microbatch size changes the bytes that have to move (dashed).",
        parts=lambda wide: [_loop(wide) if wide > 400 else _list(wide)],
    )


def _card(card: Card, x: float, y: float, wide: float) -> list[Shape]:
    return [
        Area(x=x, y=y, wide=wide, high=70, color=card.color, shade=0.16 if card.color is not None else 0.03),
        Words(x=x + wide / 2, y=y + 20, text=card.question, bold=True),
        Words(x=x + wide / 2, y=y + 40, text=card.answer, size=12),
    ]


def _loop(wide: float) -> Sketch:
    """Four cards to the right, and three below them back to the left, with sharding below bytes moved."""
    across, air = 146.0, 28.0
    column = (0, 1, 2, 3, 3, 2, 1)
    shapes: list[Shape] = []
    for k, card in enumerate(CARDS):
        x, y = 6 + column[k] * (across + air), 4.0 + 112 * (k > 3)
        shapes += _card(card, x, y, across)
        if k < 3:
            shapes.append(Arrow(x0=x + across + 2, y0=y + 35, x1=x + across + air - 2, y1=y + 35))
        elif 3 < k < 6:
            shapes.append(Arrow(x0=x - 2, y0=y + 35, x1=x - air + 2, y1=y + 35))
    last, back = (6 + (across + air) * k + across / 2 for k in (3, 2))
    shapes.append(Arrow(x0=last, y0=76, x1=last, y1=114))
    shapes.append(Arrow(x0=back, y0=114, x1=back, y1=76, dashed=True))
    return Sketch(wide, 192, shapes)


def _list(wide: float) -> Sketch:
    shapes: list[Shape] = []
    left, across, high = 20.0, wide - 100, 88
    for k, card in enumerate(CARDS):
        shapes += _card(card, left, 4.0 + high * k, across)
        if k < len(CARDS) - 1:
            middle = left + across / 2
            shapes.append(Arrow(x0=middle, y0=76.0 + high * k, x1=middle, y1=91.0 + high * k))
    right, top = left + across + 3, 39.0
    shapes.append(Arrow(x0=right, y0=top + 5 * high, x1=right, y1=top + 2 * high, dashed=True, bend=0.3))
    return Sketch(wide, 8.0 + high * len(CARDS), shapes)


def staircase() -> Figure:
    """How does the prediction grow from the first number by hand to one with an error band?"""
    peak, real = step(PEAK), step(REAL)
    band = published.prediction_interval(experts=False)
    low, high = real.total_s / band, real.total_s * band
    return Figure(
        key="conclusion.staircase",
        alt=f"Five bars on one time axis. By hand: compute {si(MATH_S, 's')}, then the network {si(NETWORK_S, 's')}. By the planner at "
        f"peak rates: {si(peak.total_s, 's')}, including {si(peak.terms['HBM traffic'], 's')} of memory traffic. At measured "
        f"efficiencies: {si(real.total_s, 's')}, with a band from {si(low, 's')} to {si(high, 's', 3)}.",
        caption="Predictions for one training step, from a hand estimate to measured efficiencies. The "
        f"prediction grows from {si(MATH_S, 's')} to {si(real.total_s, 's')}, and every increase has "
        f"a cause. Counting everything adds {percent(peak.total_s / MATH_S - 1, 2)}, and "
        f"efficiencies below the peak add another {percent(real.total_s / peak.total_s - 1, 2)}.",
        parts=lambda wide: [_stairs(wide, {"peak": parts(peak), "real": parts(real)}, (low, high))],
    )


def parts(found: training.TrainingStep) -> list[Part]:
    """The terms of a step by what they keep busy; they add up to the step."""
    memory, waits = (
        found.terms["HBM traffic"] + found.terms["optimizer"],
        sum(found.exposed.values()),
    )
    sizes = (found.total_s - memory - waits, memory, waits)
    return [Part("", size, color) for size, color in zip(sizes, PARTS.values(), strict=True) if size]


def _stairs(wide: float, steps: dict[str, list[Part]], band: tuple[float, float]) -> Sketch:
    scale = (wide - 66) / band[1]
    rows = {
        "by hand: 6PB FLOPs at the peak rate": [Part("", MATH_S, MATH)],
        "by hand: the network, which takes longer": [Part("", NETWORK_S, NETWORK)],
        "planner: all FLOPs and HBM traffic, peak rates": steps["peak"],
        "planner: at measured efficiencies": steps["real"],
    }
    shapes: list[Shape] = []
    y = 4.0
    for name, made in rows.items():
        whole = sum(part.size for part in made)
        shapes.append(Words(x=4, y=y + 12, text=name, align="start", size=12))
        shapes += strip(4, y + 18, scale * whole, 24, made)
        shapes.append(Words(x=10 + scale * whole, y=y + 35, text=si(whole, "s"), align="start", bold=True))
        y += 54
    low, high = band
    shapes.append(
        Words(x=4, y=y + 12, text="80% error band, for software not in the fit", align="start", size=12)
    )
    shapes.append(
        Area(
            x=4 + scale * low,
            y=y + 18,
            wide=scale * (high - low),
            high=24,
            color=IDLE,
            shade=0.15,
            dashed=True,
        )
    )
    shapes.append(Words(x=scale * low - 4, y=y + 35, text=si(low, "s"), align="end", bold=True))
    shapes.append(Words(x=10 + scale * high, y=y + 35, text=f"{high:.2f} s", align="start", bold=True))
    swatches, end = key(wide, y + 56, {color: name for name, color in PARTS.items()})
    return Sketch(wide, end, [*shapes, *swatches])
