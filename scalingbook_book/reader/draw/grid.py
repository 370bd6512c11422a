"""Draw a grid of cells, tinted so that text stays legible on light and dark pages."""

from collections.abc import Sequence

from scalingbook_book.reader.draw import svg
from scalingbook_book.reader.draw.palette import ink
from scalingbook_book.reader.explorers.view import Cell, Grid

GAP, LARGEST, SMALLEST_TYPE = 3.0, 92.0, 9.0
LINE = 15.0
HIGHEST, LEAST_PART = 500.0, 24.0  # height of all rows of cells with parts; minimum height of one part
TALL = 12  # number of rows above which rows are low
FEW, LABELS, LABELS_OF_FEW = 3, 0.33, 0.46  # columns, and the share of the width that row labels may take


def grid(panel: Grid, width: float) -> str:
    """Return the grid as one SVG drawing."""
    head, top = svg.title(panel.title, width)
    share = LABELS_OF_FEW if len(panel.cells[0]) <= FEW else LABELS
    left = min(max(map(svg.measure, panel.rows)) + 10, share * width) if any(panel.rows) else 0.0
    lines = max((c.count("\n") + 1 for c in panel.columns), default=0) if any(panel.columns) else 0
    top += 20 + LINE * (lines - 1) if lines else 0
    wide, high, size = _cell_size(panel, width - left)
    sides = [
        (left + i * wide, top + j * high) for j in range(len(panel.cells)) for i in range(len(panel.cells[0]))
    ]
    cells = [c for row in panel.cells for c in row]
    names = [
        head for i, c in enumerate(panel.columns) for head in _head(c, left + (i + 0.5) * wide, top - 7, wide)
    ]
    names += [
        svg.text(left - 8, top + (j + 0.5) * high + 3, svg.fit(r, left - 8), 'text-anchor="end"')
        for j, r in enumerate(panel.rows)
    ]
    boxes = _tiles if len(cells) > svg.MANY else _boxes
    body = boxes(cells, sides, wide - GAP, high - GAP)
    texts = [
        _text(c, x, y, wide=wide - GAP, high=high - GAP, size=size)
        for c, (x, y) in zip(cells, sides, strict=True)
    ]
    height = top + high * len(panel.cells)
    parts = [
        svg.texts(svg.QUIET, names),
        *body,
        svg.texts(f'text-anchor="middle" font-size="{size:g}"', texts),
    ]
    return svg.picture(width, height, panel.title or "grid", head + parts)


def _cell_size(panel: Grid, room: float) -> tuple[float, float, float]:
    """Return width and height of a cell, and the font size that fits in it.

    A few cells are as wide as their text and headings need; many cells fill the width. Cells with a part are
    square, and smaller if there are many rows of them. A large number of rows makes each row low.
    """
    cells = [c for row in panel.cells for c in row]
    lines = [line for c in cells for line in c.text.split("\n")]
    longest = max(map(svg.measure, lines))
    heads = max((svg.measure(line) for c in panel.columns for line in c.split("\n")), default=0.0)
    columns = len(panel.cells[0])
    parts = any(c.part for c in cells)
    least = LARGEST if parts else 64.0 if columns < 5 else 44.0
    wide = min(room / columns, max(longest + 20, heads + 12, least))
    if room < 400 and columns >= 5:
        wide = room / columns
    size = min(svg.SIZE, max(svg.SIZE * (wide - GAP - 6) / longest, SMALLEST_TYPE)) if longest else svg.SIZE
    written = LINE * max(c.text.count("\n") + 1 for c in cells) if longest else 0.0
    if parts:
        below = written + 12 if written else 4.0
        side = min(wide, LARGEST, max(HIGHEST / len(panel.cells) - below, LEAST_PART))
        return wide, side + below, round(size, 1)
    air, high = (4, 20.0) if len(panel.cells) > TALL else (12, 34.0)
    label = LINE if panel.rows and all(panel.rows) else 0.0
    return wide, max(written + air, min(wide, high), label), round(size, 1)


def _head(label: str, x: float, y: float, wide: float) -> list[str]:
    """Return a column's label, with its last line at y."""
    lines = label.split("\n")[::-1]
    return [
        svg.text(x, y - i * LINE, svg.fit(line, wide), 'text-anchor="middle"') for i, line in enumerate(lines)
    ]


def _boxes(
    cells: Sequence[Cell], sides: Sequence[tuple[float, float]], wide: float, high: float
) -> list[str]:
    return [_box(c, x, y, wide, high) for c, (x, y) in zip(cells, sides, strict=True)]


def _tiles(
    cells: Sequence[Cell], sides: Sequence[tuple[float, float]], wide: float, high: float
) -> list[str]:
    """Return many cells as few elements: one path for all that look the same and have no part or tooltip."""
    spots = list(zip(cells, sides, strict=True))
    plain = svg.paths(
        (_paint(cell), f"M{x:.1f},{y:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z")
        for cell, (x, y) in spots
        if not cell.part and not cell.note
    )
    return plain + [_box(cell, x, y, wide, high) for cell, (x, y) in spots if cell.part or cell.note]


def _box(cell: Cell, x: float, y: float, wide: float, high: float) -> str:
    """Return the cell's background, or for a cell with a part the small array above its text."""
    if cell.part is None:
        return svg.rect(x, y, wide, high, f'rx="3" {_paint(cell)}', note=cell.note)
    lines = len(cell.text.split("\n")) if cell.text else 0
    side = min(wide, high - lines * LINE - (9 if lines else 0))
    x += (wide - side) / 2
    top, bottom, start, end = (edge * side for edge in cell.part)
    paint = f'fill="{ink(cell.color or 0)}" fill-opacity="{0.85 * cell.level:.2g}"'
    return svg.rect(x, y, side, side, f'rx="2" {EMPTY}', note=cell.note) + svg.rect(
        x + start, y + top, end - start, bottom - top, paint
    )


EMPTY = 'fill="currentColor" fill-opacity=".04" stroke="currentColor" stroke-opacity=".3"'


def _paint(cell: Cell) -> str:
    if cell.color is None:
        return 'fill="currentColor" fill-opacity=".06"'
    return f'fill="{ink(cell.color)}" fill-opacity="{0.42 * cell.level:.2g}"'


def _text(cell: Cell, x: float, y: float, *, wide: float, high: float, size: float) -> str:
    lines = cell.text.split("\n") if cell.text else []
    if not lines or max(svg.measure(t, size) for t in lines) > wide:
        return ""
    above = (high - len(lines) * LINE) / 2 if cell.part is None else high - len(lines) * LINE - 5
    first = y + above + LINE / 2 + size * 0.36
    return "".join(svg.text(x + wide / 2, first + i * LINE, line) for i, line in enumerate(lines))
