"""Figures of networks: a fat tree, the time of an AllGather by number of nodes, and a fitted AllReduce."""

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
    """A tree with full bisection bandwidth, which is a fat tree, and an oversubscribed one."""
    full, thin = Cluster.of(H100, POD), Cluster.of(H100, POD, oversubscription=2)
    rate, less = si(full.node_bytes_per_s, "B/s"), si(_crossing(thin), "B/s")
    return Figure(
        key="gpus.fat_tree",
        alt=f"Two trees of four nodes, with four of the eight GPUs of each node drawn. The first NIC of every node leads to the first leaf switch, the second to the second, and so on: each is a rail. "
        f"Leaves lead to spines. In one tree, every level carries {rate} per node; in the other, there are half as many spines, and {less} per node above the leaves.",
        caption="A tree of switches with full bisection bandwidth (a fat tree) and one that is oversubscribed. "
        f"In the first, every level carries {rate} per node. With half as many spines, only {less} per node is "
        "left for traffic that crosses the spine. A rail consists of the i-th NICs of all nodes and "
        f"their leaf switch. ({POD:,} H100s have {full.leaves} leaves and {full.spines} or "
        f"{thin.spines} spines; only some are drawn.)",
        parts=lambda wide: [_trees(wide, full, thin)],
    )


def _crossing(cluster: Cluster) -> float:
    """Bytes/s per node across the spine: the slowest level's bytes/s per GPU times the GPUs of a node."""
    return cluster.domain * min(level.bytes_per_s for level in cluster.levels[1:])


def _trees(wide: float, full: Cluster, thin: Cluster) -> Sketch:
    abreast = wide > 400
    across = wide / 2 if abreast else wide
    shapes: list[Shape] = []
    for k, (cluster, spines) in enumerate(((full, 4), (thin, 2))):
        x, y = (across * k, 0.0) if abreast else (0.0, 246.0 * k)
        name = "full bisection bandwidth" if k == 0 else "oversubscribed 2 : 1"
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
    names = {"spine": SPINE + 15, "leaf": LEAF + 15, "NICs": CARD + 9, "GPUs": CARD + 25}
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
    """Time of the NVLink stage and of the NIC stage of an AllGather, by number of nodes."""
    both = [
        limits.each_level(collectives.all_gather, GATHERED, *Cluster.of(H100, 8 * d).levels) for d in NODES
    ]
    nvlink = [each["NVLink"] for each in both]
    cards = [max((s for name, s in each.items() if name != "NVLink"), default=0.0) for each in both]
    over = next(d for d, a, b in zip(NODES, nvlink, cards, strict=True) if b > a)
    limit = GATHERED / Cluster.of(H100, POD).node_bytes_per_s
    return Figure(
        key="gpus.stages",
        alt=f"Time of an AllGather of {si(GATHERED, 'B')} over 1 to {NODES[-1]} nodes. NVLink's curve is flat at {si(nvlink[0], 's')}. The curve of the NICs rises from zero, crosses it between "
        f"{over - 1} and {over} nodes, and approaches {si(limit, 's')}.",
        caption="Time of an AllGather against the number of nodes, over NVLink and over the NICs. The "
        "larger of the two determines the total time. The more nodes there are, the larger the "
        f"part of the array that each node lacks. With {over} or more nodes, the NICs are the "
        f"bottleneck, and their time approaches {si(limit, 's')}.",
        parts=lambda wide: [_curves(nvlink, cards, limit)],
    )


def _curves(nvlink: list[float], cards: list[float], limit: float) -> Chart:
    marks = (
        Curve("NVLink", NODES, nvlink, color=NETWORK, dashed=True),
        Curve("NICs", NODES, cards, color=CARDS, dashed=True),
        Curve("AllGather", NODES, [max(pair) for pair in zip(nvlink, cards, strict=True)], color=MATH),
        RefLine("all of M through the NICs", limit, axis="y"),
    )
    return Chart(
        x=Scale("nodes of eight H100s", "", "pow2"),
        y=Scale("time", "s", low=0, high=limit * 1.15),
        marks=marks,
    )


def line() -> Figure:
    """Measured AllReduce times by size, with a fitted line T = alpha_0 + M / W_eff."""
    run = next(run for run in RUNS if (run.system, run.collective, run.n) == (SYSTEM, "all-reduce", 8))
    alpha, beta = fit(run)
    half = alpha * beta
    return Figure(
        key="gpus.line",
        alt=f"Measured times of an AllReduce over eight H100s by size, on log axes: flat up to about a megabyte, then rising in proportion. A fitted curve passes through them, with a fixed cost of {si(alpha, 's')} "
        f"and half of its bandwidth at {si(half, 'B', 2)}. A dashed line shows the time of the bytes alone.",
        caption="Measured time of an AllReduce against the size of the array. It has a fixed cost of "
        f"{si(alpha, 's')}. Bandwidth dominates only above {si(half, 'B', 2)}, the size at which the "
        "fixed cost is half of the time. (Published times of NCCL on eight H100s with in-network "
        "reduction, and a fitted line.)",
        parts=lambda wide: [_line(run, alpha, beta)],
    )


def fit(run: CollectiveRun) -> tuple[float, float]:
    """alpha_0 in seconds and W_eff in bytes/s of T = alpha_0 + M / W_eff, by least squares of relative errors."""
    # Both columns are divided by the time, so that the largest arrays do not outweigh all others.
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
        RefLine(f"half bandwidth {si(alpha * beta, 'B', 2)}", alpha * beta),
        RefLine("α₀", alpha, axis="y"),
    )
    return Chart(x=Scale("size M", "B", "log"), y=Scale("time", "s", "log"), marks=marks)
