"""Figures of compiled programs: the parts of a line, padding, and replica groups."""

from scalingbook_book.chapters.profiling.explorers.dissector import WRITTEN
from scalingbook_book.reader.draw.svg import measure
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence.compiled.layout import ArrayLayout, default_layout, tiled
from scalingbook_lib.evidence.compiled.lines import LINES
from scalingbook_lib.units import BF16, FP32

LINE = LINES["matmul and tanh in one fusion"]
PARTS = {  # of the line, with what each says and its color
    "name": ("its name", IDLE),
    "sizes": ("type, local shape", MEMORY),
    "order": ("order", MEMORY),
    "tiles": ("tiles", MEMORY),
    "memory": ("memory space: HBM", MEMORY),
    "operation": ("operation", MATH),
    "operands": ("operands", NETWORK),
    "calls": ("kind, computation", MATH),
    "source": ("op_name: your scopes", EXPERTS),
}
TILE = 8, 128
SMALL, TALL = (9, 129), (4096, 129)
ROWS = "all-gather over Y, groups as an iota"
COLUMNS = "all-reduce over X"


def line() -> Figure:
    """A line of optimized HLO and its parts."""
    said = "; ".join(f"{word}, {WRITTEN[part](LINE)}" for part, (word, _) in PARTS.items())
    return Figure(
        key="profiling.line",
        alt=f"One line of an optimized program in boxes, from left to right, with the meaning of each part below it: {said}.",
        caption="The parts of one line of a compiled program. It reads like an assignment: a name, the type "
        "and layout of the result, the operation, and its operands. The last part leads back to "
        "your code if you named your scopes.",
        parts=lambda wide: [_line(wide)],
    )


def _line(wide: float) -> Sketch:
    """Boxes in reading order, on as many rows as they need."""
    x, y = 4.0, 8.0
    shapes: list[Shape] = []
    for part, (word, color) in PARTS.items():
        text = WRITTEN[part](LINE)
        long = max(measure(text), measure(word)) + 14
        if x + long > wide - 4 and x > 4:
            x, y = 4.0, y + 62
        dashed = part == "memory"  # HBM has no mark in the line
        shapes.append(
            Area(x=x, y=y, wide=long, high=28, text=text, color=color, shade=0.2, below=word, dashed=dashed)
        )
        x += long + 8
    return Sketch(wide, y + 52, shapes)


def padding() -> Figure:
    """Padding of three arrays in tiles of 8 by 128."""
    small, written, turned = tiled(*SMALL, FP32, TILE), tiled(*TALL, BF16, TILE), default_layout(*TALL, BF16)
    return Figure(
        key="profiling.padding",
        alt=f"Three arrays in tiles of 8 by 128. {small.type} needs four tiles, three of them nearly empty: {small.ratio:.1f} times its bytes. {written.type} as written needs two columns of tiles, "
        f"{written.ratio:.2f} times its bytes. Transposed, its 129 columns are rows, and {turned.ratio:.2f} times its bytes are enough.",
        caption="How three arrays are stored in whole tiles. With one row and one column too many, "
        f"{small.type} takes {small.ratio:.1f} times its bytes. The compiler transposes "
        f"{written.type}, so it takes {turned.ratio:.2f} times its bytes instead of "
        f"{written.ratio:.2f}. (Dashed: as stored, with padding. Not to scale.)",
        parts=lambda wide: [_three(wide, small, written, turned)],
    )


def _three(wide: float, small: ArrayLayout, written: ArrayLayout, turned: ArrayLayout) -> Sketch:
    abreast = wide > 400
    across = wide / 3 if abreast else wide
    drawn = (
        (small, small.type, 80.0, 150.0),
        (written, f"{written.type}, as written", 100.0, 90.0),
        (turned, "the same, transposed", 45.0, 180.0),
    )
    shapes: list[Shape] = []
    y = 0.0
    for k, (layout, name, high, long) in enumerate(drawn):
        x = across * k if abreast else 0.0
        shapes.append(Words(x=x + across / 2, y=y + 16, text=name, bold=True))
        shapes += _array(x + across / 2 - long / 2, y + 40, long, high, layout)
        rows, columns = layout.stored
        said = f"stored {rows:,} × {columns:,}: {layout.ratio:.3g} ×"
        shapes.append(Words(x=x + across / 2, y=y + high + 60, text=said))
        y += 0 if abreast else high + 84
    return Sketch(wide, 172.0 if abreast else y - 14, shapes)


def _array(x: float, y: float, wide: float, high: float, layout: ArrayLayout) -> list[Shape]:
    """The stored array, the part of it that holds elements, and the tiles if there are few."""
    (rows, columns), (all_rows, all_columns) = layout.physical, layout.stored
    held = wide * columns / all_columns, high * rows / all_rows
    shapes: list[Shape] = [
        Area(
            x=x,
            y=y,
            wide=wide,
            high=high,
            color=IDLE,
            shade=0.05,
            dashed=True,
            top=f"{columns:,}",
            left=f"{rows:,}",
        ),
        Area(x=x, y=y, wide=held[0], high=held[1], color=MEMORY, shade=0.5),
    ]
    down, across = all_rows // TILE[0], all_columns // TILE[1]
    if max(down, across) <= 2:
        step = wide / across, high / down
        shapes += [
            Area(x=x + step[0] * i, y=y + step[1] * j, wide=step[0], high=step[1], color=None, shade=0)
            for i in range(across)
            for j in range(down)
        ]
    return shapes


def groups() -> Figure:
    """Replica groups on a mesh of 2 by 4, and how they are written."""
    rows, columns = LINES[ROWS], LINES[COLUMNS]
    return Figure(
        key="profiling.groups",
        alt=f"The eight devices twice, as 2 by 4. First, each row has a color: groups {rows.groups}. Second, each column has a color: groups {columns.groups}. Below each, how the groups are written.",
        caption="Replica groups of two collectives on a 2 × 4 mesh. They tell you over which mesh axis a "
        "collective runs. The groups of the all-gather are the rows of the table of devices. Those of the "
        "all-reduce are its columns, so the table is transposed before it is divided.",
        parts=lambda wide: [_grids(wide)],
    )


def _grids(wide: float) -> Sketch:
    spelled = {
        ROWS: (LINES[ROWS].participants, LINES["all-gather over Y"].participants, "{{0,1,2,3},{4,5,6,7}}"),
        COLUMNS: (LINES[COLUMNS].participants,),
    }
    abreast = wide > 400
    colors = (MATH, NETWORK, EXPERTS, CACHE)
    shapes: list[Shape] = []
    for k, (name, written) in enumerate(spelled.items()):
        group = {d: i for i, devices in enumerate(LINES[name].groups) for d in devices}
        x, y = (wide / 2 * k, 0.0) if abreast else (0.0, 190.0 * k)
        left = x + (wide / 2 if abreast else wide) / 2 - 92
        shapes.append(Words(x=left + 90, y=y + 16, text=name.partition(",")[0], bold=True))
        shapes += [
            Area(
                x=left + 46 * (d % 4),
                y=y + 26 + 46 * (d // 4),
                wide=42,
                high=42,
                text=f"{d}",
                color=colors[group[d]],
                shade=0.4,
            )
            for d in range(8)
        ]
        for i, text in enumerate(written):
            shapes.append(
                Words(x=left + 90, y=y + 138 + 18 * i, text=text.removeprefix("replica_groups="), size=12)
            )
    return Sketch(wide, 186.0 if abreast else 190.0 + 150, shapes)
