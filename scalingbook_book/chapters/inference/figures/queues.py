"""Figures of a loaded server: the states of its queue, and the time to first token up to the knee, simulated and
by the formulas of the page.
"""

from functools import lru_cache
from math import exp
from statistics import NormalDist

from scalingbook_book.chapters.inference.figures.steps import LLAMA, NARROW
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Brace,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference, serving
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import si

SIXTEEN = Slice.of(V5E, "4x4")
P, G, B = 1024, 256, 32  # prompt and output tokens, and slots
SIGMA, LONGEST = 0.4, 4096  # of the lognormal prompts
REQUESTS = 10_000
SIMULATED = (1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 5.25)  # requests per second
SLO_S = 1.0
NEAR = 5.0  # a load close to the maximum


def states() -> Figure:
    """Which states can the server be in, and at which rates does it change between them?"""
    return Figure(
        key="inference.states",
        alt=f"A chain of boxes for 0, 1, 2, up to {B} and more requests in the system. An arrow from each box to the next "
        "is labeled with the arrival rate λ, and an arrow back with the completion rate: μ_1 from box 1, μ_2 from box 2. "
        f"From box {B} and every box to its right, the rate back is μ_{B}, because there are only {B} slots.",
        caption=f"States of a server with {B} slots, by the number of requests in the system. Arrivals move it one state "
        "to the right, at the same rate λ in every state. Completions move it one state to the left, at a rate that "
        f"rises with the number of busy slots. Above {B}, requests wait, and the rate does not rise any more.",
        parts=lambda wide: [_chain(wide)],
    )


def _chain(wide: float) -> Sketch:
    names = ("0", "1", "2", "…", f"{B}", f"{B + 1}", "…")
    rates = ("1", "2", "3", *[f"{B}"] * 3)  # of the arrows to the left
    side, y = min(44.0, wide / 11), 50.0
    gap = (wide - 8 - len(names) * side) / (len(names) - 1)
    lefts = [4 + k * (side + gap) for k in range(len(names))]
    shapes: list[Shape] = []
    for name, x, k in zip(names, lefts, range(len(names)), strict=True):
        if name == "…":
            shapes.append(Words(x=x + side / 2, y=y + side / 2 + 4, text=name))
        else:
            color = IDLE if k == 0 else MATH if k < 5 else MEMORY
            shapes.append(Area(x=x, y=y, wide=side, high=side, text=name, color=color))
    for k, rate in enumerate(rates):
        here, there = lefts[k] + side, lefts[k + 1]
        shapes.append(Arrow(x0=here + 2, y0=y + side * 0.25, x1=there - 2, y1=y + side * 0.25, color=NETWORK))
        shapes.append(Arrow(x0=there - 2, y0=y + side * 0.75, x1=here + 2, y1=y + side * 0.75, color=MATH))
        shapes.append(Words(x=(here + there) / 2, y=y - 2, text="λ"))
        shapes.append(Words(x=(here + there) / 2, y=y + side + 12, text=f"μ_{{{rate}}}"))
    under = y + side + 26
    shapes.append(Words(x=4, y=18, text="requests in the system", align="start", bold=True))
    shapes.append(Brace(x0=lefts[1], x1=lefts[4] + side, y=under, text="a slot for each request"))
    shapes.append(Brace(x0=lefts[5], x1=lefts[6] + side, y=under, text="requests wait"))
    return Sketch(wide, under + 30, shapes)


def completions_per_s() -> list[float]:
    """The requests per second that 1, 2, ... B busy slots complete."""
    return [
        inference.serve(LLAMA, SIXTEEN, NARROW, P=P, G=G, batch=n).requests_per_s for n in range(1, B + 1)
    ]


def prefill_s(parts: int = 100) -> list[float]:
    """The seconds of a prefill for equally likely prompt lengths."""
    normal = NormalDist()
    lengths = [P * exp(SIGMA * normal.inv_cdf((k + 0.5) / parts) - SIGMA * SIGMA / 2) for k in range(parts)]
    return [
        inference.prefill(LLAMA, SIXTEEN, NARROW, P=min(round(length), LONGEST)).total_s for length in lengths
    ]


@lru_cache(maxsize=16)
def simulated(rate: float) -> tuple[float, float]:
    """The median and the 99th percentile of the TTFT, in seconds."""
    requests = serving.poisson(
        rate,
        REQUESTS,
        prompt=serving.lognormal(P, SIGMA, LONGEST),
        output=serving.geometric(G),
        seed=1,
    )
    run = serving.simulate(requests, inference.case(LLAMA, SIXTEEN, NARROW), serving.Continuous(B))
    return run.ttft(50), run.ttft(99)


def saturation() -> Figure:
    """How does the time to first token grow with the load, and where does it leave its flat part?"""
    slots, prompts = completions_per_s(), prefill_s()
    most = slots[-1]
    rates = [k / 10 for k in range(2, int(10 * most) + 1)]
    by_formula = {
        percentile: [
            inference.ttft_quantile(percentile, rate, prefill_s=prompts, completions_per_s=slots)
            for rate in rates
        ]
        for percentile in (50, 99)
    }
    low, late = by_formula[50][0], by_formula[50][rates.index(NEAR)]
    tail = by_formula[99][rates.index(NEAR)]
    met = max(rate for rate, ttft_s in zip(rates, by_formula[99], strict=True) if ttft_s <= SLO_S)
    longer = max(
        simulated(rate)[1] / by_formula[99][rates.index(rate)] for rate in SIMULATED if rate in rates
    )
    return Figure(
        key="inference.saturation",
        alt="TTFT against requests per second, the vertical axis logarithmic. The median stays near "
        f"{si(low, 's')} and is still {si(late, 's')} at {NEAR:g} requests per second. The 99th percentile rises "
        f"slowly from {si(by_formula[99][0], 's')}, exceeds {SLO_S:g} s above {met:g} requests per second "
        f"and is {si(tail, 's')} at {NEAR:g}. Vertical lines mark the knee at {met:g} and the maximum load at "
        f"{most:.2f}. Simulated dots lie on the curves, except for the P99 near the knee, where they are higher.",
        caption=f"Time to first token against load, with interleaved prefill in {B} slots. The slots complete at most "
        f"{most:.2f} requests per second, and above this load, the queue grows without end. The tail turns upward "
        f"before the median: at {NEAR:g} requests per second, the median is {si(late, 's')}, but the 99th percentile is "
        f"{si(tail, 's')}. (Lines: the formulas; dots: {REQUESTS:,} simulated requests each. Near the knee, the simulated P99 "
        f"is up to {longer:.1f} times as long as the formula says.)",
        parts=lambda _wide: [
            Chart(
                Scale("requests per second", "", "linear", 0, 6),
                Scale("TTFT", "s", "log", 0.05, 20),
                (
                    Curve("median", rates, by_formula[50], MATH),
                    Curve("P99", rates, by_formula[99], NETWORK),
                    Points("", list(SIMULATED), [simulated(rate)[0] for rate in SIMULATED], (), MATH),
                    Points("", list(SIMULATED), [simulated(rate)[1] for rate in SIMULATED], (), NETWORK),
                    RefLine(f"knee: {met:g}", met),
                    RefLine(f"maximum: {most:.2f}", most),
                    RefLine(f"{SLO_S:g} s", SLO_S, "y"),
                ),
            )
        ],
    )
