"""Figures of the node: bandwidth of its links inside and out, compared with a torus and a full mesh."""

from math import cos, pi, sin

from scalingbook_book.chapters.gpus.figures.facts import CARD_BYTES_PER_S
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import collectives
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H100, MI300X, V5P
from scalingbook_lib.steps import limits
from scalingbook_lib.units import si

CARDS = CACHE  # the color of NICs and of the network behind them; NVLink has that of networks
GATHERED = 4e9  # bytes of the opening's array
EIGHT = 8
CUBE = ((0, 1), (0, 2), (0, 4), (1, 3), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7), (6, 7))


def gather() -> Figure:
    """An AllGather over two nodes: NVLink takes longer than the NICs."""
    inside, cards = H100.domain_bytes_per_s(), CARD_BYTES_PER_S
    seconds = limits.each_level(collectives.all_gather, GATHERED, *Cluster.of(H100, 2 * EIGHT).levels)
    nvlink, network = seconds["NVLink"], seconds["leaf"]
    return Figure(
        key="gpus.gather",
        alt=f"Two nodes of eight GPUs. Thick lines of {si(inside, 'B/s')} lead from every GPU to the NVSwitch of its node; thin lines of {si(cards, 'B/s')} lead from every GPU through its NIC to the "
        f"network. Below, two bars that start at the same time: NVLink {si(nvlink, 's')}, NICs {si(network, 's')}.",
        caption="An AllGather over two nodes of eight GPUs. The eight NICs of a node together receive the "
        f"missing half of the array in {si(network, 's')}. Distributing the array over NVLink takes "
        f"{si(nvlink, 's')}, although each GPU has nine times the bandwidth there, so NVLink is the "
        f"bottleneck. ({si(GATHERED, 'B')}; the widths of lines show bandwidth.)",
        parts=lambda wide: [_two_nodes(wide, inside, cards), _times(wide, nvlink, network)],
    )


def _two_nodes(wide: float, inside: float, cards: float) -> Sketch:
    half = wide / 2
    pitch = (half - 24) / EIGHT
    side, thick = pitch * 0.72, pitch * 0.5
    shapes: list[Shape] = [
        Area(
            x=4,
            y=172,
            wide=wide - 8,
            high=22,
            text=f"network: a NIC of {si(cards, 'B/s')} per GPU",
            color=CARDS,
        )
    ]
    for node in range(2):
        left = half * node + 4
        shapes.append(Area(x=left, y=4, wide=half - 8, high=144, color=None, shade=0.02))
        shapes.append(
            Area(
                x=left + 6,
                y=14,
                wide=half - 20,
                high=24,
                text=f"NVSwitch, {si(inside, 'B/s')} each",
                color=NETWORK,
                size=11,
            )
        )
        for k in range(EIGHT):
            x = left + 8 + pitch * (k + 0.5)
            shapes += [
                Arrow(x0=x, y0=38, x1=x, y1=76, color=NETWORK, thick=thick, heads=0),
                Arrow(x0=x, y0=76 + side, x1=x, y1=172, color=CARDS, thick=thick * cards / inside, heads=0),
                Area(x=x - side / 2, y=76, wide=side, high=side, color=MATH, shade=0.45),
                Area(x=x - side / 4, y=130, wide=side / 2, high=12, color=CARDS, shade=0.45),
            ]
    return Sketch(wide, 200, shapes)


def _times(wide: float, nvlink: float, network: float) -> Sketch:
    left, most = 66.0, wide - 66 - 8
    lanes: list[Shape] = []
    for k, (name, seconds, color) in enumerate((("NVLink", nvlink, NETWORK), ("NICs", network, CARDS))):
        lanes.append(
            Area(
                x=left,
                y=6 + 36 * k,
                wide=most * seconds / nvlink,
                high=28,
                color=color,
                text=si(seconds, "s"),
                left=name,
            )
        )
    return Sketch(wide, 78, lanes)


def three_nodes() -> Figure:
    """Bandwidth of a chip to one peer and to all, on a torus, behind a switch and on a full mesh."""
    rates = {
        "TPU v5p: torus": (V5P.link_bytes_per_s, V5P.links * V5P.link_bytes_per_s),
        "H100: switch": (H100.domain_bytes_per_s(), H100.domain_bytes_per_s()),
        "MI300X: full mesh": (MI300X.link_bytes_per_s, MI300X.domain_bytes_per_s()),
    }
    said = "; ".join(
        f"{name} {si(one, 'B/s')} to one peer and {si(every, 'B/s')} to all"
        for name, (one, every) in rates.items()
    )
    return Figure(
        key="gpus.three_nodes",
        alt=f"Eight chips connected in three ways: as a cube with links to neighbors, through a switch in the middle, and each to every other. Bars below: {said}.",
        caption="Eight chips connected in three ways, and the bandwidth to one peer and to all peers. "
        "Behind a switch, a GPU has the full bandwidth of all its links to any single peer. On a "
        "torus and on a full mesh, each link leads to one particular neighbor, so a single peer "
        "gets the bandwidth of one link.",
        parts=lambda wide: [_three(wide, rates)],
    )


def _three(wide: float, rates: dict[str, tuple[float, float]]) -> Sketch:
    abreast = wide > 400
    across = wide / 3 if abreast else wide
    most = max(every for _, every in rates.values())
    shapes: list[Shape] = []
    for k, ((name, both), draw) in enumerate(zip(rates.items(), (_cube, _star, _mesh), strict=True)):
        x, y = (across * k, 0.0) if abreast else (0.0, 236.0 * k)
        shapes.append(Words(x=x + across / 2, y=y + 16, text=name, bold=True))
        shapes += draw(x + across / 2, y + 92)
        for i, (who, rate) in enumerate(zip(("one", "all"), both, strict=True)):
            long = (across - 116) * rate / most
            shapes.append(
                Area(
                    x=x + 34,
                    y=y + 172 + 26 * i,
                    wide=long,
                    high=18,
                    color=NETWORK,
                    left=who,
                    right=si(rate, "B/s"),
                )
            )
    return Sketch(wide, 228.0 if abreast else 236.0 * 3 - 8, shapes)


def ring(x: float, y: float, radius: float) -> list[tuple[float, float]]:
    """Eight places round (x, y)."""
    angles = [2 * pi * (k + 0.5) / EIGHT for k in range(EIGHT)]
    return [(x + radius * sin(a), y - radius * cos(a)) for a in angles]


def _cube(x: float, y: float) -> list[Shape]:
    """Two by two by two; short lines lead on from the watched chip, as a pod is larger."""
    spots = [
        (x - 42 + 64 * (k & 1) + 24 * (k >> 2), y + 42 - 64 * (k >> 1 & 1) - 24 * (k >> 2))
        for k in range(EIGHT)
    ]
    ends = [
        (spots[0][0] - 30, spots[0][1]),
        (spots[0][0], spots[0][1] + 28),
        (spots[0][0] - 20, spots[0][1] + 20),
    ]
    return [*_lines(spots, CUBE), *(_line(spots[0], end, True) for end in ends), *chips_at(spots)]


def _star(x: float, y: float) -> list[Shape]:
    spots = ring(x, y, 58)
    ends = [(x + 0.35 * (a - x), y + 0.35 * (b - y)) for a, b in spots]
    lines = [_line(spot, end, k == 0, 5) for k, (spot, end) in enumerate(zip(spots, ends, strict=True))]
    return [
        *lines,
        Area(x=x - 19, y=y - 12, wide=38, high=24, text="NV", color=NETWORK, shade=0.6),
        *chips_at(spots),
    ]


def _mesh(x: float, y: float) -> list[Shape]:
    spots = ring(x, y, 58)
    pairs = [(a, b) for b in range(EIGHT) for a in range(b)]
    return [*_lines(spots, sorted(pairs, reverse=True)), *chips_at(spots)]


def _lines(
    spots: list[tuple[float, float]], pairs: tuple[tuple[int, int], ...] | list[tuple[int, int]]
) -> list[Shape]:
    return [_line(spots[a], spots[b], a == 0) for a, b in pairs]


def _line(start: tuple[float, float], end: tuple[float, float], watched: bool, thick: float = 2.5) -> Arrow:
    color = NETWORK if watched else IDLE
    return Arrow(
        x0=start[0],
        y0=start[1],
        x1=end[0],
        y1=end[1],
        color=color,
        thick=thick if watched else thick * 0.4,
        heads=0,
    )


def chips_at(spots: list[tuple[float, float]]) -> list[Shape]:
    """A chip at each place; the first stands out."""
    return [
        Area(x=x - 8, y=y - 8, wide=16, high=16, color=MATH, shade=0.9 if k == 0 else 0.4)
        for k, (x, y) in enumerate(spots)
    ]
