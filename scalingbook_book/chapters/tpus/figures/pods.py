"""Figures of a pod: cubes that are joined by optical switches, and a torus with twisted wraparound."""

from collections.abc import Iterator

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import V5P, Slice

PLAIN = Slice.of(V5P, "4x4x8")
SHORT, LONG = min(PLAIN.shape), max(PLAIN.shape)
Place = tuple[int, int, int]


def behind(x: float, y: float, side: float) -> list[Shape]:
    """What is seen of the three layers behind the front of a cube of four: the top and the right side."""
    deep, edge = 6.0, 4 * side
    tops = [
        Cells(x=x + deep * k, y=y - deep * k, rows=[[NETWORK] * 4], wide=side, high=deep) for k in (1, 2, 3)
    ]
    sides = [
        Cells(x=x + edge + deep * (k - 1), y=y - deep * k, rows=[[NETWORK]] * 4, wide=deep, high=side)
        for k in (1, 2, 3)
    ]
    return [*tops, *sides]


def cubes() -> Figure:
    """How a rack's faces meet the optical switches."""
    torus = chips.V4.topology()
    side, racks = torus.cube, torus.pod_chips // torus.cube**3
    faces = 6 * side**2
    return Figure(
        key="tpus.cubes",
        alt=f"A cube of {side} × {side} × {side} chips with {side**2} links on each of its six faces. A "
        "fiber from a position on the right face and one from the same position on the left face end in the same "
        f"switch; {faces // 2} switches serve {racks} cubes.",
        caption="Cubes of chips joined by optical circuit switches. Opposite positions on the faces of "
        f"every cube are connected to the same switch, so {faces} fibers per cube need {faces // 2} "
        "switches. A switch connects the right side of a cube with the left side of another one, or "
        "with its own left side, which makes a ring.",
        parts=lambda wide: [_cubes(wide, faces // 2)],
    )


def _cubes(wide: float, switches: int) -> Sketch:
    shapes: list[Shape] = []
    centers = [wide * share for share in (0.18, 0.5, 0.82)]
    for k, x in enumerate(centers):
        front = Cells(x=x - 36, y=126, rows=[[NETWORK] * 4] * 4, wide=15, high=15, shade=0.3)
        shapes += [front, *behind(x - 36, 126, 15), Words(x=x - 6, y=206, text=f"cube {k + 1}")]
        for at, end in ((x - 36, -40), (x + 42, 40)):
            shapes.append(
                Arrow(x0=at, y0=132, x1=wide / 2 + end + 0.15 * (x - wide / 2), y1=58, heads=0, color=NETWORK)
            )
    box = Area(
        x=wide / 2 - 90,
        y=14,
        wide=180,
        high=42,
        color=MATH,
        shade=0.2,
        text=f"one of {switches} switches:\nmirrors join two fibers",
    )
    return Sketch(wide, 216, [box, *shapes])


def twist() -> Figure:
    """Hops from one corner, plain and twisted: the layer in which the farthest chip lies."""
    plain, twisted = (hops(shift) for shift in (0, LONG // 2))
    return Figure(
        key="tpus.twist",
        alt=f"Two grids of {SHORT} × {LONG} chips, the farthest layer of a torus of 4 × 4 × 8, each chip "
        f"with its hops from one corner. In the plain torus, they reach {max(plain.values())}, in "
        f"the twisted one {max(twisted.values())}.",
        caption="Hops from one corner of a torus of 4 × 4 × 8 to the layer with the farthest chips. "
        "Shifting the wraparound links of the short axes by half of the long axis brings these "
        "chips closer without adding a link.",
        parts=lambda wide: [_layers(wide, {"plain": plain, "twisted": twisted})],
    )


def hops(shift: int) -> dict[Place, int]:
    """Every chip's distance from (0, 0, 0), walking outward; a wrap of a short axis is shifted along the long."""
    found: dict[Place, int] = {(0, 0, 0): 0}
    edge: list[Place] = [(0, 0, 0)]
    for place in edge:  # which grows as it is walked
        for near in _neighbors(place, shift):
            if near not in found:
                found[near] = found[place] + 1
                edge.append(near)
    return found


def _neighbors(place: Place, shift: int) -> Iterator[Place]:
    x, y, z = place
    for step in (1, -1):
        yield (x + step) % SHORT, y, (z + shift * (not 0 <= x + step < SHORT)) % LONG
        yield x, (y + step) % SHORT, (z + shift * (not 0 <= y + step < SHORT)) % LONG
        yield x, y, (z + step) % LONG


def _layers(wide: float, tori: dict[str, dict[Place, int]]) -> Sketch:
    abreast = 2 if wide > 400 else 1
    side = (wide / abreast - 20) / LONG
    tall = side * SHORT + 46
    most = PLAIN.diameter_hops
    shapes: list[Shape] = []
    for k, (name, found) in enumerate(tori.items()):
        left, top = 8 + wide / abreast * (k % abreast), 30 + tall * (k // abreast)
        words = (
            f"{name}: at most {max(found.values())} hops, {sum(found.values()) / len(found):.2g} on average"
        )
        shapes.append(Words(x=left, y=top - 10, text=words, align="start", bold=True))
        layer = {(x, z): n for (x, y, z), n in found.items() if y == SHORT // 2}
        shapes += [
            Area(
                x=left + side * z,
                y=top + side * x,
                wide=side - 3,
                high=side - 3,
                text=str(n),
                color=NETWORK,
                shade=0.05 + 0.6 * n / most,
            )
            for (x, z), n in layer.items()
        ]
    return Sketch(wide, tall * (len(tori) // abreast), shapes)
