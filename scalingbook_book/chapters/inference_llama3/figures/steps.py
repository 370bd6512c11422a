"""Figures of a decode step of the 70B model: memory on a slice, its time, message hops, engine overheads."""

from scalingbook_book.chapters.inference_llama3.figures.plan import LLAMA, SIXTEEN, B, S, spread, step_on
from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import calibrated, inference, rules
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, INT4, INT8, si

SMALLEST = {"4x4": BF16, "2x4": INT8, "2x2": INT4}
CORNERS = ("4x4", "4x8")


def tanks() -> Figure:
    """How many sequences fit on the smallest slice?"""
    held = {
        shape: inference.largest_batch(
            LLAMA, spread(Slice.of(V5E, shape).chips, dtype, dtype), Slice.of(V5E, shape), S=S
        )
        for shape, dtype in SMALLEST.items()
    }
    said = ", ".join(
        f"{most} on a {shape.replace('x', ' × ')} in {SMALLEST[shape]}" for shape, most in held.items()
    )
    return Figure(
        key="inference_llama3.tanks",
        alt=f"Three tanks: the memory of 16, 8 and 4 chips, each half as high as the one before. Half of each is filled with weights and the rest with sequences: {said}.",
        caption="Memory of three slices that serve the model with bf16, int8 and int4 elements. Halving "
        "both the bytes per element and the number of chips leaves the proportions unchanged: the weights "
        "take half of each memory, and the rest holds the same number of sequences, up to rounding. "
        "(Heights are proportional to bytes.)",
        parts=lambda wide: [_tanks(wide, held)],
    )


def _tanks(wide: float, held: dict[str, int]) -> Sketch:
    across, tall = wide / 3, 200.0
    floor = tall + 30
    broad = min(across - 30, 120.0)
    shapes: list[Shape] = []
    for k, (shape, dtype) in enumerate(SMALLEST.items()):
        n, x, middle = Slice.of(V5E, shape).chips, across * (k + 0.5) - broad / 2, across * (k + 0.5)
        high = tall * n / 16
        filled = high * LLAMA.params * dtype.bytes / (n * V5E.hbm_bytes)
        one = high * arithmetic.kv_cache(LLAMA, S, dtype).nbytes / (n * V5E.hbm_bytes)
        shapes.append(Area(x=x, y=floor - high, wide=broad, high=high, color=IDLE, shade=0.04))
        shapes.append(Area(x=x, y=floor - filled, wide=broad, high=filled, color=MEMORY, text="weights"))
        shapes.append(
            Area(
                x=x,
                y=floor - filled - one * held[shape],
                wide=broad,
                high=one * held[shape],
                color=CACHE,
                text=f"{held[shape]}\nsequences" if k < 1 else "",
            )
        )
        if k:
            shapes.append(Words(x=middle, y=floor - high - 8, text=f"{held[shape]} sequences"))
        shapes.append(Words(x=middle, y=floor + 18, text=f"{shape.replace('x', ' × ')}, {dtype}", bold=True))
        shapes.append(Words(x=middle, y=floor + 35, text=si(n * V5E.hbm_bytes, "B"), quiet=True))
    return Sketch(wide, floor + 42, shapes)


def step() -> Figure:
    """Where does the time of a step go?"""
    rule = rules.decode_step(
        LLAMA.params, V5E, 16, batch=B, cache_bytes=arithmetic.kv_cache(LLAMA, S, INT8).nbytes, weights=INT8
    )
    real = {shape: step_on(shape) for shape in CORNERS}
    lanes = {"no network": (rule.weights_s, rule.kv_s, 0.0, 0.0)} | {
        shape.replace("x", " × "): _parts(one) for shape, one in real.items()
    }
    first, second = (si(one.total_s, "s") for one in real.values())
    return Figure(
        key="inference_llama3.step",
        alt="Three bars of time, made of weights, cache, transfers and hop latency. "
        + "; ".join(
            f"{name}: {', '.join(si(part, 's') for part in parts if part)}" for name, parts in lanes.items()
        )
        + ".",
        caption=f"Components of a decode step, by the decode rule without communication and on two slices. With "
        f"communication, a step on a 4 × 4 takes {first} instead of {si(rule.total_s, 's')}. On twice the chips, it takes {second}: each chip reads half as "
        f"many bytes, but hop latency grows. ({B} sequences of {S:,} tokens, int8.)",
        parts=lambda wide: [_lanes(wide, lanes)],
    )


def _parts(one: inference.InferenceStep) -> tuple[float, float, float, float]:
    """Seconds of weights (with all small terms), cache, transfers and hops, which add up to the step."""
    hops = sum(t.hops_s for t in one.traffic)
    return one.total_s - one.terms["KV"] - one.network_s, one.terms["KV"], one.network_s - hops, hops


def _lanes(wide: float, lanes: dict[str, tuple[float, float, float, float]]) -> Sketch:
    left = 92.0
    names = ((MEMORY, "weights"), (CACHE, "cache"), (NETWORK, "transfers"), (IDLE, "hop latency"))
    most = max(sum(parts) for parts in lanes.values())
    shapes, y = key(wide, 2, dict(names))
    for name, parts in lanes.items():
        long = (wide - left - 72) * sum(parts) / most
        pieces = [
            Part(si(size, "s"), size, color) for (color, _), size in zip(names, parts, strict=True) if size
        ]
        shapes.append(Words(x=left - 8, y=y + 24, text=name, align="end"))
        shapes += strip(left, y + 6, long, 28, pieces)
        shapes.append(Words(x=left + long + 6, y=y + 24, text=si(sum(parts), "s"), align="start", bold=True))
        y += 42
    return Sketch(wide, y + 2, shapes)


def corners() -> Figure:
    """How many hops is it from corner to corner?"""
    ways = {shape: sum(size - 1 for size in map(int, shape.split("x"))) for shape in CORNERS}
    spent = {shape: rules.hops_s(LLAMA.L, hops, V5E) for shape, hops in ways.items()}
    said = "; ".join(
        f"{hops} hops on a {shape.replace('x', ' × ')}, or {si(spent[shape], 's')} per step"
        for shape, hops in ways.items()
    )
    return Figure(
        key="inference_llama3.corners",
        alt=f"Two grids of chips whose axes do not wrap around. The path from one corner to the opposite one is colored: {said}.",
        caption="Hops between opposite corners of two slices. Without wraparound, the farthest chip is at "
        f"the opposite corner: {said}. Each of the {2 * LLAMA.L} AllReduces crosses the slice twice, "
        f"at {si(V5E.hop_s, 's')} per hop.",
        parts=lambda wide: [_meshes(wide, ways, spent)],
    )


def _meshes(wide: float, ways: dict[str, int], spent: dict[str, float]) -> Sketch:
    side, size = min((wide - 60) / 12, 40.0), 16.0
    shapes: list[Shape] = []
    x0 = (wide - 12 * side) / 3
    for shape, hops in ways.items():
        down, across = (int(part) for part in shape.split("x"))
        at = [(x0 + side * (i + 0.5), 22 + side * (j + 0.5)) for j in range(down) for i in range(across)]
        shapes.append(Words(x=x0 + side * across / 2, y=14, text=shape.replace("x", " × "), bold=True))
        for x, y in at:
            shapes.append(Area(x=x - size / 2, y=y - size / 2, wide=size, high=size, color=MATH))
        right, low = at[across - 1][0], at[-1][1]
        shapes += [
            Arrow(x0=at[0][0], y0=at[0][1], x1=right, y1=at[0][1], color=NETWORK, thick=3, heads=0),
            Arrow(x0=right, y0=at[0][1], x1=right, y1=low, color=NETWORK, thick=3),
            Words(
                x=x0 + side * across / 2,
                y=22 + side * down + 18,
                text=f"{hops} hops\n{si(spent[shape], 's')} per step",
            ),
        ]
        x0 += side * across + (wide - 12 * side) / 3
    return Sketch(wide, 22 + 4 * side + 44, shapes)


def losses() -> Figure:
    """What does a real engine lose?"""
    peak = step_on("4x4")
    real = inference.decode(
        LLAMA, SIXTEEN, spread(16), batch=B, S=S, efficiency=calibrated.serving(V5E, BF16)
    )
    parts = (
        ("weights", real.terms["weights"] - peak.terms["weights"], MEMORY),
        ("cache", real.terms["KV"] - peak.terms["KV"], CACHE),
        ("network", real.network_s - peak.network_s, NETWORK),
        ("launches", real.terms.get("launch", 0.0), IDLE),
    )
    rows, at = [Span("at peak rates", 0, peak.total_s, si(peak.total_s, "s"), MEMORY)], peak.total_s
    for name, size, color in parts:
        rows.append(Span(name, at, at + size, f"+{si(size, 's')}", color))
        at += size
    rows.append(Span("real engine", 0, real.total_s, si(real.total_s, "s"), MEMORY))
    said = ", ".join(f"{name} {si(size, 's')}" for name, size, _ in parts)
    return Figure(
        key="inference_llama3.losses",
        alt=f"A waterfall chart from {si(peak.total_s, 's')} at peak rates to {si(real.total_s, 's')} in a real engine: {said}.",
        caption="A decode step at peak rates and in a real engine, where it takes "
        f"{real.total_s / peak.total_s:.1f} times as long. Matmuls hide only a part of the memory "
        "reads, and every layer and every step adds launch overhead. (The same step, with "
        "efficiencies fitted to published runs.)",
        parts=lambda wide: [lanes(wide, rows)],
    )
