"""Figures of decode steps: prefill and decode on one time axis, the KV cache, and time by batch."""

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

LLAMA = models.find("Llama 3 70B")
SIXTEEN = Slice.of(V5E, "4x4")
NARROW = Layout(tp=16, kv_batch=2, weights=INT8, kv=INT8)
P = S = 8192
USERS = 64
TIMES = 32  # magnification of the bars of a decode step


def step_of(B: int) -> inference.InferenceStep:
    """One decode step of the example that opens the chapter."""
    return inference.decode(LLAMA, SIXTEEN, NARROW, batch=B, S=S)


def two_phases() -> Figure:
    """The time of a prefill and of decode steps for one user and for many, to scale."""
    read = inference.prefill(LLAMA, SIXTEEN, NARROW, P=P).total_s
    alone, many = step_of(1), step_of(USERS)
    return Figure(
        key="inference.two_phases",
        alt=f"A long bar: the prefill of {P:,} tokens takes {si(read, 's')}, {si(read / P, 's')} per token. On the same scale, two short "
        f"bars of one decode step, which are drawn again {TIMES} times as long: for one user {si(alone.total_s, 's')}, most of it for reading the weights; for {USERS} users "
        f"{si(many.total_s, 's')}, with the same time for the weights, and more for cache and network.",
        caption=f"Time of one prefill and of two decode steps. Prefill takes {si(read / P, 's')} per token, "
        f"but decode takes {si(alone.total_s, 's')}, because each decode step reads all weights, "
        f"whether for one user or for {USERS}. (Llama 3 70B in int8 on 16 TPU v5e, context {S:,}. To "
        f"scale; the two short bars are repeated to their right, {TIMES} times as long.)",
        parts=lambda wide: [_phases(wide, read, {1: alone, USERS: many})],
    )


def _phases(wide: float, read: float, steps: dict[int, inference.InferenceStep]) -> Sketch:
    shapes: list[Shape] = [
        Words(x=4, y=16, text=f"prefill, {P:,} tokens: {si(read, 's')}", align="start"),
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
        users = f"{B} users, one token each" if B > 1 else "one user, one token"
        shapes.append(
            Words(x=4, y=y - 8, text=f"decode step, {users}: {si(step.total_s, 's')}", align="start")
        )
        shapes.append(Cells(x=4, y=y, rows=[[MEMORY]], wide=short, high=26, air=0))
        shapes.append(Words(x=(4 + short + start) / 2, y=y + 17.5, text=f"× {TIMES}", bold=True))
        shapes += [
            Arrow(x0=short + 8, y0=y + h, x1=start - 4, y1=y + h, heads=0, dashed=True, thick=0.8)
            for h in (1, 25)
        ]
        shapes += strip(start, y, TIMES * short, 26, parts)
    return Sketch(wide, 84.0 + 62 * len(steps) - 26, shapes)


def loop() -> Figure:
    """Tokens computed in each pass, without a KV cache and with one."""
    n = 8
    return Figure(
        key="inference.loop",
        alt="Two triangles, passes downward and tokens across. Without a cache, every pass computes all tokens so far, which fills the "
        "triangle. With a cache, every pass computes only its newest token, on the diagonal, and reads the cached keys and values of the others.",
        caption="Tokens that each pass computes, without and with a KV cache. Without a cache, n passes "
        "compute n(n + 1)/2 tokens. With a cache, they compute n, because the keys and values of "
        "earlier tokens never change.",
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
        left = middle - side * n / 2
        shapes.append(Words(x=middle, y=14, text=name, bold=True))
        shapes.append(Words(x=left, y=34, text="tokens →", align="start", quiet=True))
        shapes.append(Cells(x=left, y=42, rows=cells, wide=side, high=side))
        shapes.append(Words(x=left, y=58 + side * n, text="↓ passes", align="start", quiet=True))
    swatches, bottom = key(wide, 72 + side * n, {MATH: "computed", CACHE: "read from the cache"})
    return Sketch(wide, bottom, [*shapes, *swatches])


def step() -> Figure:
    """The parts of a decode step over the batch size."""
    over = inference.crossover_batch(LLAMA, S=S, weights=INT8, kv=INT8)
    critical = rules.critical_batch(V5E, weights=INT8).tokens
    largest = inference.largest_batch(LLAMA, NARROW, SIXTEEN, S=S)
    marks = {"cache = weights": over.sequences, "critical batch": critical, "memory full": float(largest)}
    said = ", ".join(f"{name} at {batch:.0f}" for name, batch in marks.items())
    return Figure(
        key="inference.step",
        alt=f"Time over the number of sequences, without the network: the time to read the weights is constant, the time to read the caches rises in proportion to the batch, and so does compute, more slowly; the step is dashed. Marks: {said}.",
        caption="Time of a decode step against the batch size, by component. The weights are read once for "
        f"all sequences, but every sequence has its own cache. At {marks['cache = weights']:.0f} "
        "sequences, reading the caches takes as long as reading the weights, long before the step "
        f"would be compute-bound ({critical:.0f}). At {largest}, the memory is full. (Llama 3 70B, "
        f"int8, 16 TPU v5e, {S:,} tokens, without the network.)",
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
        Curve("compute", batches, [row.matmul_s for row in rows], color=MATH),
        Curve("step", batches, [row.total_s for row in rows], color=IDLE, dashed=True),
    )
    lines = tuple(RefLine(name, at) for name, at in marks.items())
    return Chart(x=Scale("sequences (batch size)", ""), y=Scale("time", "s"), marks=(*curves, *lines))
