"""Figure of the batch of a matmul: the rows of a training step and of a decode step, divided among replicas."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.units import count
from scalingbook_lib.words import pluralize

SEQUENCES, LENGTH, REPLICAS, CHIPS = 512, 4096, 128, 8
TOKENS = SEQUENCES * LENGTH
EACH, EACH_IN_DECODE = TOKENS // REPLICAS, SEQUENCES // REPLICAS


def copies() -> Figure:
    """Rows per model replica in a training step and in a decode step of the same sequences."""
    return Figure(
        key="rooflines.copies",
        alt=f"Top, training: {SEQUENCES} sequences of {count(LENGTH)} tokens are {TOKENS:,} rows. They are "
        f"divided among {REPLICAS} replicas of the weights, so each replica has {count(EACH)} rows. A replica is "
        f"sharded over {CHIPS} chips, and all of them work on its rows. Bottom, decode: each sequence "
        f"contributes one row, so each replica has {EACH_IN_DECODE} rows.",
        caption="Rows per model replica, B, in training and in decode. The number of chips per replica does "
        f"not matter. In training, {SEQUENCES} sequences of {count(LENGTH)} tokens give each of {REPLICAS} replicas "
        f"{count(EACH)} rows; in decode, only {EACH_IN_DECODE}. (The heights are not to scale.)",
        parts=lambda wide: [_divided(wide, "training", LENGTH), _divided(wide, "decode", 1)],
    )


def _divided(wide: float, phase: str, length: int) -> Sketch:
    """The rows of a step on the left, divided among replicas; three of them are drawn."""
    room, top, part = wide > 400, 58.0, 28.0
    high, sheet, chip = 3 * part + 16, (130.0 if room else 78.0), (34.0 if room else 17.0)
    middle, rows = 6 + sheet + (150 if room else 62), SEQUENCES * length
    tall, bundle = (high, part - 6) if length > 1 else (24.0, 4.0)
    brought = f"{SEQUENCES} sequences\n× {pluralize(length, 'token')}"
    replicas = f"{REPLICAS} replicas of W,\neach on {CHIPS} chips"
    held = f"{rows:,}\nrows" if length > 1 else f"{rows:,} rows"
    shapes: list[Shape] = [
        Words(x=6, y=12, text=phase, align="start", bold=True),
        Words(x=6, y=30, text=brought, align="start", quiet=True),
        Words(
            x=middle + 6,
            y=top + high + 18,
            text=f"B = {rows // REPLICAS:,} rows each",
            bold=True,
            color=CACHE,
        ),
        Words(x=middle + 40 + 4 * chip, y=30, text=replicas, quiet=True),
        Area(x=6, y=top + (high - tall) / 2, wide=sheet, high=tall, color=CACHE, text=held),
    ]
    for k in range(3):
        y, start = top + (part + 8) * k, top + high / 2 + tall * ((k + 0.5) / 3 - 0.5)
        for x in (middle + 40 + chip * i for i in range(CHIPS)):
            shapes.append(Area(x=x, y=y, wide=chip - 2, high=part, color=MEMORY, shade=0.3))
        shapes += [
            Arrow(x0=6 + sheet + 4, y0=start, x1=middle - 14, y1=y + part / 2, color=CACHE),
            Area(x=middle - 10, y=y + (part - bundle) / 2, wide=32, high=bundle, color=CACHE, shade=0.6),
        ]
    return Sketch(wide, top + high + 34, shapes)
