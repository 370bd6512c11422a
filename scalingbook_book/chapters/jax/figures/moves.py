"""Figures of collectives: their transposes, a collective matmul on a ring, and expert dispatch with buckets."""

from collections.abc import Iterator, Sequence

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.sharded_matmul.overlap import UNIT, RingMatmul
from scalingbook_lib.units import si

N = 4  # devices in every drawing here
# four devices as columns of four slots, each with the number of the piece in it
OWN = ("0   ", " 1  ", "  2 ", "   3")
WHOLE = ("0000", "1111", "2222", "3333")
PARTS, SUMMED = ("0123",), ("4444",)  # a number on each, and their sum
NEXT = ("3   ", " 0  ", "  1 ", "   2")
PAIRS = (  # forward with what it makes of what, and the way back of the gradient
    ("all_gather", OWN, WHOLE, "psum_scatter"),
    ("psum", PARTS, SUMMED, "pcast to varying"),
    ("all_to_all, i to j", ("0123",) * N, WHOLE, "all_to_all, j to i"),
    ("ppermute", OWN, NEXT, "ppermute, pairs reversed"),
)
RING = RingMatmul(B=1024, D=2048, F=8192, axis=V5E.axis(N, wrapped=True), chip=V5E)
CHOICES = ("012301", "112030", "323131", "200313")  # the expert that each of a device's tokens wants
ROOM = 2  # slots in a bucket


def transposes() -> Figure:
    """Four collectives, and the collective that the backward pass runs for each."""
    said = ", ".join(f"{there} and back {back}" for there, _, _, back in PAIRS)
    return Figure(
        key="jax.transposes",
        alt=f"Four devices before and after, for four pairs of collectives. Arrows to the right show the forward pass, arrows to the left the gradient: {said}.",
        caption="Four collectives and their gradients. In the backward pass, copying becomes adding, adding "
        "becomes copying, and a step to the right becomes a step to the left. You write only the "
        "forward pass (upper arrows), and JAX derives the backward pass (lower arrows).",
        parts=lambda wide: [_pairs(wide)],
    )


def _pairs(wide: float) -> Sketch:
    abreast, slot = wide > 400, 13.0
    deep, gap = (84.0, 14.0) if abreast else (100.0, 8.0)
    long = N * slot + (N - 1) * gap
    shapes: list[Shape] = []
    for k, (there, before, after, back) in enumerate(PAIRS):
        y, right = k * deep + (0 if abreast else 20), wide - long - 6
        x0, x1, middle = 4 + long + 14, right - 14, wide / 2
        low = y + 32 + slot if abreast else y + 62
        shapes += [
            *_chips(4, y + 8, before, slot, gap),
            *_chips(right, y + 8, after, slot, gap),
            Arrow(x0=x0, y0=y + 24, x1=x1, y1=y + 24, color=NETWORK),
            Words(x=middle, y=y + 16 if abreast else y + 2, text=there, bold=True),
            Arrow(x0=x1, y0=y + 44, x1=x0, y1=y + 44, color=MATH, dashed=True),
            Words(x=middle, y=low + (16 if abreast else 8), text=back),
        ]
    return Sketch(wide, deep * len(PAIRS) - 8, shapes)


def _chips(x: float, y: float, held: tuple[str, ...], slot: float, gap: float) -> Iterator[Shape]:
    """Four devices as columns of four pieces."""
    for i in range(N):
        rows = [[int(row[i]) if row[i] != " " else None] for row in held]
        top = y + (N - len(held)) * slot / 2
        yield Cells(x=x + i * (slot + gap), y=top, rows=rows, wide=slot, high=slot, shade=0.7)


def ring() -> Figure:
    """Chunks that travel around a ring, the rows of W that each is multiplied by, and a timeline."""
    run, enough = RING.lockstep(), RING.ratio
    return Figure(
        key="jax.ring",
        alt="Four devices in four steps. In each step a device multiplies its current chunk by the rows of W that belong to it, while "
        f"the chunk moves on to the right. Two timeline rows below: the link is busy for {si(RING.transfer_s, 's')} of each step, the matrix unit for "
        f"{si(RING.matmul_s, 's')}.",
        caption="A collective matmul on a ring of four devices, step by step. Each device multiplies its "
        "current chunk by the matching rows of W while the chunk travels on. If a device has more "
        f"than {enough:,.0f} columns of W (here {RING.F:,.0f}), the link finishes first, and the "
        "AllGather is hidden.",
        parts=lambda wide: [
            _rounds(wide),
            lanes(
                wide,
                [
                    Span(t.stage, t.start_s, t.end_s, str(t.chunk + 1), MATH if t.stage == UNIT else NETWORK)
                    for t in sorted(run.turns, key=lambda t: t.stage == UNIT)
                ],
                end=run.total_s,
            ),
        ],
    )


def _rounds(wide: float) -> Sketch:
    """A row for each step: four devices, each with its chunk and, of W's rows, those in use."""
    left, deep = 48.0, 76.0
    pitch = (wide - left - 14) / N
    shapes: list[Shape] = [
        Words(x=left + pitch * (i + 0.5), y=13, text=f"device {i}" if wide > 400 else str(i), quiet=True)
        for i in range(N)
    ]
    for step in range(N):
        y = 22 + step * deep
        shapes.append(Words(x=2, y=y + 28, text=f"step {step + 1}", align="start", quiet=True))
        for i in range(N):
            (chunk,), x = RING.chunks(i, step), left + pitch * i
            used = [[r if r == chunk else None] for r in range(N)]
            shapes += [
                Area(x=x + 4, y=y + 8, wide=30, high=30, text=str(chunk), color=chunk, shade=0.6),
                Cells(x=x + 40, y=y + 3, rows=used, wide=min(26, pitch - 50), high=11, shade=0.7),
            ]
            if step + 1 < N:
                ahead = x + pitch + 12 if i + 1 < N else x + pitch - 4
                shapes.append(
                    Arrow(
                        x0=x + 22,
                        y0=y + 41,
                        x1=ahead,
                        y1=y + (80 if i + 1 < N else 60),
                        color=chunk,
                        thick=1.3,
                    )
                )
            if step and not i:
                shapes.append(Arrow(x0=left - 6, y0=y - 12, x1=x + 6, y1=y + 4, color=chunk, thick=1.3))
    return Sketch(wide, 22 + N * deep - 22, shapes)


def buckets() -> list[list[int]]:
    """The number of tokens that each device routes to each expert."""
    return [[chosen.count(str(expert)) for expert in range(N)] for chosen in CHOICES]


def dropped() -> int:
    """The number of tokens that find no free slot."""
    return sum(max(load - ROOM, 0) for row in buckets() for load in row)


def exchange() -> Figure:
    """Tokens sorted into buckets, dispatched to their experts, and combined."""
    tokens = sum(map(len, CHOICES))
    empty = N * N * ROOM - tokens + dropped()
    factor = ROOM / (tokens / N / N)
    return Figure(
        key="jax.exchange",
        alt=f"Four devices with {tokens // N} tokens each, colored by the expert that they are routed to. Each device sorts them into four buckets "
        f"with {ROOM} slots each; tokens without a free slot ({dropped()} here) are drawn outside. An AllToAll sends every bucket to its expert, with {empty} "
        "empty slots, and a second AllToAll returns the results.",
        caption="Expert dispatch and combine with buckets of fixed size. If all buckets have the same size, "
        f"one AllToAll can dispatch the tokens. Here, {tokens / N / N:g} tokens are routed to a "
        f"bucket on average, and each bucket has {ROOM} slots, which is a capacity factor of "
        f"{factor:.2f}. Dropped tokens: {dropped()} of {tokens}. Empty slots that are sent: {empty} "
        f"of {N * N * ROOM}.",
        parts=lambda wide: [_exchange(wide)],
    )


def _exchange(wide: float) -> Sketch:
    """From left to right: tokens, buckets, the AllToAll, and experts (on a phone below)."""
    abreast = wide > 400
    slot, deep = (15.0, 54.0) if abreast else (14.0, 50.0)
    start, row = (166.0, 4 * (2 * slot + 6)) if abreast else (130.0, 4 * (2 * slot + 6))
    far, down = (wide - row - 2, 26.0) if abreast else (start, 328.0)
    shapes: list[Shape] = [
        Words(x=20, y=14, text="tokens", align="start", bold=True),
        Words(x=start, y=14, text="two slots per expert", align="start", bold=True),
        Words(x=far, y=down - 12, text="at the experts", align="start", bold=True),
    ]
    for i, (chosen, loads) in enumerate(zip(CHOICES, buckets(), strict=True)):
        y, low = 26 + i * deep, down + i * deep
        came = [min(device[i], ROOM) for device in buckets()]
        shapes += [
            Words(x=4, y=y + 12, text=str(i), align="start", quiet=True),
            Cells(x=20, y=y, rows=[[int(e) for e in chosen]], wide=slot, high=slot + 2, shade=0.7),
            *_buckets(start, y, slot, range(N), loads),
            Words(x=far - 8, y=low + 12, text=f"expert {i}", align="end", quiet=True),
            *_buckets(far, low, slot, [i] * N, came),
        ]
    x0, x1, y = (
        (start + row + 6, far - 68, 26 + 1.5 * deep)
        if abreast
        else (start + row / 2 - 60, start + row / 2 + 60, 252.0)
    )
    shapes += [
        Arrow(x0=x0, y0=y - 4, x1=x1, y1=y - 4, color=NETWORK, thick=3),
        Words(x=(x0 + x1) / 2, y=y - 16, text="AllToAll"),
        Arrow(x0=x1, y0=y + 14, x1=x0, y1=y + 14, color=NETWORK, thick=3),
        Words(x=(x0 + x1) / 2, y=y + 36, text="and back"),
    ]
    return Sketch(wide, down + N * deep - 12, shapes)


def _buckets(
    x: float, y: float, slot: float, experts: Sequence[int], loads: Sequence[int]
) -> Iterator[Shape]:
    """A bucket for each load: its slots, dashed if empty, and below it the dropped tokens."""
    for k, (expert, load) in enumerate(zip(experts, loads, strict=True)):
        left = x + k * (2 * slot + 6)
        for place in range(ROOM):
            color, shade = (expert, 0.7) if place < load else (IDLE, 0.06)
            at = left + place * slot
            yield Area(x=at, y=y, wide=slot - 2, high=slot, color=color, shade=shade, dashed=place >= load)
        for over in range(load - ROOM):
            at = left + over * slot
            yield Area(
                x=at, y=y + slot + 6, wide=slot - 2, high=slot, color=expert, shade=0.7, right="dropped"
            )
