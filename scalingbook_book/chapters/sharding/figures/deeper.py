"""Figures of the deeper pages: torus shapes, slices, a detour, what a rule ignores, and rounds."""

from itertools import pairwise

from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    NETWORK,
    Area,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.shards import extent, sharded, subscripted
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.collectives import all_reduce, all_to_all, hierarchical_all_reduce, schedules
from scalingbook_lib.collectives.resharding import reshard
from scalingbook_lib.machines import Axis
from scalingbook_lib.machines.chips import V5E, V5P, Slice
from scalingbook_lib.notation import Mesh
from scalingbook_lib.sharded_matmul import solve
from scalingbook_lib.units import si

CUBE = Slice.of(V5P, "4x4x4").mesh(X=4, Y=4, Z=4)
SHAPES = ((64,), (4, 16), (8, 8), (4, 4, 4))
GIGABYTE = 1e9


def shapes() -> Figure:
    """An AllToAll over 64 chips, for four shapes of the torus."""
    names = [" × ".join(map(str, shape)) if len(shape) > 1 else f"ring of {shape[0]}" for shape in SHAPES]
    times = {name: _exchange(shape) for name, shape in zip(names, SHAPES, strict=True)}
    said = ", ".join(f"{name}: {si(seconds, 's')}" for name, seconds in times.items())
    spans = [Span(name, 0, seconds, si(seconds, "s"), NETWORK) for name, seconds in times.items()]
    return Figure(
        key="sharding.shapes",
        alt=f"Bars with the time of an AllToAll of 1 GB on 64 chips, as a ring and as three tori. {said}.",
        caption="Time of a 1 GB AllToAll on 64 chips, by the shape of the torus. The longest axis "
        "determines the time. An additional axis helps, and so does a shape closer to a cube, "
        "because more links join the two halves of the torus. (v5e links, wraparound on all axes.)",
        parts=lambda wide: [lanes(wide, spans)],
    )


def _exchange(shape: tuple[int, ...]) -> float:
    """Seconds of an AllToAll of a gigabyte on v5e axes with wraparound."""
    return all_to_all(GIGABYTE, *(V5E.axis(n, wrapped=True) for n in shape)).total_s


def slices() -> Figure:
    """An AllReduce over two slices: inside, across, inside again; or all of it across."""
    rate = V5P.dcn_bytes_per_s or 0.0
    dcn = Axis(size=2, wrapped=False, link_bytes_per_s=rate, hop_s=10e-6)
    ordered = hierarchical_all_reduce(GIGABYTE, *CUBE.axes("XYZ"), dcn=dcn)
    naive = all_reduce(GIGABYTE, dcn)
    return Figure(
        key="sharding.slices",
        alt="Two slices of 64 chips. First a ReduceScatter inside each slice, then each chip exchanges its "
        f"64th over the data-center network, then an AllGather inside: {si(ordered.total_s, 's')}. Sending "
        f"everything across takes {si(naive.total_s, 's')}.",
        caption="A hierarchical AllReduce of 1 GB per chip over two v5p slices. Reducing inside each slice, "
        "exchanging one 64th per chip between the slices, and gathering inside takes "
        f"{si(ordered.total_s, 's')}. Sending the whole gigabyte between the slices would take "
        f"{si(naive.total_s, 's')}. (16 of the 64 chips of each slice are drawn.)",
        parts=lambda wide: [_slices(wide)],
    )


def _slices(wide: float) -> Sketch:
    """Two slices as squares of chips, and the arrows between their chips."""
    side, ends = 128.0, (12.0, wide - 140)
    drawn: list[Shape] = [
        Words(x=wide / 2, y=40, text="2. 1/64 per chip" if wide > 400 else "2. 1/64", bold=True)
    ]
    for left in ends:
        drawn += [
            Words(x=left + side / 2, y=14, text="1. reduce, 3. gather", bold=True),
            Area(x=left, y=30, wide=side, high=side, color=None, shade=0.04, below="64 chips"),
            Cells(x=left + 11, y=41, rows=[[CACHE] * 4] * 4, wide=28, high=28, air=6),
        ]
    x0, x1 = ends[0] + side + 4, ends[1] - 4
    links = [Arrow(x0=x0, y0=y, x1=x1, y1=y, heads=2, color=NETWORK) for y in (52, 80, 108, 136)]
    return Sketch(wide, 182, [*drawn, *links])


def detour() -> Figure:
    """From A[I_X, J] to A[I, J_Y]: gather and then slice, or slice and then gather."""
    sizes = {"I": 4096, "J": 8192}
    ways = (("A[I_X, J]", "A[I, J]", "A[I, J_Y]"), ("A[I_X, J]", "A[I_X, J_Y]", "A[I, J_Y]"))
    steps = [[reshard(a, b, CUBE, sizes).best.total_s for a, b in pairwise(way)] for way in ways]
    said = [si(sum(times), "s") for times in steps]
    return Figure(
        key="sharding.detour",
        alt="Two sequences from rows sharded over X to columns sharded over Y, drawn on two by two "
        f"chips. Gathering first and then slicing takes {said[0]}. Slicing first and then gathering "
        f"takes {said[1]}.",
        caption="Two sequences for the same resharding. Taking a slice is free and leaves less to gather, "
        "so slicing first is faster by nearly the size of the axis. (Times are for bf16[4096, 8192] on v5p "
        "with axes of four; the drawing has axes of two.)",
        parts=lambda wide: [_ways(wide, ways, said)],
    )


def _ways(wide: float, ways: tuple[tuple[str, ...], ...], said: list[str]) -> Sketch:
    side, square = (38.0 if wide > 400 else 28.0), Mesh(X=2, Y=2)
    across, down = extent(square, side)
    step = (wide - 4 - across) / 2
    drawn: list[Shape] = []
    for k, (way, time) in enumerate(zip(ways, said, strict=True)):
        y = 24.0 + k * (down + 62)
        order = "slice first" if k else "gather first"
        drawn.append(Words(x=2, y=y - 10, text=f"{order}: {time}", bold=True, align="start"))
        for i, text in enumerate(way):
            drawn += sharded(text, square, x=2 + i * step, y=y, side=side)
            drawn.append(Words(x=2 + i * step + across / 2, y=y + down + 17, text=subscripted(text)))
        for i, what in enumerate(("slice", "gather") if k else ("gather", "slice")):
            left, right, level = i * step + across + 8, (i + 1) * step - 4, y + down / 2
            color = NETWORK if what == "gather" else None
            drawn.append(Arrow(x0=left, y0=level, x1=right, y1=level, color=color))
            drawn.append(Words(x=(left + right) / 2, y=level - 8, text=what))
    return Sketch(wide, 2 * (down + 62) - 10, drawn)


WAYS = ("gather B", "reduce C")
CHOSEN = {(3072, 2048): WAYS[1], (16384, 8192): WAYS[0]}  # by XLA for a v5e 2x4; the page compiles both


def omits() -> Figure:
    """Two matmuls for which a rule that counts the bytes of arrays chooses the slower strategy."""
    spans = {case: _gather_or_reduce(*case, chosen) for case, chosen in CHOSEN.items()}
    said = "; ".join(
        f"I = {I:,}, J = {J:,}: {', '.join(f'{span.lane} {span.label}' for span in pair)}"
        for (I, J), pair in spans.items()
    )
    return Figure(
        key="sharding.omits",
        alt=(
            f"Two pairs of bars, each pair on its own scale: the times of a matmul with two "
            f"strategies. {said}."
        ),
        caption="Times of two strategies for two matmuls, and the strategy that XLA chooses. Its rule "
        "compares the bytes of the result with those of the weights. In the first matmul, it "
        "reduces, ignoring that an AllReduce moves the data twice. In the second, it gathers, "
        "ignoring that every chip then repeats the same work. (Orange: chosen by XLA. Each matmul has its "
        "own time scale.)",
        parts=lambda wide: [
            lanes(wide, pair, title=f"I = {I:,}, J = {J:,}") for (I, J), pair in spans.items()
        ],
    )


def _gather_or_reduce(I: int, J: int, chosen: str) -> list[Span]:
    """Both strategies for one matmul; the one that XLA chooses is named and colored."""
    return [
        Span(
            way,
            0,
            seconds,
            f"{si(seconds, 's')}: chosen by XLA" if way == chosen else si(seconds, "s"),
            color,
        )
        for way, seconds in zip(WAYS, _both(I, J), strict=True)
        for color in [MATH if way == chosen else IDLE]
    ]


def _both(I: int, J: int) -> list[float]:
    """Seconds of gathering the weights and of reducing the result, if everything overlaps."""
    mesh = Slice.of(V5E, "2x4").mesh(X=2, Y=4)
    found = solve("A[I_X, J] · B[J_Y, K] -> C[I_X, K]", mesh, {"I": I, "J": J, "K": 8192})
    return [found.named(f"{name} over Y").lower_s for name in ("gather B", "slice A over Y, all-reduce C")]


def rounds() -> Figure:
    """The rounds of an AllGather over eight chips, in one direction and in both."""
    ring, nbytes = V5E.axis(8, wrapped=True), 2.0**27
    plans = {"one direction": schedules.all_gather(8, True, False), "both": schedules.all_gather(8)}
    took = {name: plan.step_seconds(nbytes, ring) for name, plan in plans.items()}
    spans = [
        Span(f"{name}, {way}", sum(seconds[:k]), sum(seconds[: k + 1]), str(k + 1), NETWORK)
        for name, seconds in took.items()
        for way in ("up", "down")[: 1 + (name == "both")]
        for k in range(len(seconds))
    ]
    one, both = (si(sum(seconds), "s") for seconds in took.values())
    return Figure(
        key="sharding.rounds",
        alt=f"Timelines of the rounds. In one direction: {len(took['one direction'])} rounds, {one}. In "
        f"both directions: {len(took['both'])} rounds, of which the last is half as long, {both}.",
        caption=f"Rounds of an AllGather in one direction, {one}, and in both directions, {both}. With both "
        "directions, the same shards arrive over twice as many links, and in the last round, the shard of "
        "the opposite chip arrives in two halves. (134 MB over eight v5e chips; to scale.)",
        parts=lambda wide: [lanes(wide, spans)],
    )
