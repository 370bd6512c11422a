"""Figures of the deeper pages: gradient accumulation, pipeline ticks, credits, and meshes over hosts."""

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.collectives import all_reduce
from scalingbook_lib.machines.chips import V5E, Slice
from scalingbook_lib.units import FP32, percent, si

BATCHES = 5
TOKENS, D, F = 8192, 4096, 4096  # of one microbatch on all eight chips, and of the layer
STAGES, MICROBATCHES = 4, 6
TICKS = STAGES + MICROBATCHES - 1
# the first slice has hosts that are squares of two by two chips; in the second a host has all of X
MESHES = {"v5e:4x4": lambda x, y: (x // 2, y // 2), "v4:2x2x4": lambda x, y: (0, y)}


def five_sums() -> Figure:
    """Five microbatches, with an AllReduce after each or one at the end."""
    math = 6.0 * TOKENS * D * F / 8 / V5E.bf16_flops_per_s
    sum_s = all_reduce(FP32.bytes * D * F, *Slice.of(V5E, "2x4").mesh(X=8).axes("X")).total_s
    often, once = BATCHES * (math + sum_s), BATCHES * math + sum_s
    return Figure(
        key="jax.five_sums",
        alt="Two timelines with five microbatches each. In the first, an AllReduce follows each "
        f"microbatch, {si(often, 's')} in total; in the second, one follows only the last "
        f"microbatch, {si(once, 's')} in total.",
        caption="Timelines of gradient accumulation with an AllReduce per microbatch and with a single one. "
        f"With one AllReduce after the last microbatch, the step takes {si(once, 's')}. With an AllReduce "
        f"after each microbatch, as when each gradient is clipped, it takes {si(often, 's')}. (One layer with D = F = {D:,}, {TOKENS:,} tokens per microbatch, "
        "gradients in fp32, eight v5e chips, no overlap. Orange is compute, green is the AllReduce; to "
        "scale.)",
        parts=lambda wide: [lanes(wide, _batches(math, sum_s), end=often)],
    )


def _batches(math: float, sum_s: float) -> list[Span]:
    """Each lane's products, and the sums after them."""
    spans: list[Span] = []
    for name, sums in (
        ("AllReduce each time", [sum_s] * BATCHES),
        ("one AllReduce", [0.0] * (BATCHES - 1) + [sum_s]),
    ):
        at = 0.0
        for k, summed in enumerate(sums):
            spans += [
                Span(name, at, at + math, str(k + 1), MATH),
                Span(name, at + math, at + math + summed, "", NETWORK),
            ]
            at += math + summed
    return spans


def ticks() -> Figure:
    """A pipeline as a grid of ticks and stages."""
    lost = (STAGES - 1) / TICKS
    return Figure(
        key="jax.ticks",
        alt=f"A grid of {STAGES} stages and {TICKS} ticks. Microbatch numbers run along diagonals; each stage has {STAGES - 1} ticks, dashed, "
        "without one.",
        caption=f"A pipeline of {STAGES} stages and {MICROBATCHES} microbatches in shard_map, tick by tick. "
        f"Each device wastes {percent(lost)} of the {TICKS} ticks. It is not idle in these ticks "
        "(dashed): it computes on values that are not needed and discards the result.",
        parts=lambda wide: [_ticks(wide)],
    )


def _ticks(wide: float) -> Sketch:
    left = 62.0
    pitch = (wide - left - 2) / TICKS
    shapes: list[Shape] = [
        Words(x=left + pitch * (t + 0.5), y=13, text=str(t), quiet=True) for t in range(TICKS)
    ]
    shapes.append(Words(x=2, y=13, text="tick", align="start", quiet=True))
    for s in range(STAGES):
        shapes.append(Words(x=2, y=42 + 34 * s, text=f"stage {s}", align="start", quiet=True))
        for t in range(TICKS):
            useful = 0 <= t - s < MICROBATCHES
            text, color, shade = (str(t - s), (t - s) % 6, 0.5) if useful else ("", IDLE, 0.06)
            shapes.append(
                Area(
                    x=left + pitch * t,
                    y=22.0 + 34 * s,
                    wide=pitch - 3,
                    high=30,
                    text=text,
                    color=color,
                    shade=shade,
                    dashed=not useful,
                )
            )
    return Sketch(wide, 22 + 34 * STAGES, shapes)


def credit() -> Figure:
    """Two receive buffers: a write that overtakes a read, and the credit that prevents it."""
    return Figure(
        key="jax.credit",
        alt="Two pairs of timelines. Without credits, a fast chip writes buffers 0, 1 and 0 again, while its neighbor still reads buffer 0. "
        "With credits, the third write waits until this read has ended.",
        caption="Writes and reads of two chips in a ring kernel, without and with credits. Without a "
        "credit, the third write (orange) overwrites a buffer that is still being read. The reader sends "
        "a credit when it is done, and the writer waits for it. (Numbers are buffers. Not to scale.)",
        parts=lambda wide: [
            lanes(wide, _writes(2), title="without credits"),
            lanes(wide, _writes(4), title="with credits", end=7),
        ],
    )


def _writes(third: float) -> list[Span]:
    """Writes of one unit of time, reads of three; the third write starts at `third`."""
    starts = (0, 1, third)  # the first buffer is read until 4
    colors = (NETWORK, NETWORK, MATH if third < 4 else NETWORK)
    writes = [
        Span("fast chip writes", at, at + 1, str(k % 2), color)
        for k, (at, color) in enumerate(zip(starts, colors, strict=True))
    ]
    reads = [Span("slow chip reads", at, at + 3, str(k), MEMORY) for k, at in enumerate((1, 4))]
    return [*writes, *reads]


def hosts() -> Figure:
    """A mesh of four by four on two slices: which chips share a host."""
    return Figure(
        key="jax.hosts",
        alt="Two meshes of four by four chips, colored by host. On v5e, a host has a square of two by two chips, so both axes cross hosts. On v4, "
        "a host has all four chips along X, and only Y crosses hosts.",
        caption="Hosts of a 4 × 4 mesh on a v5e and on a v4 slice. On the v5e slice, each mesh axis spans "
        "two hosts. On the v4 slice, X stays within one host and Y spans four.",
        parts=lambda wide: [_hosts(wide)],
    )


def _hosts(wide: float) -> Sketch:
    abreast = wide > 400
    side = 30.0 if abreast else 26.0
    shapes: list[Shape] = []
    for k, (name, host) in enumerate(MESHES.items()):
        x0 = 40 + k * wide / 2
        numbers = list(dict.fromkeys(host(x, y) for x in range(4) for y in range(4)))
        shapes.append(Words(x=x0 + 2 * side + 5, y=14, text=name, bold=True))
        shapes += [Words(x=x0 + (side + 4) * (y + 0.4), y=34, text=f"Y{y}", quiet=True) for y in range(4)]
        for x in range(4):
            shapes.append(Words(x=x0 - 6, y=58 + (side + 4) * x, text=f"X{x}", quiet=True, align="end"))
            shapes += [
                Area(
                    x=x0 + (side + 4) * y,
                    y=40 + (side + 4) * x,
                    wide=side,
                    high=side,
                    text=str(number),
                    color=number,
                    shade=0.5,
                )
                for y in range(4)
                for number in [numbers.index(host(x, y))]
            ]
    return Sketch(wide, 44 + 4 * (side + 4), shapes)
