"""How does an array lie in a TPU's memory? In the order and the tiles that its type names.

`bf16[20,200]{1,0:T(8,128)(2,1)S(1)}`: dimensions from the one side by side to the outermost, tiles of 8 rows
by 128 columns in which 2 rows share a word of 32 bits, in memory space 1. Chapter: Profiling.
"""

import math
import re
from dataclasses import dataclass

from scalingbook_lib.units import DType, Result, binary, percent

LANES, SUBLANES, WORD_BYTES = 128, 8, 4
SPACES = {
    0: "HBM",
    1: "VMEM",
    2: "synchronization flags",
    3: "CMEM",
    5: "memory of the host",
    6: "scalar memory",
}
# type[sizes]{order:T(tile)(tile)S(space)}; what stands in braces may be missing
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)(?::((?:[A-Z]*\([\d,]*\))*))?\})?")
_XLA = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "s8", "fp8": "f8e4m3fn"}


@dataclass(frozen=True, slots=True)
class ArrayLayout(Result):
    """An array type with its place: `order` from the dimension side by side to the outermost one."""

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    space: int = 0

    @property
    def element_bytes(self) -> float:
        """What one element takes: 2 for bf16, 1/2 for s4."""
        bits = re.match(r"[a-z]+(\d+)", self.dtype)
        return int(bits[1]) / 8 if bits else 1.0  # pred, a byte

    @property
    def physical(self) -> tuple[int, ...]:
        """The sizes from the outermost dimension to the one side by side, as many as a tile has at least."""
        sizes = tuple(self.dims[k] for k in reversed(self.order))
        return (1,) * (len(self.tile) - len(sizes)) + sizes

    @property
    def tile(self) -> tuple[int, ...]:
        """The tile that fills up: the first level, as the next ones cut it evenly."""
        return self.tiles[0] if self.tiles else ()

    @property
    def stored(self) -> tuple[int, ...]:
        """`physical`, the innermost dimensions filled up to whole tiles."""
        outer = len(self.physical) - len(self.tile)
        # -(-n // side) tiles: rounded up
        filled = (side * -(-n // side) for n, side in zip(self.physical[outer:], self.tile, strict=True))
        return (*self.physical[:outer], *filled)

    @property
    def bytes(self) -> float:
        """Its elements and nothing else."""
        return math.prod(self.dims) * self.element_bytes

    @property
    def stored_bytes(self) -> float:
        """What it takes in memory."""
        return math.prod(self.stored) * self.element_bytes

    @property
    def ratio(self) -> float:
        """How many times its own size it takes in memory."""
        return self.stored_bytes / self.bytes if self.bytes else 1.0

    @property
    def rows_per_word(self) -> int:
        """How many rows share a word of 32 bits: 1, or what the second level of tiles says."""
        return self.tiles[-1][0] if len(self.tiles) > 1 and len(self.tiles[-1]) > 1 else 1

    @property
    def where(self) -> str:
        """The memory that holds it."""
        return SPACES.get(self.space, f"memory space {self.space}")

    @property
    def type(self) -> str:
        """Type and sizes: `bf16[20,200]`."""
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"

    @property
    def tiled(self) -> str:
        """The tiles as the compiler writes them: `T(8,128)(2,1)`; empty where there are none."""
        levels = "".join(f"({','.join(map(str, tile))})" for tile in self.tiles)
        return f"T{levels}" if levels else ""

    @property
    def text(self) -> str:
        """The type as the compiler writes it."""
        marks = self.tiled + (f"S({self.space})" if self.space else "")
        return f"{self.type}{{{','.join(map(str, self.order))}{':' * bool(marks)}{marks}}}"

    def __str__(self) -> str:
        more = self.ratio - 1
        padding = f", {percent(more)} of padding" if more else ", no padding"
        stored = f"stored in {binary(self.stored_bytes)} of {self.where}"
        return f"{self.text}: {binary(self.bytes)}, {stored}{padding}"


def arrays(text: str) -> tuple[ArrayLayout, ...]:
    """Every array type of a text, in order."""
    return tuple(_layout(found) for found in _ARRAY.finditer(text))


def parse(text: str) -> ArrayLayout:
    """The one array type that a text is; a ValueError that says how to write one."""
    found = _ARRAY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no array type; write one as in bf16[20,200]{{1,0:T(8,128)(2,1)}}")
    layout = _layout(found)
    if sorted(layout.order) != list(range(len(layout.dims))):
        raise ValueError(
            f"{text!r}: the order {{{found[3]}}} does not name each of {len(layout.dims)} dimensions once"
        )
    return layout


def _layout(found: re.Match[str]) -> ArrayLayout:
    dims, marks = _numbers(found[2]), found[4] or ""
    order = _numbers(found[3]) if found[3] is not None else tuple(reversed(range(len(dims))))
    # marks other than T, such as S(1), have numbers in parentheses too, which are no tiles
    space = re.search(r"S\((\d+)\)", marks)
    tiles = re.findall(r"\(([\d,]+)\)", re.sub(r"[A-SU-Z]+\([\d,]*\)", "", marks))
    return ArrayLayout(found[1], dims, order, tuple(map(_numbers, tiles)), int(space[1]) if space else 0)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def tiled(
    rows: int, columns: int, dtype: DType, tile: tuple[int, int], *, turned: bool = False
) -> ArrayLayout:
    """A matrix in tiles of that size; `turned`, its columns are the rows of the tiles."""
    if min(rows, columns, *tile) < 1:
        raise ValueError(f"[{rows}, {columns}] in tiles of {tile}: write sizes of at least 1")
    if dtype.name not in _XLA:
        raise ValueError(f"{dtype} has no tiles here; write one of {', '.join(_XLA)}")
    packed = int(WORD_BYTES / dtype.bytes)
    levels = (tile, (packed, 1)) if packed > 1 and tile[0] % packed == 0 else (tile,)
    return ArrayLayout(_XLA[dtype.name], (rows, columns), (0, 1) if turned else (1, 0), levels)


def chosen(rows: int, columns: int, dtype: DType) -> ArrayLayout:
    """How XLA:TPU lays a matrix that a program is given: whichever way round takes fewer bytes.

    A rule read off libtpu 0.0.51 for v5e, not a documented one; a test holds it beside the compiler. Tiles
    are 128 columns wide and have 1, 2, 4 or 8 rows, as few as hold all rows and fill a word; int8 has 32
    where that divides the rows.
    """
    straight = tiled(rows, columns, dtype, (_tile_rows(rows, dtype), LANES))
    turned = tiled(rows, columns, dtype, (_tile_rows(columns, dtype), LANES), turned=True)
    return turned if turned.stored_bytes < straight.stored_bytes else straight


def _tile_rows(rows: int, dtype: DType) -> int:
    packed = int(WORD_BYTES / dtype.bytes)
    if packed * SUBLANES == 32 and rows % 32 == 0:
        return 32
    # the power of two that holds all rows, at least a word of them and at most 8
    return max(packed, min(SUBLANES, 1 << (rows - 1).bit_length()))
