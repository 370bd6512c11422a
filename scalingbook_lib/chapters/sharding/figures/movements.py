"""What moves in a collective? Before and after, a ring in steps, the end of a line, copying turned over."""

"over."

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from scalingbook_lib.collectives import Collective, all_gather, bytes_received, schedules
from scalingbook_lib.collectives.schedules import Schedule, holdings
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import NETWORK, Area, Arrow, Cells, Shape, Words
from scalingbook_lib.reader.figures.shards import subscripted
from scalingbook_lib.reader.figures.sketch import Sketch
from scalingbook_lib.units import si

N = 4  # chips in every drawing here
M = 2.0 * 2048 * 8192  # bytes of the text's array, bf16[2048, 8192]
RING = replace(V5E.axis(N, wrapped=True), hop_s=0.0)
LINE = replace(RING, wrapped=False)
SLOT, GAP = 14.0, 15.0  # a piece of an array, and the air between two chips

type Held = Callable[[int, int], int | None]  # the colour in slot j of chip i


def _whole(i: int, j: int) -> int | None:
    return j


def _own(i: int, j: int) -> int | None:
    return j if i == j else None


def _from(i: int, j: int) -> int | None:
    return i


def _next(i: int, j: int) -> int | None:
    return (i + 1) % N if j == i else None


COLLECTIVES: tuple[tuple[str, str, Held, Held], ...] = (
    ("AllGather", "[I_X] → [I]", _own, _whole),
    ("ReduceScatter", "[I]{U_X} → [I_X]", _whole, _own),
    ("AllReduce", "[I]{U_X} → [I]", _whole, _whole),
    ("AllToAll", "[I_X, J] → [I, J_X]", _from, _whole),
    ("CollectivePermute", "a neighbor's shard", _own, _next),
    ("cut", "[I] → [I_X]", _whole, _own),
)


def collectives() -> Figure:
    """The six movements on four chips, before and after, with the bytes that each chip receives."""
    shares = {name: _received(name) for name, *_ in COLLECTIVES}
    return Figure(
        key="sharding.collectives",
        alt="Six strips with four chips before and after, a column of four pieces each. "
        + " ".join(f"{name}: {said}." for name, said in shares.items()),
        caption="A collective is a change of subscripts. A pale column is a part of a sum. What a chip must "
        "receive, as a share of M, is the least that any network has to carry.",
        parts=lambda wide: [_strips(wide, shares)],
    )


def _received(name: str) -> str:
    """What a chip receives of an array of M bytes; a permute moves one shard."""
    if name == "cut":
        return "nothing moves"
    whole = 1 / N if name == "CollectivePermute" else 1.0
    share = Fraction(bytes_received(Collective.named(name), whole, N)).limit_denominator(N * N)
    return f"{share} M"


def _strips(wide: float, shares: dict[str, str]) -> Sketch:
    columns, deep = (2 if wide > 400 else 1), 104.0
    shapes: list[Shape] = []
    for k, (name, change, before, after) in enumerate(COLLECTIVES):
        x, y = k % columns * wide / 2, k // columns * deep
        shapes.append(Words(x=x + 2, y=y + 14, text=name, bold=True, align="start"))
        shapes.append(Words(x=x + 322, y=y + 14, text=subscripted(change), align="end", quiet=True))
        shapes += _chips(x + 2, y + 24, before, "{U" in change)
        shapes.append(Arrow(x0=x + 116, y0=y + 51, x1=x + 144, y1=y + 51))
        shapes += _chips(x + 154, y + 24, after, False)
        shapes.append(Words(x=x + 322, y=y + 55, text=shares[name].replace(" moves", "\nmoves"), align="end"))
    return Sketch(wide, deep * len(COLLECTIVES) / columns - 18, shapes)


def _chips(x: float, y: float, held: Held, summed: bool) -> Iterator[Shape]:
    """Four chips as columns of four pieces; with pluses between them where they are parts of a sum."""
    for i in range(N):
        left = x + i * (SLOT + GAP)
        rows = [[held(i, j)] for j in range(N)]
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
        alt="A ring of four chips in three pictures. At first each holds one shard and sends it to both "
        "neighbours. Then each holds three and receives the fourth in halves, one from either side. At the "
        f"end each holds all four. {said[0]}; {said[1]}.",
        caption="Each chip passes on, both ways, what has just arrived. Every link is busy in both "
        "directions, nothing arrives twice, and the last shard comes in halves: no way can be faster. (34 "
        "MB, v5e links.)",
        parts=lambda wide: [_frames(wide, plan, [*said, "done"])],
    )


def _frames(wide: float, plan: Schedule, said: list[str]) -> Sketch:
    columns = 3 if wide > 400 else 2
    cell, deep = wide / columns, 178.0
    shapes: list[Shape] = []
    for k, words in enumerate(said):
        x, y = k % columns * cell + cell / 2 - 70, k // columns * deep
        shapes.append(Words(x=x + 70, y=y + 14, text=words, bold=True))
        shapes += _ring(x, y + 30, plan, k)
    return Sketch(wide, deep * -(-len(said) // columns) - 2, shapes)


def _ring(x: float, y: float, plan: Schedule, done: int) -> Iterator[Shape]:
    """The four chips after so many steps, and the arrows of the next."""
    side, far = 44.0, 92.0
    spots = [(x, y), (x + far, y), (x + far, y + far), (x, y + far)]
    for (left, top), held in zip(spots, holdings(plan, done), strict=True):
        here = {piece.block for piece in held}
        rows = [[b if b in here else None for b in range(N)]]
        yield Area(x=left, y=top, wide=side, high=side, color=None, shade=0)
        yield Cells(x=left + 4, y=top + 4, rows=rows, wide=9.5, high=37, shade=0.7)
    for send in plan.steps[done].sends if done < len(plan.steps) else ():
        (x0, y0), (x1, y1) = spots[send.link.source], spots[send.target]
        ux, uy = (x1 - x0) / far, (y1 - y0) / far
        aside = 8.0  # the two directions of a link side by side
        xm, ym = side / 2 - uy * aside, side / 2 + ux * aside
        near = side / 2 + 3
        yield Arrow(
            x0=x0 + xm + ux * near,
            y0=y0 + ym + uy * near,
            x1=x1 + xm - ux * near,
            y1=y1 + ym - uy * near,
            color=send.pieces[0].block,
            thick=1.3 * len(send.pieces),
        )


def line() -> Figure:
    """The same chips with and without the way round: what comes in at the end."""
    rows = [(RING, "ring"), (LINE, "line")]
    times = [si(all_gather(M, axis).bandwidth_s, "s") for axis, _ in rows]
    said = [
        f"{si(axis.bytes_per_s, 'B/s')} into each chip: {time}"
        for (axis, _), time in zip(rows, times, strict=True)
    ]
    return Figure(
        key="sharding.line",
        alt="Four chips in a row, twice. Closed to a ring, the first chip receives over two links: "
        f"{said[0]}. As a line it has one link only: {said[1]}.",
        caption="All that the end of a line lacks has to come through its one link. The chips in the middle "
        "have two and cannot help: a line takes exactly twice as long as a ring.",
        parts=lambda wide: [_rows(wide, said)],
    )


def _rows(wide: float, said: list[str]) -> Sketch:
    step = (wide - 120) / 3
    shapes: list[Shape] = []
    for k, words in enumerate(said):
        y = 50.0 + k * 112
        xs = [40 + step * i for i in range(N)]
        for i, x in enumerate(xs):
            shapes.append(Area(x=x, y=y, wide=40, high=30, color=None, shade=0.04, text=f"{i}"))
            if i:
                thick = 4 if i == 1 else 1.4
                color = NETWORK if i == 1 else None
                shapes.append(
                    Arrow(x0=x - 3, y0=y + 15, x1=xs[i - 1] + 43, y1=y + 15, thick=thick, color=color)
                )
        if k == 0:
            shapes.append(
                Arrow(
                    x0=xs[3] + 20,
                    y0=y - 3,
                    x1=xs[0] + 20,
                    y1=y - 3,
                    bend=0.2 if wide < 400 else 0.12,
                    thick=4,
                    color=NETWORK,
                )
            )
        shapes.append(Words(x=wide / 2, y=y + 50, text=words))
    return Sketch(wide, 224, shapes)


def transpose() -> Figure:
    """Copying one number to three chips, and the same lines with their arrows turned."""
    return Figure(
        key="sharding.transpose",
        alt="Left, one number x goes to three chips, each then holds x. Right, the same three lines with the "
        "arrows turned: three numbers come back, and the chip holds their sum.",
        caption="Forward, a gather copies each number to every chip. Backward, each copy sends its gradient "
        "home, and they are added: the transpose of an AllGather is a ReduceScatter.",
        parts=lambda wide: [_turned(wide)],
    )


def _turned(wide: float) -> Sketch:
    shapes: list[Shape] = []
    half = wide / 2
    for k, title in enumerate(("forward: copy", "backward: add")):
        x = half * k
        many = [f"g_{{{i}}}" if k else "x" for i in (1, 2, 3)]
        one, sum_ = "x", "g_{1}+g_{2}+g_{3}"
        left, right = x + 4, x + half - 46
        shapes.append(Words(x=x + half / 2, y=14, text=title, bold=True))
        box = 74.0
        shapes.append(
            Area(
                x=left,
                y=68,
                wide=box,
                high=32,
                color=NETWORK if k else None,
                shade=0.3 if k else 0.05,
                text="",
            )
        )
        shapes.append(Words(x=left + box / 2, y=89, text=sum_ if k else one, size=12))
        for i, text in enumerate(many):
            y = 30.0 + 44 * i
            shapes.append(Area(x=right, y=y, wide=36, high=30, color=None, shade=0.05, text=""))
            shapes.append(Words(x=right + 18, y=y + 20, text=text))
            ends = (left + box + 3, 84.0), (right - 3, y + 15)
            (x0, y0), (x1, y1) = reversed(ends) if k else ends
            shapes.append(Arrow(x0=x0, y0=y0, x1=x1, y1=y1))
    return Sketch(wide, 154, shapes)
