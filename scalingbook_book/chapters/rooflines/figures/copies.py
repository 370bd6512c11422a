"""Which rows meet one copy of the weights? A training batch and a decoding step, dealt to the copies."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.units import count

SEQUENCES, LENGTH, COPIES, CHIPS = 512, 4096, 2048, 8
TOKENS = SEQUENCES * LENGTH
EACH = TOKENS // COPIES


def copies() -> Figure:
    """The B of a matmul is dealt out twice: into tokens, then to the copies of the weights."""
    return Figure(
        key="rooflines.copies",
        alt=f"A sheet of {SEQUENCES} sequences of {count(LENGTH)} tokens, {TOKENS:,} rows, is dealt "
        f"to {count(COPIES)} copies of the weights: {count(EACH)} rows meet each. One copy is "
        f"spread over {CHIPS} chips, and its rows meet all of them. In decoding a sequence "
        f"brings one row: {SEQUENCES} rows for {count(COPIES)} copies.",
        caption=f"B counts the rows that meet one copy of the weights, however many chips hold it. In decoding "
        f"{SEQUENCES} sequences are not even one row for each of {count(COPIES)} copies.",
        parts=lambda wide: [_dealt(wide, "training", LENGTH), _dealt(wide, "decoding", 1)],
    )


def _dealt(wide: float, phase: str, length: int) -> Sketch:
    """The rows of a step at the left, dealt to three of the copies."""
    room, top, part = wide > 400, 58.0, 28.0
    high, sheet, chip = 3 * part + 16, (130.0 if room else 78.0), (34.0 if room else 17.0)
    middle, rows = 6 + sheet + (150 if room else 62), SEQUENCES * length
    enough = rows >= COPIES
    tall, held = (high, f"{rows:,}\nrows") if enough else (4.0, "")
    brought = f"{SEQUENCES} sequences\n× {count(length)} token{'s' * (length > 1)}"
    each, copies = f"B = {rows / COPIES:,g} rows each", f"{count(COPIES)} copies of W,\neach on {CHIPS} chips"
    shapes: list[Shape] = [
        Words(x=6, y=12, text=phase, align="start", bold=True),
        Words(x=6, y=30, text=brought, align="start", quiet=True),
        Words(x=middle + 6, y=top + high + 18, text=each, bold=True, color=CACHE),
        Words(x=middle + 40 + 4 * chip, y=30, text=copies, quiet=True),
        Area(x=6, y=top + (high - tall) / 2, wide=sheet, high=tall, color=CACHE, text=held),
    ]
    for k in range(3):
        y, start = top + (part + 8) * k, top + (high * (k + 0.5) / 3 if enough else high / 2)
        fed, bundle = (enough or k == 0), (part - 6 if enough else 3.0)
        color, shade = (MEMORY, 0.3) if fed else (IDLE, 0.06)
        for x in (middle + 40 + chip * i for i in range(CHIPS)):
            shapes.append(Area(x=x, y=y, wide=chip - 2, high=part, color=color, shade=shade))
        if fed:
            shapes += [
                Arrow(x0=6 + sheet + 4, y0=start, x1=middle - 14, y1=y + part / 2, color=CACHE),
                Area(x=middle - 10, y=y + (part - bundle) / 2, wide=32, high=bundle, color=CACHE, shade=0.6),
            ]
    return Sketch(wide, top + high + 34, shapes)
