"""Figures of collectives: before and after, a ring in steps, the end of a line, a transpose."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_book.reader.figures.shards import subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.collectives import Collective, all_gather, bytes_received, schedules
from scalingbook_lib.collectives.schedules import Schedule, holdings
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import si

N = 4  # chips in every drawing here
M = 2.0 * 2048 * 8192  # bytes of the text's array, bf16[2048, 8192]
RING = replace(V5E.axis(N, wrapped=True), hop_s=0.0)
SLOT, GAP = 14.0, 15.0  # a piece of an array, and the air between two chips

# Four chips as columns of four slots, each with the number of the piece in it.
OWN = ("0   ", " 1  ", "  2 ", "   3")
WHOLE = ("0000", "1111", "2222", "3333")
FROM = ("0123",) * N
NEXT = ("1   ", " 2  ", "  3 ", "   0")

COLLECTIVES = (
    ("AllGather", "[I_X] → [I]", OWN, WHOLE),
    ("ReduceScatter", "[I]{U_X} → [I_X]", WHOLE, OWN),
    ("AllReduce", "[I]{U_X} → [I]", WHOLE, WHOLE),
    ("AllToAll", "[I_X, J] → [I, J_X]", FROM, WHOLE),
    ("CollectivePermute", "a neighbor's shard", OWN, NEXT),
    ("slice", "[I] → [I_X]", WHOLE, OWN),
)


def collectives() -> Figure:
    """Five collectives and a slice on four chips, before and after, with the bytes that a chip receives."""
    shares = {name: _received(name) for name, *_ in COLLECTIVES}
    return Figure(
        key="sharding.collectives",
        alt="Six operations on four chips, before and after, with a column of up to four shards per chip. "
        + " ".join(f"{name}: {said}." for name, said in shares.items()),
        caption="Six operations, as changes of the subscripts. A pale column is a partial sum. The fraction "
        "of the array's M bytes next to each operation is what every chip has to receive, on any network.",
        parts=lambda wide: [_strips(wide, shares)],
    )


def _received(name: str) -> str:
    """What a chip receives of an array of M bytes; a permute moves one shard."""
    if name == "slice":
        return "nothing moves"
    whole = 1 / N if name == "CollectivePermute" else 1.0
    share = Fraction(bytes_received(Collective.named(name), whole, N)).limit_denominator(N * N)
    return f"{share} M"


def _strips(wide: float, shares: dict[str, str]) -> Sketch:
    columns, deep = (2 if wide > 400 else 1), 104.0
    shapes: list[Shape] = []
    for k, (name, change, before, after) in enumerate(COLLECTIVES):
        x, y = k % columns * wide / 2, k // columns * deep
        shapes += [
            Words(x=x + 2, y=y + 14, text=name, bold=True, align="start"),
            Words(x=x + 322, y=y + 14, text=subscripted(change), align="end", quiet=True),
            *_chips(x + 2, y + 24, before, "{U" in change),
            Arrow(x0=x + 116, y0=y + 51, x1=x + 144, y1=y + 51),
            *_chips(x + 154, y + 24, after, False),
            Words(x=x + 322, y=y + 55, text=shares[name].replace(" moves", "\nmoves"), align="end"),
        ]
    return Sketch(wide, deep * len(COLLECTIVES) / columns - 18, shapes)


def _chips(x: float, y: float, held: tuple[str, ...], summed: bool) -> Iterator[Shape]:
    """Four chips as columns of four pieces; with pluses between them where they are parts of a sum."""
    for i in range(N):
        left = x + i * (SLOT + GAP)
        rows = [[int(row[i]) if row[i] != " " else None] for row in held]
        yield Cells(x=left, y=y, rows=rows, wide=SLOT, high=SLOT, shade=0.25 if summed else 0.7)
        if summed and i:
            yield Words(x=left - GAP / 2 - 1, y=y + 2 * SLOT + 4, text="+", bold=True)


def ring() -> Figure:
    """An AllGather on a ring of four: what each chip holds, what each link carries, step by step."""
    plan = schedules.all_gather(N)
    seconds = plan.step_seconds(M, RING)
    said = [f"step {k + 1}: {si(s, 's')}" for k, s in enumerate(seconds)]
    return Figure(
        key="sharding.ring",
        alt="A ring of four chips in three pictures. At first, each chip holds one shard and sends it to "
        "both neighbors. Then each holds three and receives the fourth in two halves, one from either "
        f"side. In the end, each holds all four. {said[0]}; {said[1]}.",
        caption="An AllGather on a ring of four chips, step by step. In every step, each chip passes on "
        "what it has just received. All links are busy in both directions, nothing arrives twice, "
        "and the last shard arrives in two halves, so no algorithm can be faster. (34 MB, v5e "
        "links.)",
        parts=lambda wide: [_frames(wide, plan, [*said, "done"])],
    )


def _frames(wide: float, plan: Schedule, said: list[str]) -> Sketch:
    columns = 3 if wide > 400 else 2
    cell, deep = wide / columns, 178.0
    shapes: list[Shape] = []
    for k, words in enumerate(said):
        x, y = (k % columns + 0.5) * cell - 68, k // columns * deep
        shapes += [Words(x=x + 68, y=y + 14, text=words, bold=True), *_ring(x, y + 30, plan, k)]
    return Sketch(wide, deep * -(-len(said) // columns) - 2, shapes)


def _ring(x: float, y: float, plan: Schedule, done: int) -> Iterator[Shape]:
    """The four chips after so many steps, and the arrows of the next, side by side on each link."""
    side, far, aside = 44.0, 92.0, 8.0
    spots = [(x, y), (x + far, y), (x + far, y + far), (x, y + far)]
    for (left, top), held in zip(spots, holdings(plan, done), strict=True):
        here = {piece.block for piece in held}
        slots = [[b if b in here else None for b in range(N)]]
        yield Area(x=left, y=top, wide=side, high=side, color=None, shade=0)
        yield Cells(x=left + 4, y=top + 4, rows=slots, wide=9.5, high=37, shade=0.7)
    for send in plan.steps[done].sends if done < len(plan.steps) else ():
        (x0, y0), (x1, y1) = spots[send.link.source], spots[send.target]
        ux, uy = (x1 - x0) / far, (y1 - y0) / far
        near, right = side / 2 + 3, (side / 2 - uy * aside, side / 2 + ux * aside)
        yield Arrow(
            x0=x0 + right[0] + ux * near,
            y0=y0 + right[1] + uy * near,
            x1=x1 + right[0] - ux * near,
            y1=y1 + right[1] - uy * near,
            color=send.pieces[0].block,
            thick=1.3 * len(send.pieces),
        )


def line() -> Figure:
    """The same chips with and without wraparound: what arrives at chip 0."""
    axes = RING, replace(RING, wrapped=False)
    said = [f"{si(a.bytes_per_s, 'B/s')} into chip 0: {si(all_gather(M, a).bandwidth_s, 's')}" for a in axes]
    return Figure(
        key="sharding.line",
        alt=f"Four chips in a row, twice. On a ring, chip 0 receives over two links, {said[0]}. On a line, "
        f"it receives over one link, {said[1]}.",
        caption="An AllGather on a ring and on a line of four chips. On the line, everything that the chip "
        "at the end lacks has to arrive over its only link, so the line takes exactly twice as long "
        "as the ring. (34 MB, v5e links.)",
        parts=lambda wide: [
            _row(wide, "ring: " + said[0], 0.2 if wide < 400 else 0.12),
            _row(wide, "line: " + said[1], 0),
        ],
    )


def _row(wide: float, said: str, bend: float) -> Sketch:
    """Four chips in a row, with or without wraparound; the links that end at chip 0 are thick."""
    y, far = (46.0 if bend else 6.0), (wide - 120) / (N - 1)
    xs = [40 + far * i for i in range(N)]
    boxes = [Area(x=x, y=y, wide=40, high=30, color=None, shade=0.04, text=f"{i}") for i, x in enumerate(xs)]
    plain = [Arrow(x0=x - 3, y0=y + 15, x1=x - far + 43, y1=y + 15, thick=1.4) for x in xs[2:]]
    first = Arrow(x0=xs[1] - 3, y0=y + 15, x1=xs[0] + 43, y1=y + 15, thick=4, color=NETWORK)
    back = Arrow(x0=xs[-1] + 20, y0=y - 3, x1=xs[0] + 20, y1=y - 3, thick=4, color=NETWORK, bend=bend)
    words = Words(x=wide / 2, y=y + 50, text=said)
    return Sketch(wide, y + 60, [*boxes, *plain, first, *([back] if bend else []), words])


def transpose() -> Figure:
    """Copying one number to three chips, and the same lines with their arrows reversed."""
    return Figure(
        key="sharding.transpose",
        alt="Left: one number x goes to three chips, and each of them then holds x. Right: the same three "
        "lines with their arrows reversed. Three numbers come back, and the chip holds their sum.",
        caption="Forward and backward pass of an AllGather. In the forward pass, it copies each number to "
        "every chip. In the backward pass, the gradients of all copies come back and are summed, so "
        "the transpose of an AllGather is a ReduceScatter.",
        parts=lambda wide: [
            Sketch(wide, 154, [*_turned(0, wide / 2, False), *_turned(wide / 2, wide / 2, True)])
        ],
    )


def _turned(x: float, wide: float, back: bool) -> Iterator[Shape]:
    """One box at the left, three at the right, and the lines between them."""
    box, right = 78.0, x + wide - 46
    one, color = ("g_{1}+g_{2}+g_{3}", NETWORK) if back else ("x", None)
    yield Words(x=x + wide / 2, y=14, text="backward: sum" if back else "forward: copy", bold=True)
    yield Area(x=x + 4, y=68, wide=box, high=32, color=color, shade=0.3 if back else 0.05)
    yield Words(x=x + 4 + box / 2, y=89, text=one, size=12.5)
    for i in range(3):
        y = 30.0 + 44 * i
        yield Area(x=right, y=y, wide=36, high=30, color=None, shade=0.05)
        yield Words(x=right + 18, y=y + 20, text=f"g_{{{i + 1}}}" if back else "x")
        ends = [(x + box + 7, 84.0), (right - 3, y + 15)]
        (x0, y0), (x1, y1) = reversed(ends) if back else ends
        yield Arrow(x0=x0, y0=y0, x1=x1, y1=y1)
