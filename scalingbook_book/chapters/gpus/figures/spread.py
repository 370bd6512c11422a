"""Figures of the limits of parallelism by machine, and of the dispatch of a token to its experts."""

from math import ceil, log

from scalingbook_book.chapters.gpus.figures.node import CARDS
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    EXPERTS,
    IDLE,
    MATH,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Cluster, Slice
from scalingbook_lib.machines.chips import H100, V5P
from scalingbook_lib.steps import limits
from scalingbook_lib.words import pluralize

PLACES = ((2, 0, 5), (3, 1, 4, 6), (2, 2, 7), (1, 3))  # drawn: a node's experts of the token, and their chips
GROUPS = (8, 16, 64, 256)
WIDTH = 2048  # of DeepSeek-V3's experts, eight of 256 to a token
TOP, ROW = 54.0, 26.0  # of the machines' rows
SMALLEST, LARGEST = 250.0, 9000.0  # of the axis of tokens


def bounds() -> Figure:
    """Tokens per GPU that data parallelism needs, and the degree of tensor parallelism, by machine."""
    rules = limits.table()
    torus = limits.data_parallel(Slice.of(V5P, "16x16x16")).least
    said = "; ".join(f"{r.chip} {r.domain_tokens:,.0f} and {r.network_tokens:,.0f}" for r in rules)
    return Figure(
        key="gpus.bounds",
        alt=f"A row for each machine, with two squares on a log axis for the tokens per GPU that data parallelism needs within a domain and across domains, the larger of them filled: {said}. "
        f"A line at {torus:.0f} marks a TPU v5p. Bars show the degree of tensor parallelism, from {rules[-1].tensor_degree:.0f} to {rules[0].tensor_degree:.0f}.",
        caption="Tokens per GPU that data parallelism needs within a domain and across domains. The filled square, "
        "the one farther to the right, is the bottleneck. In domains of eight, that is the network of NICs; "
        "in a rack of 72, it is NVLink, because 72 NICs share the load. (Log scale; a TPU v5p needs "
        f"{torus:.0f}. Bars: the degree of tensor parallelism for F = {rules[0].F:,}.)",
        parts=lambda wide: (
            [Sketch(wide, 288, [*_dots(430, rules, torus), *_ways(450, wide, rules)])]
            if wide > 400
            else [
                Sketch(wide, 288, _dots(wide, rules, torus)),
                Sketch(wide, 264, _ways(70, wide, rules, named=True)),
            ]
        ),
    )


def _dots(wide: float, rules: tuple[limits.Rules, ...], torus: float) -> list[Shape]:
    left, right = 70.0, wide - 14

    def at(tokens: float) -> float:
        return left + (right - left) * log(tokens / SMALLEST) / log(LARGEST / SMALLEST)

    low = 44 + ROW * len(rules)
    shapes: list[Shape] = [
        Arrow(x0=at(torus), y0=36, x1=at(torus), y1=low, heads=0, thick=1.2, dashed=True),
        Words(x=at(torus), y=30, text=f"v5p {torus:.0f}", quiet=True),
        Words(x=right, y=14, text="NVLink", align="end", color=NETWORK),
        Words(x=right - 62, y=14, text="NICs", align="end", color=CARDS),
        Words(x=4, y=14, text="tokens per GPU, log scale", align="start", quiet=True),
    ]
    for k, r in enumerate(rules):
        y = TOP + ROW * k
        shapes += [
            Words(x=left - 8, y=y + 5, text=r.chip, align="end"),
            Arrow(x0=left, y0=y, x1=right, y1=y, heads=0, thick=0.6, color=IDLE),
        ]
        binds = max(r.domain_tokens, r.network_tokens)
        for tokens, color in ((r.domain_tokens, NETWORK), (r.network_tokens, CARDS)):
            shade = 1.0 if tokens == binds else 0.15
            shapes.append(Area(x=at(tokens) - 6, y=y - 6, wide=12, high=12, color=color, shade=shade))
    return shapes + [Words(x=at(n), y=low + 16, text=f"{n:,}", quiet=True) for n in (300, 1000, 3000)]


def _ways(left: float, right: float, rules: tuple[limits.Rules, ...], *, named: bool = False) -> list[Shape]:
    """Bars on the rows of the squares, with the names of the machines if they are drawn alone."""
    most = max(r.tensor_degree for r in rules)
    shapes: list[Shape] = [
        Words(x=left, y=14 if not named else 24, text="TP degree", align="start", quiet=True)
    ]
    for k, r in enumerate(rules):
        long, y = (right - left - 48) * r.tensor_degree / most, TOP + ROW * k
        name = r.chip if named else ""
        shapes.append(
            Area(
                x=left, y=y - 8, wide=long, high=16, color=NETWORK, left=name, right=f"{r.tensor_degree:.1f}"
            )
        )
    return shapes


def token_trip() -> Figure:
    """The dispatch of one token to eight experts on four nodes, and the width that experts need."""
    machine = Cluster.of(H100, 1024)
    needed = [ceil(limits.expert_parallel(machine, Z, k=8, once=True).least) for Z in GROUPS]
    said = ", ".join(f"{width:,.0f} over {Z}" for Z, width in zip(GROUPS, needed, strict=True))
    return Figure(
        key="gpus.token_trip",
        alt=f"Four nodes of eight GPUs. A token on the first node is dispatched to eight experts: one arrow to each other node, then short ones to the GPUs with its experts. "
        f"Below, the width that experts need, by the number of GPUs that share them: {said}; a line at {WIDTH:,}.",
        caption="Dispatch of a token to experts on several nodes, and the expert width that hides it. A "
        "token is sent to each node only once, however many of its experts are there, and is then "
        f"copied over NVLink. Even so, experts that are {WIDTH:,} wide are compute-bound only within "
        "one node, and almost over two. (Eight of 256 ungated experts on H100.)",
        parts=lambda wide: [_trip(wide), _needed(needed)],
    )


def _trip(wide: float) -> Sketch:
    across = wide / len(PLACES)
    shapes: list[Shape] = [Words(x=4, y=14, text="one token, eight experts", align="start")]
    for node, (held, *chips) in enumerate(PLACES):
        shapes += _visited(across * node, across, held, chips)
        if node:
            door = across * (node + 0.5)
            shapes.append(Arrow(x0=across / 2 + 5, y0=64, x1=door, y1=62, color=CARDS, thick=2.2, bend=-0.12))
    low = 64 + (across - 14) / 2 + 78
    kinds = ("over the NIC, once per node", CARDS), ("over NVLink, one copy per GPU", NETWORK)
    shapes += [
        Words(x=4, y=low + 18 * k, text=name, align="start", color=color)
        for k, (name, color) in enumerate(kinds)
    ]
    return Sketch(wide, low + 26, shapes)


def _visited(x: float, across: float, held: int, chips: list[int]) -> list[Shape]:
    """A node of eight GPUs, some with experts of the token, and the copies that go to them."""
    pitch, door = (across - 14) / 4, x + across / 2
    side = pitch * 0.74
    below = pluralize(held, "expert")
    shapes: list[Shape] = [
        Area(x=x + 4, y=64, wide=across - 8, high=2 * pitch + 40, color=None, shade=0.03, below=below)
    ]
    for k in range(8):
        left, top = x + 6 + pitch * (k % 4 + 0.5) - side / 2, 100 + pitch * (k // 4)
        color, shade = (EXPERTS, 0.9) if k in chips else (MATH, 0.2)
        shapes.append(Area(x=left, y=top, wide=side, high=side, color=color, shade=shade))
        if k in chips:
            shapes.append(Arrow(x0=door, y0=74, x1=left + side / 2, y1=top, color=NETWORK, thick=1.3))
    shapes.append(Area(x=door - 5, y=64, wide=10, high=10, color=MATH, shade=1))
    return shapes


def _needed(needed: list[int]) -> Chart:
    marks = (
        Curve("", GROUPS, needed, color=EXPERTS),
        Points("", GROUPS, needed, [f"{width:,.0f}" for width in needed], EXPERTS),
        RefLine(f"{WIDTH:,}: DeepSeek-V3", WIDTH, axis="y"),
    )
    return Chart(
        x=Scale("GPUs that share the experts", "", "pow2", high=512),
        y=Scale("expert width F needed", "", "log", low=1000, high=30_000),
        marks=marks,
    )
