"""Tiled array layouts in a TPU's memory, as HLO types give them.

`bf16[20,200]{1,0:T(8,128)(2,1)S(1)}`: dimensions from minor to major, tiles of 8 rows by 128 columns in which
2 rows share a 32-bit word, in memory space 1. Chapter: Profiling.
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
# type[sizes]{order:T(tile)(tile)S(space)}; the part in braces is optional
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)(?::((?:[A-Z]*\([\d,]*\))*))?\})?")
_XLA = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "s8", "fp8": "f8e4m3fn"}


@dataclass(frozen=True, slots=True)
class ArrayLayout(Result):
    """An array type and its memory layout; `order` lists the dimensions from minor to major."""

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    space: int = 0

    @property
    def element_bytes(self) -> float:
        """Bytes per element: 2 for bf16, 1/2 for s4."""
        bits = re.match(r"[a-z]+(\d+)", self.dtype)
        return int(bits[1]) / 8 if bits else 1.0  # pred takes a byte

    @property
    def physical(self) -> tuple[int, ...]:
        """The sizes from the major to the minor dimension, padded to at least the rank of a tile."""
        sizes = tuple(self.dims[k] for k in reversed(self.order))
        return (1,) * (len(self.tile) - len(sizes)) + sizes

    @property
    def tile(self) -> tuple[int, ...]:
        """The outermost tile level, which determines the padding."""
        return self.tiles[0] if self.tiles else ()

    @property
    def stored(self) -> tuple[int, ...]:
        """`physical` with the minor dimensions padded to whole tiles."""
        outer = len(self.physical) - len(self.tile)
        # -(-n // side) tiles: rounded up
        filled = (side * -(-n // side) for n, side in zip(self.physical[outer:], self.tile, strict=True))
        return (*self.physical[:outer], *filled)

    @property
    def bytes(self) -> float:
        """The bytes of its elements, without padding."""
        return math.prod(self.dims) * self.element_bytes

    @property
    def stored_bytes(self) -> float:
        """The bytes that it occupies in memory, with padding."""
        return math.prod(self.stored) * self.element_bytes

    @property
    def ratio(self) -> float:
        """The bytes with padding over those without."""
        return self.stored_bytes / self.bytes if self.bytes else 1.0

    @property
    def rows_per_word(self) -> int:
        """The rows that share a 32-bit word: 1, or what the second tile level says."""
        return self.tiles[-1][0] if len(self.tiles) > 1 and len(self.tiles[-1]) > 1 else 1

    @property
    def where(self) -> str:
        """The name of the memory that holds it."""
        return SPACES.get(self.space, f"memory space {self.space}")

    @property
    def type(self) -> str:
        """Dtype and sizes: `bf16[20,200]`."""
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"

    @property
    def tiled(self) -> str:
        """The tiles as the compiler writes them, `T(8,128)(2,1)`, or "" without tiles."""
        levels = "".join(f"({','.join(map(str, tile))})" for tile in self.tiles)
        return f"T{levels}" if levels else ""

    @property
    def text(self) -> str:
        """The whole type as the compiler writes it."""
        marks = self.tiled + (f"S({self.space})" if self.space else "")
        return f"{self.type}{{{','.join(map(str, self.order))}{':' * bool(marks)}{marks}}}"

    def __str__(self) -> str:
        more = self.ratio - 1
        padding = f", {percent(more)} of padding" if more else ", no padding"
        stored = f"stored in {binary(self.stored_bytes)} of {self.where}"
        return f"{self.text}: {binary(self.bytes)}, {stored}{padding}"


def arrays(text: str) -> tuple[ArrayLayout, ...]:
    """Every array type in a text, in order."""
    return tuple(_layout(found) for found in _ARRAY.finditer(text))


def parse(text: str) -> ArrayLayout:
    """The array type that a text consists of.

    Raises a ValueError that says how to write one.
    """
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
    # other marks, such as S(1), have numbers in parentheses too
    space = re.search(r"S\((\d+)\)", marks)
    tiles = re.findall(r"\(([\d,]+)\)", re.sub(r"[A-SU-Z]+\([\d,]*\)", "", marks))
    return ArrayLayout(found[1], dims, order, tuple(map(_numbers, tiles)), int(space[1]) if space else 0)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def tiled(
    rows: int, columns: int, dtype: DType, tile: tuple[int, int], *, transposed: bool = False
) -> ArrayLayout:
    """A matrix in tiles of that size; `transposed`, its columns are the rows of the tiles.

    Raises a ValueError for a size below 1 and for a dtype without tiles.
    """
    if min(rows, columns, *tile) < 1:
        raise ValueError(f"[{rows}, {columns}] in tiles of {tile}: write sizes of at least 1")
    if dtype.name not in _XLA:
        raise ValueError(f"{dtype} has no tiles here; write one of {', '.join(_XLA)}")
    packed = int(WORD_BYTES / dtype.bytes)
    levels = (tile, (packed, 1)) if packed > 1 and tile[0] % packed == 0 else (tile,)
    return ArrayLayout(_XLA[dtype.name], (rows, columns), (0, 1) if transposed else (1, 0), levels)


def default_layout(rows: int, columns: int, dtype: DType) -> ArrayLayout:
    """The layout that XLA:TPU gives a program's matrix argument: the orientation with less padding.

    Observed in libtpu 0.0.51 for v5e, not documented; a test compares it with the compiler. Tiles are 128
    columns wide and have 1, 2, 4 or 8 rows, as few as hold all rows and fill a word; int8 has 32 if that
    divides the rows.
    """
    straight = tiled(rows, columns, dtype, (_tile_rows(rows, dtype), LANES))
    transposed = tiled(rows, columns, dtype, (_tile_rows(columns, dtype), LANES), transposed=True)
    return transposed if transposed.stored_bytes < straight.stored_bytes else straight


def _tile_rows(rows: int, dtype: DType) -> int:
    packed = int(WORD_BYTES / dtype.bytes)
    if packed * SUBLANES == 32 and rows % 32 == 0:
        return 32
    # the power of two that holds all rows, from one word of them to 8
    return max(packed, min(SUBLANES, 1 << (rows - 1).bit_length()))
