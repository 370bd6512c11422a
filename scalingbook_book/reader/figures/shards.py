"""Draw a sharded array once for every chip of a mesh, with the part that the chip holds filled in.

Each chip has the same color in every drawing of sharded arrays.

>>> len(sharded("A[I_X, J]", Mesh(X=2, Y=2), x=0, y=0, side=30))
8
"""

import re

from scalingbook_book.reader.figures.shapes import IDLE, Area, Shape, Words
from scalingbook_lib.notation import Mesh, parse

type Block = tuple[range, ...]  # the rows and the columns that are held


def sharded(text: str, mesh: Mesh, *, x: float, y: float, side: float, air: float = 5.0) -> list[Shape]:
    """Return an array such as `A[I_X, J]` on every chip of the mesh, with the last mesh axis across.

    In a partial sum, a chip's part is pale and marked with a plus sign.
    """
    array = parse(text, mesh)
    whole = dict.fromkeys(array.names, mesh.devices)  # as many rows and columns as any sharding can require
    shapes: list[Shape] = []
    for k, block in enumerate(array.blocks(mesh, **whole).values()):
        across, down = k % mesh.shape[-1], k // mesh.shape[-1]
        left, top = x + across * (side + air), y + down * (side + air)
        shapes += part(block, mesh.devices, x=left, y=top, side=side, color=k, summed=bool(array.partial))
    return shapes


def part(
    block: Block, whole: int, *, x: float, y: float, side: float, color: int, summed: bool = False
) -> list[Shape]:
    """Return an array of `whole` by `whole` as one chip holds it: its outline, and its own block in color."""
    rows, columns = block
    one = side / whole
    here = Area(
        x=x + one * columns.start,
        y=y + one * rows.start,
        wide=one * len(columns),
        high=one * len(rows),
        color=color,
        shade=0.2 if summed else 0.6,
    )
    plus = [Words(x=x + side / 2, y=y + side / 2 + 5, text="+", bold=True, size=15)] if summed else []
    return [Area(x=x, y=y, wide=side, high=side, color=IDLE, shade=0.05), here, *plus]


def extent(mesh: Mesh, side: float, air: float = 5.0) -> tuple[float, float]:
    """Return the width and height of `sharded` on a mesh."""
    across = mesh.shape[-1]
    down = mesh.devices // across
    return across * (side + air) - air, down * (side + air) - air


def subscripted(text: str) -> str:
    """Return an array or a matmul as words of a drawing, with mesh axes as subscripts: `A[I_{X}, J]`."""
    return re.sub(r"_([A-Z]+)", r"_{\1}", text)
