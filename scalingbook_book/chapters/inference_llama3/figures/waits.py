"""Figures of prefill and decode on one server: a cycle of both, and one user's tokens."""

from functools import cache

from scalingbook_book.chapters.inference_llama3.figures.plan import LLAMA, SIXTEEN, B, G, P, spread
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, strip
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference, serving
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import INT8, percent, si
from scalingbook_lib.words import join_and

RATE, SLICES, USERS = 4.0, 5, 1500
CHUNK = 512
WINDOW_S = 2.0


def cycle() -> Figure:
    """Where does a server's time go while sequences come and go?"""
    served = inference.serve(LLAMA, SIXTEEN, spread(16), P=P, G=G, batch=B)
    reading = served.prefill_share
    return Figure(
        key="inference_llama3.cycle",
        alt=f"One cycle of {si(served.cycle_s, 's')} as a bar: {B} prefills, {percent(reading)} of it, and {G - 1} decode steps. Below, the steps between two prefills, enlarged.",
        caption="One cycle of a server that interleaves prefill and decode. Each of its slots serves one "
        f"request per cycle, so the server runs {B} prefills of {P:,} tokens and {G - 1} decode steps. The "
        f"prefills take {percent(reading)} of the time.",
        parts=lambda wide: [_cycle(wide, served)],
    )


def _cycle(wide: float, served: inference.Serving) -> Sketch:
    long, share = wide - 8, served.prefill_share
    steps_each = (G - 1) / B
    parts = [Part(f"{B} prefills", share, MATH), Part("steps", 1 - share, MEMORY)]
    zoomed = [
        Part("", 1 - share, MEMORY),
        Part(f"one prefill, {si(served.cycle_s * share / B, 's')}", share, MATH),
    ]
    shapes: list[Shape] = [
        Words(x=4, y=16, text=f"one cycle, {si(served.cycle_s, 's')}", align="start"),
        *strip(4, 24, long, 40, parts),
        Words(
            x=4,
            y=96,
            text=f"enlarged: {steps_each:.0f} steps, then a prefill",
            align="start",
        ),
    ]
    shapes += strip(4, 104, long, 32, zoomed)
    for k in range(1, round(steps_each)):
        x = 4 + long * (1 - share) * k / steps_each
        shapes.append(Arrow(x0=x, y0=104, x1=x, y1=136, heads=0, thick=0.6))
    return Sketch(wide, 142, shapes)


@cache
def runs() -> dict[str, serving.ServingRun]:
    """Five slices, four requests per second, three policies."""
    step = inference.case(LLAMA, SIXTEEN, spread(16))
    travel = inference.transfer(LLAMA, P=P, chip=V5E, chips=16, kv=INT8).seconds / P
    policies = {
        "interleaved": (serving.Continuous(B), SLICES),
        f"chunks of {CHUNK}": (serving.Chunked(B, B + CHUNK), SLICES),
        "disaggregated": (serving.Disaggregated(SLICES - 1, 1, B, travel), 1),
    }
    return {
        name: serving.simulate(
            serving.poisson(RATE / n, USERS // n, prompt=P, output=serving.geometric(G), seed=5), step, policy
        )
        for name, (policy, n) in policies.items()
    }


def gaps() -> Figure:
    """What does one user see?"""
    longest = {name: run.itl(99) for name, run in runs().items()}
    said = join_and([f"{si(gap, 's')} ({name})" for name, gap in longest.items()])
    return Figure(
        key="inference_llama3.gaps",
        alt=f"Three rows with a tick for each token that one user gets within {WINDOW_S:g} s. "
        "Interleaved: dense runs with long gaps. Chunked: even runs, some of them slow. "
        f"Disaggregated: evenly spaced. The 99th percentile of the gaps: {said}.",
        caption=f"Tokens of one user under three scheduling policies, on five slices at {RATE:g} requests "
        "per second. The median inter-token latency is nearly the same, but the 99th percentile is "
        f"{said}.",
        parts=lambda wide: [_ticks(wide, longest)],
    )


def _ticks(wide: float, longest: dict[str, float]) -> Sketch:
    left, high, thick = 110.0, 30.0, wide / 500
    shapes: list[Shape] = []
    for k, (name, gap) in enumerate(longest.items()):
        y = 8 + 62.0 * k
        shapes.append(Words(x=left - 8, y=y + 20, text=name, align="end"))
        shapes += [
            Area(
                x=left + (wide - left - 10) * at / WINDOW_S,
                y=y,
                wide=thick,
                high=high,
                color=MEMORY,
                shade=0.9,
            )
            for at in _seen(runs()[name])
        ]
        shapes.append(
            Words(
                x=left,
                y=y + high + 16,
                text=f"99th percentile: {si(gap, 's')}",
                align="start",
                quiet=True,
            )
        )
    y = 8 + 62.0 * len(longest) + 6
    shapes.append(Arrow(x0=left, y0=y, x1=wide - 6, y1=y))
    shapes.append(
        Words(x=wide - 8, y=y + 18, text=f"{WINDOW_S:g} s of one user's answer", align="end", quiet=True)
    )
    return Sketch(wide, y + 24, shapes)


def _seen(run: serving.ServingRun) -> list[float]:
    """The tokens of a user in the middle of the run, from its tenth of a second on, within the window."""
    for request in range(len(run.requests) // 2, len(run.requests)):
        times = run.token_times(request)
        if times and times[-1] - times[0] > WINDOW_S:
            return [at - times[0] for at in times if at - times[0] < WINDOW_S]
    raise ValueError(f"no user gets tokens for {WINDOW_S:g} s")
