"""Explorer of tiled layouts: tiles, the words in a tile, and padding."""

from collections.abc import Sequence

from scalingbook_book.reader.explorers.parts import (
    Cell,
    Chart,
    Choice,
    Curve,
    Explorer,
    Grid,
    Points,
    Readout,
    Scale,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib.evidence.compiled.layout import ArrayLayout, default_layout, tiled
from scalingbook_lib.units import DType, binary, dtype

BY_COMPILER = "the compiler's"
TILES = {"2 × 2": (2, 2), "8 × 128": (8, 128), "16 × 128": (16, 128), "32 × 128": (32, 128)}
DRAWN, _WORDS = 6, 8  # tiles along a side of the picture, rows of words
_LANES = (0, 1, 2, None, -1)  # columns of the picture of words: the first ones and the last
_MOST = 512
# where a size can jump: at eights while the matrix may be turned, at whole tiles beyond
_EDGES = (1, 2, 4, *range(8, 65, 8), 128, 256, 384)
_COLUMNS = (*sorted({n + more for n in _EDGES for more in (0, 1)}), _MOST)


def lay(rows: int, columns: int, stored: DType, tile: str) -> ArrayLayout:
    """The layout of the matrix in tiles of the given size, or in those that the compiler chooses."""
    return (
        default_layout(rows, columns, stored)
        if tile == BY_COMPILER
        else tiled(rows, columns, stored, TILES[tile])
    )


def _tiles(*, rows: int, columns: int, stored: str, tile: str) -> View:
    kind = dtype(stored)
    now = lay(rows, columns, kind, tile)
    wider, taller = lay(rows, columns + 1, kind, tile), lay(rows + 1, columns, kind, tile)
    return View(
        _verdict(now, wider),
        (_painted(now), _words(now), _curves(now, rows, columns, kind, tile)),
        (
            Readout("elements", now.bytes, "", binary(now.bytes)),
            Readout("as stored", now.stored_bytes, "", binary(now.stored_bytes)),
            Readout("ratio", now.ratio, "×"),
            Readout("stored shape", now.stored[0], "", " × ".join(f"{n:,}" for n in now.stored)),
            _more("one more column", now, wider),
            _more("one more row", now, taller),
        ),
        columns=2,
    )


def _more(what: str, now: ArrayLayout, then: ArrayLayout) -> Readout:
    """The bytes that another column or row adds; negative if the compiler then transposes the matrix."""
    added = then.stored_bytes - now.stored_bytes
    return Readout(what, added, "", f"{'+' * (added > 0)}{'−' * (added < 0)}{binary(abs(added))}")


def _painted(now: ArrayLayout) -> Grid:
    """The tiles, with the part of each that holds elements; the last row and column stay in the picture."""
    counts = [-(-n // side) for n, side in zip(now.physical, now.tile, strict=True)]
    down, across = map(shown, counts)
    cells = [[tile_cell(now.physical, now.tile, i, j) for j in across] for i in down]
    more = "" if max(counts) <= DRAWN else ", some omitted"
    plural = "s" * (counts[0] * counts[1] > 1)
    return Grid(f"{counts[0]:,} × {counts[1]:,} tile{plural} of {now.tiled[1:]}{more}", (), (), cells)


def shown(tiles: int) -> list[int]:
    """The tiles along a side that are drawn: all, or the first and the last."""
    return list(range(tiles)) if tiles <= DRAWN else [*range(DRAWN - 1), tiles - 1]


def tile_cell(sizes: Sequence[int], sides: Sequence[int], i: int, j: int) -> Cell:
    """A tile with the part of it that holds elements."""
    (rows, columns), (high, wide) = sizes, sides
    used = min(rows - i * high, high), min(columns - j * wide, wide)
    note = f"tile ({i}, {j}): {used[0]} × {used[1]} elements in a tile of {high} × {wide}"
    part = (0, used[0] / high, 0, used[1] / wide)
    return Cell("", 0 if used == (high, wide) else 1, note, part, 0.8)


def _words(now: ArrayLayout) -> Grid:
    """The words of the last tile, and which rows share each; a word without an element has no color."""
    (high, wide), packed = now.tile, now.rows_per_word
    lanes = _LANES if wide > len(_LANES) else range(wide)
    lanes = [k if k is None or k >= 0 else wide + k for k in lanes]
    words = min(high // packed, _WORDS)
    corner = (now.stored[0] - high, now.stored[1] - wide)
    cells = [[_word(now, corner, k * packed, lane) for lane in lanes] for k in range(words)]
    heads = ["…" if lane is None else f"lane {lane}" for lane in lanes]
    return Grid(_packing(now, words), [f"{k}" for k in range(words)], heads, cells)


def _packing(now: ArrayLayout, words: int) -> str:
    """The title: how many rows share a word, or one element each where the tile does not pack."""
    packed, what = now.rows_per_word, "columns" if now.order == (0, 1) else "rows"
    bits = int(8 * now.element_bytes * packed)
    share = f"{packed} {what} in each" if packed > 1 else f"one of the {what} in each"
    all_ = now.tile[0] // packed
    more = "" if words == all_ else f", the first {words} of {all_}"
    return f"Last tile, {'words' if bits == 32 else 'elements'} of {bits} bits: {share}{more}"


def _word(now: ArrayLayout, corner: tuple[int, int], row: int, lane: int | None) -> Cell:
    (rows, columns), packed, first = now.physical, now.rows_per_word, corner[0] + row
    text = ", ".join(map(str, range(first, first + packed))) if packed < 4 else f"{first} to {first + 3}"
    if lane is None:
        return Cell("…", level=0)
    held = max(0, min(packed, rows - first)) if corner[1] + lane < columns else 0
    note = f"{held} of {packed} elements"
    return Cell(text, (0 if held == packed else 1) if held else None, note, level=0.8)


def _curves(now: ArrayLayout, rows: int, columns: int, kind: DType, tile: str) -> Chart:
    across = sorted({*_COLUMNS, columns})
    marks = [
        Curve("as stored", across, [lay(rows, n, kind, tile).stored_bytes for n in across], 1),
        Curve("elements", across, [rows * n * kind.bytes for n in across], 0),
    ]
    if tile != BY_COMPILER:
        theirs = [default_layout(rows, n, kind).stored_bytes for n in across]
        marks.insert(1, Curve("the compiler's", across, theirs, 2, dashed=True))
    return Chart(
        Scale("columns", "", "linear", 0, _MOST),
        Scale("size", "B"),
        (*marks, Points("", [columns], [now.stored_bytes], [f"{now.ratio:.3g} ×"], 1)),
        title=f"{pluralize(rows, 'row')} in {kind}, by the number of columns",
    )


def _verdict(now: ArrayLayout, wider: ArrayLayout) -> str:
    said = f"{now.text} is stored as {' × '.join(f'{n:,}' for n in now.stored)}"
    ratio = f"{now.ratio:.3g} times the bytes of its elements" if now.ratio > 1 else "no padding"
    turned = ", transposed because that takes fewer tiles" if now.order == (0, 1) else ""
    return f"{said}{turned}: {ratio}. {_next(now, wider)}"


def _next(now: ArrayLayout, wider: ArrayLayout) -> str:
    added = wider.stored_bytes - now.stored_bytes
    own = binary(wider.bytes - now.bytes)
    if added <= 0:
        return "One more column costs nothing, because it fits in the padding."
    many = f" and raises the ratio to {wider.ratio:.3g}" if wider.ratio > now.ratio else ""
    return f"One more column has {own} of elements but adds {binary(added)}{many}."


TILES_EXPLORER = Explorer(
    key="profiling.tiles",
    title="Tiles, words and padding",
    question="How many bytes does a small matrix take, and what does one more column cost?",
    controls={
        "rows": Slider("rows", 1, 64, 20),
        "columns": Slider("columns", 1, _MOST, 128),
        "stored": Choice("data type", ("fp32", "bf16", "int8"), "bf16"),
        "tile": Choice("tiles", (BY_COMPILER, *TILES)),
    },
    view=_tiles,
)
