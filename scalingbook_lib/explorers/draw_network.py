"""How are devices and the links between them drawn? Boxes with the chunks they hold, arrows for what moves."""

import math
from collections.abc import Sequence

from scalingbook_lib.explorers import svg
from scalingbook_lib.explorers.palette import ink
from scalingbook_lib.explorers.view import Link, Network, Node

MARGIN = 46.0
LARGEST = 72.0

Spot = tuple[float, float]


def network(panel: Network, width: float) -> str:
    """The network as one SVG drawing."""
    head, top = svg.title(panel.title, width)
    aspect = panel.aspect if width > 400 else min(max(panel.aspect * 1.35, 0.3), 1.1)
    deep = max(width * aspect, 2 * MARGIN + 10)
    spots = [
        (MARGIN + n.x * (width - 2 * MARGIN), top + MARGIN + n.y * (deep - 2 * MARGIN)) for n in panel.nodes
    ]
    half = _half_size(spots)
    most = max((abs(link.value) for link in panel.links), default=0.0)
    bounds = (4.0, top + 4.0, width - 4.0, top + deep - 4.0)
    quiet = [_link(link, spots, half, most, bounds) for link in panel.links if link.color is None]
    busy = [_link(link, spots, half, most, bounds) for link in panel.links if link.color is not None]
    nodes = [_node(n, spot, half) for n, spot in zip(panel.nodes, spots, strict=True)]
    labels = [_link_label(link, spots, half, bounds) for link in panel.links if link.label]
    body = [
        svg.group('fill="none" stroke="currentColor" stroke-opacity=".28"', quiet), *busy, *nodes,
        svg.group(f'class="ex-labels" text-anchor="middle" font-size="12" font-weight="500" {svg.HALO}', labels),
    ]  # fmt: skip
    return svg.picture(width, top + deep, panel.title or "network", head + body)


def _half_size(spots: Sequence[Spot]) -> float:
    """Half the side of a box, so that links between neighbours stay visible."""
    nearest = min((math.dist(a, b) for i, a in enumerate(spots) for b in spots[:i]), default=LARGEST / 0.56)
    return min(nearest * 0.28, LARGEST / 2)


def _node(node: Node, spot: Spot, half: float) -> str:
    x, y = spot
    note = f"<title>{svg.escape(node.note)}</title>" if node.note else ""
    box = (
        f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:.1f}" height="{2 * half:.1f}" rx="4" '
        f'fill="var(--ex-bg,#fff)" stroke="currentColor" stroke-opacity=".55">{note}</rect>'
    )
    if not node.parts:
        return box + svg.text(x, y + 4.5, svg.fit(node.label, 2 * half), 'text-anchor="middle"')
    name = svg.text(
        x, y + half + 14, svg.fit(node.label, 3 * half), f'text-anchor="middle" font-size="12" {svg.QUIET}'
    )
    return box + _parts(node.parts, x, y, half - 3) + name


def _parts(parts: Sequence[int | None], x: float, y: float, half: float) -> str:
    """The slots of a box: columns up to eight, else rows of them."""
    columns = len(parts) if len(parts) <= 8 else math.ceil(math.sqrt(len(parts)))
    rows = math.ceil(len(parts) / columns)
    wide, high = 2 * half / columns, 2 * half / rows
    return "".join(
        f'<rect x="{x - half + i % columns * wide:.1f}" y="{y - half + i // columns * high:.1f}" '
        f'width="{max(wide - 1, 0.6):.1f}" height="{max(high - 1, 0.6):.1f}" '
        + (f'fill="{ink(c)}"/>' if c is not None else 'fill-opacity=".09"/>')
        for i, c in enumerate(parts)
    )


def _course(link: Link, spots: Sequence[Spot], half: float, bounds: tuple) -> tuple[Spot, Spot, Spot]:
    """Where a link starts, bends and ends: at the boxes' edges, a little to the right of the straight line."""
    (x0, y0), (x1, y1) = spots[link.start], spots[link.end]
    length = math.dist((x0, y0), (x1, y1)) or 1.0
    right = (-(y1 - y0) / length, (x1 - x0) / length)
    aside = half * 0.3 if link.color is not None else 0.0
    x0, y0, x1, y1 = (
        x0 + right[0] * aside,
        y0 + right[1] * aside,
        x1 + right[0] * aside,
        y1 + right[1] * aside,
    )
    push = link.bend * length
    middle = ((x0 + x1) / 2 + right[0] * push, (y0 + y1) / 2 + right[1] * push)
    middle = (min(max(middle[0], bounds[0]), bounds[2]), min(max(middle[1], bounds[1]), bounds[3]))
    return _edge((x0, y0), middle, half + 3), middle, _edge((x1, y1), middle, half + 5)


def _edge(centre: Spot, towards: Spot, half: float) -> Spot:
    """Where the way from a box's centre leaves the box."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    reach = max(abs(dx), abs(dy)) or 1.0
    share = min(half / reach, 1.0)
    return centre[0] + dx * share, centre[1] + dy * share


def _link(link: Link, spots: Sequence[Spot], half: float, most: float, bounds: tuple) -> str:
    start, middle, end = _course(link, spots, half, bounds)
    way = f"M{start[0]:.1f},{start[1]:.1f}Q{middle[0]:.1f},{middle[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
    if link.color is None:
        return f'<path d="{way}"/>'
    thick = 1.6 + (2.4 * abs(link.value) / most if most else 0.4)
    paint = ink(link.color)
    return f'<path d="{way}" fill="none" stroke="{paint}" stroke-width="{thick:.1f}"/>{_head(middle, end, thick, paint)}'


def _head(middle: Spot, end: Spot, thick: float, paint: str) -> str:
    """An arrow's head at the end of a link."""
    length = math.dist(middle, end) or 1.0
    ux, uy = (end[0] - middle[0]) / length, (end[1] - middle[1]) / length
    tip, side = 4.0, 3.0 + thick
    base = (end[0] - ux * (tip + thick), end[1] - uy * (tip + thick))
    return (
        f'<path d="M{end[0] + ux * 2:.1f},{end[1] + uy * 2:.1f}L{base[0] - uy * side:.1f},{base[1] + ux * side:.1f}'
        f'L{base[0] + uy * side:.1f},{base[1] - ux * side:.1f}z" fill="{paint}"/>'
    )


def _link_label(link: Link, spots: Sequence[Spot], half: float, bounds: tuple) -> str:
    start, middle, end = _course(link, spots, half, bounds)
    x, y = (start[0] + 2 * middle[0] + end[0]) / 4, (start[1] + 2 * middle[1] + end[1]) / 4
    length = math.dist(start, end) or 1.0
    x, y = x - (end[1] - start[1]) / length * 9, y + (end[0] - start[0]) / length * 9
    wide = svg.measure(link.label, 12) / 2
    x, y = min(max(x, bounds[0] + wide), bounds[2] - wide), min(max(y + 4, bounds[1] + 10), bounds[3] - 3)
    return svg.text(x, y, link.label, f'fill="{ink(link.color)}"' if link.color is not None else "")
