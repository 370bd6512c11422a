"""Figures of links: one link counted in three ways, a line and a ring, and slices with their wraparound."""

from scalingbook_book.chapters.tpus.figures.pods import behind
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import collectives
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import V5E, V5P, Slice
from scalingbook_lib.units import MiB, si

N = 16
LINE, RING = (V5E.axis(N, wrapped=wrapped) for wrapped in (False, True))
SLICES = tuple(
    Slice.of(chip, shape) for chip, shape in ((V5E, "8x8"), (V5E, "8x16"), (V5E, "16x16"), (V5P, "4x4x4"))
)
WAYS = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.72, -0.72), (-0.72, 0.72))  # the six links of a chip


def _gather(*axes: chips.Axis) -> str:
    return si(collectives.all_gather(16 * MiB, *axes).total_s, "s")


def rates() -> Figure:
    """The same six links, counted in three ways."""
    link = V5P.link_bytes_per_s
    counted = [
        ("one link, one direction", link, "W_{1}: per link"),
        ("one axis, received", 2 * link, "W_{ici}: used in this book"),
        ("six links, both directions", 2 * V5P.links * link, "Google's table"),
    ]
    said = ", ".join(f"{name} {si(rate, 'B/s', 2)}" for name, rate, _ in counted)
    return Figure(
        key="tpus.rates",
        alt="One v5p chip with six links of two arrows each, drawn three times. The arrows that are counted are "
        f"colored: {said}.",
        caption="Three numbers that describe the bandwidth of the same six links of a v5p chip. A chip can "
        "receive at most half of the largest number, and a sixth of it along one axis.",
        parts=lambda wide: [_three(wide, [(name, si(rate, "B/s", 2), who) for name, rate, who in counted])],
    )


def _three(wide: float, counted: list[tuple[str, str, str]]) -> Sketch:
    abreast = 3 if wide > 400 else 1
    shapes = [
        shape
        for k, words in enumerate(counted)
        for shape in _chip(k, words, wide / abreast * (k % abreast), 176.0 * (k // abreast), wide < 400)
    ]
    return Sketch(wide, 196.0 if abreast == 3 else 176.0 * 3 - 26, shapes)


def _chip(k: int, words: tuple[str, str, str], left: float, top: float, beside: bool) -> list[Shape]:
    x, y = left + (76 if beside else 112), top + 76
    shapes: list[Shape] = []
    for j, (dx, dy) in enumerate(WAYS):
        for way, side in ((1, 5), (-1, -5)):
            # counted: one arrow out; two that come in along an axis; all
            counts = (k == 2) or (k == 1 and j < 2 and way < 0) or (k == 0 and j == 0 and way > 0)
            ends = [(x + dx * r - dy * side, y + dy * r + dx * side) for r in (20, 66)][::way]
            (x0, y0), (x1, y1) = ends
            shapes.append(
                Arrow(
                    x0=x0, y0=y0, x1=x1, y1=y1, color=NETWORK if counts else IDLE, thick=3 if counts else 0.7
                )
            )
    shapes.append(Area(x=x - 18, y=y - 18, wide=36, high=36, color=MATH, shade=0.5))
    name, rate, who = words
    at, low, align = (left + 164, y - 14, "start") if beside else (x, top + 160, "middle")
    shapes.append(Words(x=at, y=low, text=rate, bold=True, align=align, size=15))
    shapes.append(
        Words(x=at, y=low + 16 + 4 * beside, text=name if not beside else f"{name}\n{who}", align=align)
    )
    return shapes if beside else [*shapes, Words(x=x, y=low + 32, text=who, quiet=True)]


def ring() -> Figure:
    """Sixteen chips on a line and on a ring, each with its hops from the first."""
    return Figure(
        key="tpus.ring",
        alt=f"Two rows of {N} chips, numbered by their hops from the first chip. On a line, the last "
        f"chip is {LINE.diameter_hops} hops away; with one more link between the ends, the farthest "
        f"chip is {RING.diameter_hops} hops away. An AllGather of 16 MiB takes {_gather(LINE)} and "
        f"{_gather(RING)}.",
        caption="A line and a ring of sixteen chips, each labeled with its distance in hops from the first "
        "chip. The additional link halves both the largest distance and the time of a 16 MiB "
        "AllGather.",
        parts=lambda wide: [_rows(wide)],
    )


def _rows(wide: float) -> Sketch:
    side = (wide - 8) / N
    shapes: list[Shape] = []
    for y, axis, name in ((30.0, LINE, "line"), (116.0, RING, "ring")):
        hops = [min(j, N - j) if axis.wrapped else j for j in range(N)]
        heading = f"{name}: farthest {max(hops)} hops, AllGather {_gather(axis)}"
        shapes.append(Words(x=4, y=y - 12, text=heading, align="start", bold=True))
        shapes += [
            Area(
                x=4 + side * j,
                y=y,
                wide=side - 5,
                high=26,
                text=str(h),
                color=NETWORK,
                shade=0.05 + 0.6 * h / LINE.diameter_hops,
                size=12,
            )
            for j, h in enumerate(hops)
        ]
        shapes += [
            Arrow(x0=side * j + side - 1, y0=y + 13, x1=4 + side * j + side, y1=y + 13, heads=0)
            for j in range(N - 1)
        ]
        if axis.wrapped:
            shapes.append(
                Arrow(
                    x0=4 + side / 2,
                    x1=4 + side * (N - 0.5),
                    y0=y + 28,
                    y1=y + 28,
                    heads=0,
                    bend=0.07,
                    color=NETWORK,
                    thick=2,
                )
            )
    return Sketch(wide, 116 + 34 + wide * 0.035, shapes)


def slices() -> Figure:
    """Three shapes of v5e and a cube of v5p: which axes are rings, and what it buys."""
    said = "; ".join(
        f"{part.name}: {sum(axis.wrapped for axis in part.axes)} of {len(part.axes)} axes are rings, "
        f"AllGather {_gather(*part.axes)}"
        for part in SLICES
    )
    return Figure(
        key="tpus.slices",
        alt=f"Four slices drawn as grids of chips, with an arc where an axis is a ring. {said}.",
        caption="Four slices and the time of a 16 MiB AllGather on each; an arc marks an axis that is a "
        "ring. On v5e, the larger slices are faster, because their axes of 16 are rings. The cube "
        "of 64 v5p chips has three rings.",
        parts=lambda wide: [_four(wide)],
    )


def _four(wide: float) -> Sketch:
    abreast = 4 if wide > 400 else 2
    across = wide / abreast
    shapes = [
        shape
        for k, part in enumerate(SLICES)
        for shape in _slice(part, across * (k % abreast), 224.0 * (k // abreast), across)
    ]
    return Sketch(wide, 224.0 * (len(SLICES) // abreast), shapes)


def _depth(right: float, top: float, layers: int) -> Arrow:
    """The ring of the third axis: beside the upper right edge of the cube, from the front to the back."""
    back = 6 * (layers - 1)
    return Arrow(
        x0=right + 8, x1=right + 8 + back, y0=top + 4, y1=top + 4 - back, bend=0.3, heads=2, color=MATH
    )


def _slice(part: Slice, left: float, top: float, across: float) -> list[Shape]:
    *deep, rows, columns = part.shape
    side = 7.0 if not deep else 18.0
    layers = deep[0] if deep else 1
    wide, high = side * columns, side * rows
    x, y = left + (across - wide) / 2 - 4 * layers, top + 26 + 5 * (layers - 1) + (112 - high) / 2
    cut = si(part.bisection_bytes_per_s, "B/s")
    shapes: list[Shape] = [
        Words(x=left + across / 2, y=top + 12, text=part.name.removeprefix("TPU "), bold=True),
        Cells(x=x, y=y, rows=[[NETWORK] * columns] * rows, wide=side, high=side, shade=0.3),
        *(behind(x, y, side) if deep else ()),
        Words(x=left + across / 2, y=top + 176, text=f"AllGather {_gather(*part.axes)}\nbisection {cut}"),
    ]
    wraps = part.axes[-2:]
    if deep and part.axes[0].wrapped:
        shapes.append(_depth(x + wide, y, layers))
    if wraps[1].wrapped:
        shapes.append(
            Arrow(
                x0=x + side / 2,
                x1=x + wide - side / 2,
                y0=y + high + 2,
                y1=y + high + 2,
                bend=0.16,
                heads=2,
                color=MATH,
            )
        )
    if wraps[0].wrapped:
        shapes.append(
            Arrow(x0=x - 3, x1=x - 3, y0=y + side / 2, y1=y + high - side / 2, bend=0.16, heads=2, color=MATH)
        )
    return shapes
