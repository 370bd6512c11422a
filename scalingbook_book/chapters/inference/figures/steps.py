"""One step: reading and writing on one clock, the loop with and without a cache, what a larger batch buys."""

from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference, models, rules
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import INT8, si

LLAMA = models.find("LLaMA-3 70B")
SIXTEEN = Slice.of(V5E, "4x4")
NARROW = Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
P = S = 8192
USERS = 64
TIMES = 32  # how much longer the bars of a step are drawn beside themselves


def step_of(B: int) -> inference.InferenceStep:
    """One decode step of the opening's server."""
    return inference.decode(LLAMA, SIXTEEN, NARROW, batch=B, S=S)


def two_phases() -> Figure:
    """Where does the time of a token go, reading and writing?"""
    read = inference.prefill(LLAMA, SIXTEEN, NARROW, P=P).total_s
    alone, many = step_of(1), step_of(USERS)
    return Figure(
        key="inference.two_phases",
        alt=f"A long bar: {P:,} tokens of a prompt are read in {si(read, 's')}, {si(read / P, 's')} each. On the same scale two short "
        f"bars, drawn again {TIMES} times as long, of a step that writes "
        f"one token: for one user {si(alone.total_s, 's')}, most of it reading weights; for {USERS} users {si(many.total_s, 's')}, with "
        "the same weights, and cache and network added.",
        caption=f"A token is read in {si(read / P, 's')} and written in {si(alone.total_s, 's')}: a step reads all weights, for one user or for "
        f"{USERS}. (LLaMA-3 70B in int8 on 16 TPU v5e, contexts of {S:,}. Beside the two short bars: the same bars, {TIMES} times as long.)",
        parts=lambda wide: [_phases(wide, read, {1: alone, USERS: many})],
    )


def _phases(wide: float, read: float, steps: dict[int, inference.InferenceStep]) -> Sketch:
    shapes: list[Shape] = [
        Words(x=4, y=16, text=f"reading {P:,} tokens: {si(read, 's')}", align="start"),
        Cells(x=4, y=24, rows=[[MATH] * 64], wide=(wide - 8) / 64, high=24, air=1),
    ]
    scale = (wide - 8) / read
    start = 4 + scale * max(step.total_s for step in steps.values()) + 44
    for k, (B, step) in enumerate(steps.items()):
        y = 84.0 + 62 * k
        short = scale * step.total_s
        products = step.terms.get("weights", 0) + step.terms.get("matmul", 0)
        rest = step.total_s - products - step.terms["KV"] - step.network_s
        parts = [
            Part("weights", products, MEMORY),
            Part("network", step.network_s, NETWORK),
            Part("cache", step.terms["KV"], CACHE),
            Part("", max(rest, 0.0), IDLE),
        ]
        users = f"{B} users, a token each" if B > 1 else "one user, one token"
        shapes.append(Words(x=4, y=y - 8, text=f"writing, {users}: {si(step.total_s, 's')}", align="start"))
        shapes.append(Cells(x=4, y=y, rows=[[MEMORY]], wide=short, high=26, air=0))
        shapes.append(Words(x=(4 + short + start) / 2, y=y + 17.5, text=f"× {TIMES}", bold=True))
        shapes += [
            Arrow(x0=short + 8, y0=y + h, x1=start - 4, y1=y + h, heads=0, dashed=True, thick=0.8)
            for h in (1, 25)
        ]
        shapes += strip(start, y, TIMES * short, 26, parts)
    return Sketch(wide, 84.0 + 62 * len(steps) - 26, shapes)


def loop() -> Figure:
    """What does a cache save?"""
    n = 8
    return Figure(
        key="inference.loop",
        alt="Two triangles, passes downward and tokens across. Without a cache every pass computes all tokens so far: a filled "
        "triangle. With one, every pass computes its newest token alone, the diagonal, and reads the kept rest, which is pale.",
        caption="Without a cache, n passes compute n(n + 1)/2 tokens; with one, n. What was computed for an old token does not change, since no token sees a later one.",
        parts=lambda wide: [_triangles(wide, n)],
    )


def _triangles(wide: float, n: int) -> Sketch:
    side = min((wide / 2 - 30) / n, 20.0)
    again = [[MATH if token <= row else None for token in range(n)] for row in range(n)]
    kept = [
        [MATH if token == row else CACHE if token < row else None for token in range(n)] for row in range(n)
    ]
    shapes: list[Shape] = []
    for k, (name, cells) in enumerate((("without a cache", again), ("with a cache", kept))):
        middle = wide * (2 * k + 1) / 4
        shapes.append(Words(x=middle, y=14, text=name, bold=True))
        shapes.append(Cells(x=middle - side * n / 2, y=26, rows=cells, wide=side, high=side))
    swatches, bottom = key(wide, 40 + side * n, {MATH: "computed", CACHE: "kept"})
    return Sketch(wide, bottom, [*shapes, *swatches])


def step() -> Figure:
    """What does a larger batch buy, and where does that end?"""
    over = inference.crossover_batch(LLAMA, S=S, weights=INT8, kv=INT8)
    critical = rules.critical_batch(V5E, weights=INT8).tokens
    largest = inference.largest_batch(LLAMA, NARROW, SIXTEEN, S=S)
    marks = {"cache = weights": over.sequences, "critical": critical, "memory full": float(largest)}
    said = ", ".join(f"{name} at {batch:.0f}" for name, batch in marks.items())
    return Figure(
        key="inference.step",
        alt=f"Time of a step over the batch, without network: weights flat, the cache rising from the first sequence on, their sum. Marks: {said}.",
        caption=f"Weights are read once for all, a cache for each. From {marks['cache = weights']:.0f} sequences on the cache outweighs the weights, "
        f"long before the arithmetic would bind ({critical:.0f}); at {largest} the memory is full. (LLaMA-3 70B, int8, 16 TPU v5e, {S:,} tokens.)",
        parts=lambda wide: [_times(marks)],
    )


def _times(marks: dict[str, float]) -> Chart:
    batches = list(range(1, 161, 3))
    cache_bytes = arithmetic.kv_cache(LLAMA, S, INT8).nbytes
    rows = [
        rules.decode_step(LLAMA.params, V5E, 16, batch=B, cache_bytes=cache_bytes, weights=INT8)
        for B in batches
    ]
    curves = (
        Curve("cache", batches, [row.kv_s for row in rows], color=CACHE),
        Curve("weights", batches, [row.weights_s for row in rows], color=MEMORY),
        Curve("arithmetic", batches, [row.matmul_s for row in rows], color=MATH),
        Curve("step", batches, [row.total_s for row in rows], color=IDLE, dashed=True),
    )
    lines = tuple(RefLine(name, at) for name, at in marks.items())
    return Chart(x=Scale("sequences", ""), y=Scale("time", "s"), marks=(*curves, *lines))
