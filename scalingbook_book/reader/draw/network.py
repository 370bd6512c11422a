"""Draw devices as boxes with the chunks that they hold, and arrows for the data that moves between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.draw.palette import ink
from scalingbook_book.reader.explorers.view import Link, Network, Node

MARGIN, WRAP_MARGIN = 50.0, 66.0
LARGEST, STUB = 60.0, 30.0
TYPE = 12.0
NAMES = f'font-size="{TYPE:g}" {svg.HALO}'
QUIET = 'fill="none" stroke="currentColor" stroke-opacity=".3"'
BOX = 'rx="4" fill="var(--ex-bg,#fff)" stroke="currentColor" stroke-opacity=".55"'

Spot = tuple[float, float]
Course = tuple[Spot, Spot, Spot]  # start, control point of the curve, end


@dataclass(frozen=True, slots=True)
class NetworkDrawing:
    """The positions of the boxes, half their side, and the edges of the drawing."""

    spots: Sequence[Spot]
    half: float
    bounds: tuple[float, float, float, float]

    def inside(self, spot: Spot, across: float = 0.0, down: float = 0.0) -> Spot:
        """Return the nearest point that keeps a margin to the edges."""
        left, top, right, bottom = self.bounds
        x = min(max(spot[0], left + across), right - across)
        return x, min(max(spot[1], top + down), bottom - down)


def network(panel: Network, width: float) -> str:
    """Return the network as one SVG drawing."""
    head, top = svg.title(panel.title, width)
    plan, height = _plan(panel, width, top)
    most = max((abs(link.value) for link in panel.links), default=0.0)
    courses = [(link, course) for link in panel.links for course in _courses(link, plan)]
    placed = list(zip(panel.nodes, plan.spots, strict=True))
    names = [_name(node, spot, plan) for node, spot in placed if node.parts]
    labels = [_label(link, _courses(link, plan)[-1], plan) for link in panel.links if link.label]
    body = [
        *svg.paths((QUIET, _way(course)) for link, course in courses if link.color is None),
        *svg.paths(way for link, c in courses if link.color is not None for way in _arrow(link, c, most)),
        *(_node(node, spot, plan.half) for node, spot in placed),
        svg.texts(f"{NAMES} {svg.QUIET}", names),
        svg.texts(f'{NAMES} text-anchor="middle" font-weight="500"', labels),
    ]
    return svg.picture(width, height, panel.title or "network", head + body)


def _plan(panel: Network, width: float, top: float) -> tuple[NetworkDrawing, float]:
    margin = WRAP_MARGIN if any(link.wrap for link in panel.links) else MARGIN
    aspect = panel.aspect if width > 400 else min(max(panel.aspect * 1.35, 0.3), 1.1)
    deep = max(width * aspect, 2 * margin + 2)
    spots = [
        (margin + n.x * (width - 2 * margin), top + margin + n.y * (deep - 2 * margin)) for n in panel.nodes
    ]
    nearest = min((math.dist(a, b) for i, a in enumerate(spots) for b in spots[:i]), default=LARGEST / 0.54)
    half = min(max(nearest, 8.0) * 0.27, LARGEST / 2)
    return NetworkDrawing(spots, half, (3.0, top + 3.0, width - 3.0, top + deep - 3.0)), top + deep


def _node(node: Node, spot: Spot, half: float) -> str:
    x, y = spot
    box = svg.rect(x - half, y - half, 2 * half, 2 * half, BOX, note=node.note)
    if not node.parts:
        return box + svg.text(x, y + 4.5, svg.fit(node.label, 2 * half), 'text-anchor="middle"')
    return box + _parts(node.parts, x, y, half - 3)


def _name(node: Node, spot: Spot, plan: NetworkDrawing) -> str:
    """Return a box's name, on the side without links: above it in the upper half of the drawing."""
    (x, y), half = spot, plan.half
    words = svg.fit(node.label, 3.2 * half, TYPE)
    ys, xs = [s[1] for s in plan.spots], [s[0] for s in plan.spots]
    ends = min(xs), max(xs)
    if (
        x in ends
        and min(ys) + 1 < y < max(ys) - 1
        and svg.measure(words, TYPE) <= plan.bounds[2] - ends[1] - half - 4
    ):
        side = -1 if x == ends[0] else 1
        anchor = "end" if side < 0 else "start"
        return svg.text(x + side * (half + 4), y + 4, words, f'text-anchor="{anchor}"')
    up = min(ys) < max(ys) and y < (min(ys) + max(ys)) / 2
    return svg.text(x, y - half - 5 if up else y + half + 13, words, 'text-anchor="middle"')


def _parts(parts: Sequence[int | None], x: float, y: float, half: float) -> str:
    """Return the slots of a box: up to eight columns, otherwise several rows; one path per color."""
    columns = len(parts) if len(parts) <= 8 else math.ceil(math.sqrt(len(parts)))
    wide, high = 2 * half / columns, 2 * half / math.ceil(len(parts) / columns)
    air = 1.0 if wide > 3 else 0.4
    corners = ((x - half + i % columns * wide, y - half + i // columns * high) for i in range(len(parts)))
    slot = f"h{wide - air:.1f}v{high - air:.1f}h{air - wide:.1f}z"
    shapes = svg.paths(
        ('fill-opacity=".09"' if color is None else f'fill="{ink(color)}"', f"M{left:.1f},{top:.1f}{slot}")
        for color, (left, top) in zip(parts, corners, strict=True)
    )
    return "".join(shapes)


# Links


def _courses(link: Link, plan: NetworkDrawing) -> list[Course]:
    """Return the curve of a link from edge to edge, shifted to the right; a wrap has one stub at each end."""
    (x0, y0), (x1, y1) = plan.spots[link.start], plan.spots[link.end]
    length = math.dist((x0, y0), (x1, y1)) or 1.0
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    aside = plan.half * 0.3 if link.color is not None else 0.0
    x0, y0, x1, y1 = x0 - uy * aside, y0 + ux * aside, x1 - uy * aside, y1 + ux * aside
    if link.wrap:
        near, far = plan.half + 2, plan.half + STUB
        out = (x0 - ux * near, y0 - uy * near), plan.inside((x0 - ux * far, y0 - uy * far))
        back = plan.inside((x1 + ux * far, y1 + uy * far)), (x1 + ux * (near + 2), y1 + uy * (near + 2))
        return [(a, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), b) for a, b in (back, out)]
    push = link.bend * length
    middle = plan.inside(((x0 + x1) / 2 - uy * push, (y0 + y1) / 2 + ux * push))
    return [(_edge((x0, y0), middle, plan.half + 3), middle, _edge((x1, y1), middle, plan.half + 5))]


def _edge(centre: Spot, towards: Spot, half: float) -> Spot:
    """Return the point at which the line from a box's center leaves the box."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    share = min(half / (max(abs(dx), abs(dy)) or 1.0), 1.0)
    return centre[0] + dx * share, centre[1] + dy * share


def _way(course: Course) -> str:
    (x0, y0), (xm, ym), (x1, y1) = course
    straight = abs((xm - x0) * (y1 - y0) - (ym - y0) * (x1 - x0)) < 1.0
    return f"M{x0:.1f},{y0:.1f}" + (
        f"L{x1:.1f},{y1:.1f}" if straight else f"Q{xm:.1f},{ym:.1f} {x1:.1f},{y1:.1f}"
    )


def _arrow(link: Link, course: Course, most: float) -> list[tuple[str, str]]:
    """Return a colored curve with an arrowhead at its end: the paint and the path of each."""
    start, middle, end = course
    thick = 1.6 + (2.4 * abs(link.value) / most if most else 0.4)
    length = math.dist(middle, end) or 1.0
    ux, uy = (end[0] - middle[0]) / length, (end[1] - middle[1]) / length
    x, y, side = end[0] - ux * (3 + thick), end[1] - uy * (3 + thick), 3.0 + thick * 0.8
    head = [
        (end[0] + ux * 2, end[1] + uy * 2),
        (x - uy * side, y + ux * side),
        (x + uy * side, y - ux * side),
    ]
    corners, paint = svg.points(*zip(*head, strict=True)), ink(link.color or 0)
    curve = f'fill="none" stroke="{paint}" stroke-width="{thick:.1f}"'
    return [(curve, _way((start, middle, (x, y)))), (f'fill="{paint}"', f"M{corners}z")]


def _label(link: Link, course: Course, plan: NetworkDrawing) -> str:
    """Return the label at the middle of the curve, to its right and clear of the line."""
    start, middle, end = course
    half = svg.measure(link.label, TYPE) / 2
    length = math.dist(start, end) or 1.0
    nx, ny = -(end[1] - start[1]) / length, (end[0] - start[0]) / length
    clear = abs(nx) * half + abs(ny) * 5 + 6
    x, y = (
        (start[0] + 2 * middle[0] + end[0]) / 4 + nx * clear,
        (start[1] + 2 * middle[1] + end[1]) / 4 + ny * clear,
    )
    x, y = plan.inside((x, y), half, 6.0)
    return svg.text(x, y + 4, link.label, f'fill="{ink(link.color)}"' if link.color is not None else "")
