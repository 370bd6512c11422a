"""Beyond the node: a tree of switches, the time of a gather by its nodes, and the line of a measured one."""

from scalingbook_book.chapters.gpus.figures.node import CARDS, GATHERED
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import collectives
from scalingbook_lib.evidence.measured import RUNS
from scalingbook_lib.evidence.measured.collectives import CollectiveRun
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.steps import limits
from scalingbook_lib.units import si

POD = 1024
DRAWN, RAIL = 4, 1  # GPUs of a node, nodes and rails; the rail that stands out
SPINE, LEAF, CARD = 30, 96, 200  # how far down they stand
NODES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128)
SYSTEM = "H100 80GB HBM3"


def fat_tree() -> Figure:
    """How do cards become a network, and where can it be thinner?"""
    full, thin = Cluster.of(H100, POD), Cluster.of(H100, POD, oversubscription=2)
    rate, less = si(full.node_bytes_per_s, "B/s"), si(_crossing(thin), "B/s")
    return Figure(
        key="gpus.fat_tree",
        alt=f"Two trees of four nodes, four of the eight GPUs of each drawn. The first GPU of every node leads to the first leaf switch, the second to the second: a rail. "
        f"Leaves lead to spines. Left, every level carries {rate} a node; right, there are half of the spines, and {less} above the leaves.",
        caption=f"A fat tree keeps each node's {rate} at every level. With half of the spine, {less} are left to whoever crosses it. A rail is the i-th cards of all nodes and their leaf "
        f"({POD:,} H100: {full.leaves} leaves, {full.spines} or {thin.spines} spines; a few are drawn).",
        parts=lambda wide: [_trees(wide, full, thin)],
    )


def _crossing(cluster: Cluster) -> float:
    """What the spine carries for each node: the slowest level's share of a GPU, for all of the node."""
    return cluster.domain * min(level.bytes_per_s for level in cluster.levels[1:])


def _trees(wide: float, full: Cluster, thin: Cluster) -> Sketch:
    abreast = wide > 400
    across = wide / 2 if abreast else wide
    shapes: list[Shape] = []
    for k, (cluster, spines) in enumerate(((full, 4), (thin, 2))):
        x, y = (across * k, 0.0) if abreast else (0.0, 246.0 * k)
        name = "full: as much up as down" if k == 0 else "oversubscribed, 2 down : 1 up"
        shapes.append(Words(x=x + across / 2, y=y + 16, text=name, bold=True))
        shapes += _tree(x, y, across, spines, si(_crossing(cluster), "B/s"))
        shapes.append(
            Words(x=x + 4, y=y + 192, text=si(cluster.node_bytes_per_s, "B/s"), align="start", size=11)
        )
    return Sketch(wide, 240.0 if abreast else 486.0, shapes)


def _tree(x: float, y: float, across: float, spines: int, above: str) -> list[Shape]:
    """Spines, leaves, the cards of four nodes; one rail stands out."""
    left, room = x + 70, across - 78
    leaf = [left + room * (i + 0.5) / DRAWN for i in range(DRAWN)]
    spine = [left + room * (i + 0.5) / spines for i in range(spines)]
    shapes: list[Shape] = [
        Arrow(x0=a, y0=y + LEAF, x1=b, y1=y + SPINE + 20, color=IDLE, thick=1.2, heads=0)
        for a in leaf
        for b in spine
    ]
    for node in range(DRAWN):
        shapes += _node(left + room * node / DRAWN, y, room / DRAWN, leaf)
    shapes += [Area(x=at - 20, y=y + SPINE, wide=40, high=20, color=NETWORK, shade=0.5) for at in spine]
    colors = [CARDS if i == RAIL else NETWORK for i in range(DRAWN)]
    shapes += [
        Area(x=at - 20, y=y + LEAF, wide=40, high=20, color=color, shade=0.5)
        for at, color in zip(leaf, colors, strict=True)
    ]
    names = {"spine": SPINE + 15, "leaf": LEAF + 15, "cards": CARD + 9, "GPUs": CARD + 25}
    shapes += [Words(x=x + 4, y=y + down, text=name, align="start") for name, down in names.items()]
    shapes += [
        Words(x=x + 4, y=y + 150, text="one rail", align="start", color=CARDS, bold=True),
        Words(x=x + 4, y=y + 78, text=above, align="start", size=11),
    ]
    return shapes


def _node(x: float, y: float, wide: float, leaf: list[float]) -> list[Shape]:
    """The GPUs and cards of a node, and the line from each card to its leaf."""
    pitch, top = wide / (DRAWN + 1), y + CARD
    side = pitch * 0.72
    shapes: list[Shape] = [
        Area(x=x + pitch * 0.2, y=top - 4, wide=pitch * 4.6, high=32, color=None, shade=0.03)
    ]
    for k, above in enumerate(leaf):
        at = x + pitch * (k + 1)
        color, thick, shade = (CARDS, 2.4, 0.8) if k == RAIL else (IDLE, 0.8, 0.3)
        shapes += [
            Arrow(x0=at, y0=top, x1=above, y1=y + LEAF + 20, color=color, thick=thick, heads=0),
            Area(x=at - side / 2, y=top, wide=side, high=10, color=CARDS, shade=shade),
            Area(x=at - side / 2, y=top + 14, wide=side, high=10, color=MATH, shade=0.5),
        ]
    return shapes


def stages() -> Figure:
    """From how many nodes on does the network set the pace?"""
    both = [
        limits.each_level(collectives.all_gather, GATHERED, *Cluster.of(H100, 8 * d).levels) for d in NODES
    ]
    nvlink = [each["NVLink"] for each in both]
    cards = [max((s for name, s in each.items() if name != "NVLink"), default=0.0) for each in both]
    over = next(d for d, a, b in zip(NODES, nvlink, cards, strict=True) if b > a)
    limit = GATHERED / Cluster.of(H100, POD).node_bytes_per_s
    return Figure(
        key="gpus.stages",
        alt=f"Time of a gather of {si(GATHERED, 'B')} over the nodes, 1 to {NODES[-1]}. NVLink's curve is flat at {si(nvlink[0], 's')}. The cards' rises from zero, crosses it between "
        f"{over - 1} and {over} nodes, and nears {si(limit, 's')}.",
        caption=f"The larger of the two curves is the time. A node lacks more of the array the more nodes there are, but never more than all of it: the cards set the pace from {over} nodes on, "
        f"and end at {si(limit, 's')}.",
        parts=lambda wide: [_curves(nvlink, cards, limit)],
    )


def _curves(nvlink: list[float], cards: list[float], limit: float) -> Chart:
    marks = (
        Curve("NVLink", NODES, nvlink, color=NETWORK, dashed=True),
        Curve("cards", NODES, cards, color=CARDS, dashed=True),
        Curve("the gather", NODES, [max(pair) for pair in zip(nvlink, cards, strict=True)], color=MATH),
        RefLine("all of M", limit, axis="y"),
    )
    return Chart(
        x=Scale("nodes of eight H100", "", "pow2"),
        y=Scale("time", "s", low=0, high=limit * 1.15),
        marks=marks,
    )


def line() -> Figure:
    """What is a collective's fixed cost, and when does it matter?"""
    run = next(run for run in RUNS if (run.system, run.collective, run.n) == (SYSTEM, "all-reduce", 8))
    alpha, beta = fit(run)
    half = alpha * beta
    return Figure(
        key="gpus.line",
        alt=f"Measured times of an AllReduce over eight H100 by size, on log axes: flat up to about a megabyte, then straight up. A fitted line runs through them, with {si(alpha, 's')} for nothing "
        f"and half of its bandwidth at {si(half, 'B', 2)}. Dashed, the time by bandwidth alone, which falls on toward zero.",
        caption=f"A collective costs {si(alpha, 's')} before its first byte. Only beyond {si(half, 'B', 2)}, where that is half of the time, does bandwidth decide. "
        "(AllReduce over eight H100: NCCL's kernels as published, and a line through them.)",
        parts=lambda wide: [_line(run, alpha, beta)],
    )


def fit(run: CollectiveRun) -> tuple[float, float]:
    """Seconds of nothing and bytes a second of much: least squares of relative errors on T = alpha_0 + M / W_eff."""
    # Both columns are divided by the time, so that a gigabyte does not outvote all the rest.
    a = [1 / t for t in run.microseconds]
    b = [size / t for size, t in zip(run.sizes, run.microseconds, strict=True)]
    aa, ab, bb = sum(u * u for u in a), sum(u * v for u, v in zip(a, b, strict=True)), sum(v * v for v in b)
    det = aa * bb - ab * ab
    alpha_us, per_byte_us = (sum(a) * bb - sum(b) * ab) / det, (sum(b) * aa - sum(a) * ab) / det
    return alpha_us / 1e6, 1e6 / per_byte_us


def _line(run: CollectiveRun, alpha: float, beta: float) -> Chart:
    sizes = [2.0**e for e in range(12, 31)]
    timed = [(m, t / 1e6) for m, t in zip(run.sizes, run.microseconds, strict=True) if m >= sizes[0]]
    bare = [m for m in sizes if m / beta > alpha / 12]
    marks = (
        Curve("fitted", sizes, [alpha + m / beta for m in sizes], color=NETWORK),
        Curve("bytes alone", bare, [m / beta for m in bare], color=IDLE, dashed=True),
        Points("measured", [m for m, _ in timed], [t for _, t in timed], color=MATH),
        RefLine(f"half speed {si(alpha * beta, 'B', 2)}", alpha * beta),
        RefLine("α₀", alpha, axis="y"),
    )
    return Chart(x=Scale("size M", "B", "log"), y=Scale("time", "s", "log"), marks=marks)
