"""Figures of a frontier model's training layout: which group communicates over which links, on racks and on a pod."""

from collections.abc import Sequence

from scalingbook_book.chapters.architectures.case import V4_PRO
from scalingbook_book.chapters.architectures.frontier import ON_POD, ON_RACKS
from scalingbook_book.reader.explorers.view import Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import (
    EXPERTS,
    IDLE,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.training import TrainingStep
from scalingbook_lib.units import si

RACK, CUBE_SIDE = 72, 4  # GPUs of an NVL72 rack; chips along an edge of a cube of a TPU7x pod
EXCHANGE, WEIGHTS = "EP", "weights"


def received(step: TrainingStep, axis: str, kind: str = "") -> float:
    """The bytes that a chip receives per step in the collectives over a mesh axis, of one kind of weights or all."""
    rows = [row for row in step.traffic if row.axes == axis and row.name.startswith(kind)]
    return sum(row.received for row in rows)


def racks() -> Figure:
    """Which groups of the plan for 2,048 GPUs exchange data over NVLink, and which over the network?"""
    plan = ON_RACKS.plan
    across = ON_RACKS.shape.expert_shared  # racks that hold the same experts
    tokens, hops = received(ON_RACKS, "Z"), received(ON_RACKS, "P")
    experts = received(ON_RACKS, "X", "expert")
    dense = received(ON_RACKS, "X") - experts
    network = hops + experts
    return Figure(
        key="architectures.racks",
        alt=f"Left: {plan.pp} columns of {across} racks, one column for each pipeline stage, with arrows from each "
        f"stage to the next and along a column. Right: one rack enlarged, {plan.ep} GPUs with experts and "
        f"{RACK - plan.ep} spare ones. Below: bytes that a GPU receives per step. Dispatch and combine "
        f"{si(tokens, 'B')} over NVLink; pipeline stages {si(hops, 'B')} and experts' weights and gradients "
        f"{si(experts, 'B')} over the network; all other weights and gradients {si(dense, 'B')} over both.",
        caption=f"The training layout on {plan.pp * across} racks. A rack holds all experts of one pipeline stage, so "
        "that dispatch and combine stay on NVLink. The network carries the activations from stage to stage, and "
        f"the weights and gradients of the experts among the {across} racks of a stage. A GPU receives "
        f"{tokens / network:.0f} times as many bytes over NVLink for its experts as over the network. (Bars: bytes "
        f"that a GPU receives per step of {ON_RACKS.tokens / 1e6:.1f} million tokens, to scale.)",
        parts=lambda wide: [
            _racks(wide, plan.pp, across, plan.ep),
            lanes(
                wide,
                [
                    _span("EP: dispatch and combine", tokens, "NVLink", EXPERTS),
                    _span("PP: activations", hops, "network", NETWORK),
                    _span(f"DP {across}: experts", experts, "network", NETWORK),
                    _span(f"ZeRO {plan.fsdp}: other weights", dense, "both", MEMORY),
                ],
                title="received by a GPU per step",
            ),
        ],
    )


def pod() -> Figure:
    """Which groups of the plan for a TPU7x pod exchange data within a cube, and which across cubes?"""
    plan = ON_POD.plan
    tokens, hops = received(ON_POD, "Z"), received(ON_POD, "P")
    weights, replicas = received(ON_POD, "X"), received(ON_POD, "R")
    ours, theirs = ON_POD.ratios["expert parallelism"], ON_RACKS.ratios["expert parallelism"]
    return Figure(
        key="architectures.pod",
        alt=f"Top: {plan.pp} pipeline stages of {plan.dp} squares, each a cube of {CUBE_SIDE**3} chips, and one cube "
        f"enlarged as {CUBE_SIDE} layers. Below: bytes that a chip receives per step. Dispatch and combine "
        f"{si(tokens, 'B')}, FSDP {si(weights, 'B')}, gradients of replicas {si(replicas, 'B')}, pipeline stages "
        f"{si(hops, 'B')}, all over the torus.",
        caption=f"The training layout on a TPU7x pod. Every group uses the same torus. A cube of {CUBE_SIDE**3} chips "
        f"holds one replica of a pipeline stage, and both the experts' exchange and FSDP stay within it. The "
        f"exposed part of the exchange takes {ours:.2g} times as long as compute and recomputation together, compared with "
        f"{theirs:.2g} times on the racks. "
        f"(Bars: bytes that a chip receives per step of {ON_POD.tokens / 1e6:.1f} million tokens, to scale.)",
        parts=lambda wide: [
            _cubes(wide, plan.pp, plan.dp),
            lanes(
                wide,
                [
                    _span("EP: dispatch and combine", tokens, "in a cube", EXPERTS),
                    _span(f"FSDP {plan.fsdp}: weights, gradients", weights, "in a cube", MEMORY),
                    _span(f"DP {plan.dp}: gradients", replicas, "across cubes", NETWORK),
                    _span("PP: activations", hops, "across cubes", NETWORK),
                ],
                title="received by a chip per step",
            ),
        ],
    )


def _span(lane: str, nbytes: float, links: str, color: int) -> Span:
    return Span(lane, 0, nbytes, f"{si(nbytes, 'B')}, {links}", color)


def _racks(wide: float, stages: int, across: int, ep: int) -> Sketch:
    """The racks by pipeline stage, with one of them enlarged beside or, on a phone, below."""
    beside = wide > 400
    left, top, gap = 30.0, 46.0, 26.0
    column = ((430.0 if beside else wide) - left) / stages
    long, high, pitch = column - gap, 20.0, 27.0
    low = top + pitch * across
    shapes: list[Shape] = [
        Words(
            x=left, y=14, text=f"{stages * across} racks, {stages} pipeline stages", align="start", bold=True
        ),
        Arrow(x0=14, y0=top, x1=14, y1=low - 8, color=NETWORK, heads=2),
    ]
    for stage in range(stages):
        x = left + column * stage
        shapes.append(Words(x=x + long / 2, y=top - 10, text=f"stage {stage + 1}", quiet=True))
        for k in range(across):
            y, first = top + pitch * k, stage == k == 0
            shapes.append(Area(x=x, y=y, wide=long, high=high, color=EXPERTS, shade=0.7 if first else 0.25))
            if stage + 1 < stages:
                level = y + high / 2
                shapes.append(
                    Arrow(x0=x + long + 3, y0=level, x1=x + column - 3, y1=level, color=NETWORK, thick=1.2)
                )
    shapes += [
        Words(x=left, y=low + 12, text="→ activations, over the network", align="start"),
        Words(x=left, y=low + 30, text=f"↕ data parallelism, {across} racks, network", align="start"),
    ]
    side, columns = 20.0, RACK // 8
    x, y = (460.0, top) if beside else (left, low + 92)
    rows: list[Sequence[int | None]] = [
        [EXPERTS if 8 * j + k < ep else IDLE for j in range(columns)] for k in range(8)
    ]
    deep = y + side * len(rows)
    per_gpu = V4_PRO.experts.E // ep if V4_PRO.experts else 0
    shapes += [
        Words(x=x, y=y - 32, text=f"one rack: {RACK} GPUs", align="start", bold=True),
        Words(x=x, y=y - 10, text=f"EP {ep}, over NVLink", align="start"),
        Cells(x=x, y=y, rows=rows, wide=side, high=side),
        Words(x=x, y=deep + 16, text=f"{per_gpu} experts per layer and GPU", align="start"),
        Words(x=x, y=deep + 34, text=f"gray: {RACK - ep} spare GPUs", align="start"),
    ]
    return Sketch(wide, max(low, deep) + 48, shapes)


def _cubes(wide: float, stages: int, replicas: int) -> Sketch:
    """The cubes by pipeline stage, with one of them enlarged as layers of chips."""
    beside = wide > 400
    columns, gap = 12, 40.0
    room = 430.0 if beside else wide - 8
    side = (room - gap) / (stages * columns)
    deep = replicas // columns
    top, shapes = 46.0, list[Shape]()
    shapes.append(
        Words(
            x=4, y=14, text=f"{stages * replicas} cubes, {stages} pipeline stages", align="start", bold=True
        )
    )
    for stage in range(stages):
        x = 4 + (side * columns + gap) * stage
        rows: list[Sequence[int | None]] = [[EXPERTS] * columns] * deep
        shapes.append(Cells(x=x, y=top, rows=rows, wide=side, high=side, shade=0.3))
        shapes.append(
            Words(
                x=x + side * columns / 2,
                y=top - 10,
                text=f"stage {stage + 1}: {replicas} replicas",
                quiet=True,
            )
        )
        if stage + 1 < stages:
            end, level = x + side * columns, top + side * deep / 2
            shapes.append(Arrow(x0=end + 5, y0=level, x1=end + gap - 6, y1=level, color=NETWORK))
    shapes.append(Area(x=4, y=top, wide=side - 2, high=side - 2, color=EXPERTS, shade=0.8))
    low = top + side * deep
    x, y = (470.0, top) if beside else (4.0, low + 56)
    chip = 10.0
    shapes += [
        Words(x=x, y=y - 32, text=f"one cube: {CUBE_SIDE**3} chips", align="start", bold=True),
        Words(x=x, y=y - 10, text="EP and FSDP, on its links", align="start"),
    ]
    for layer in range(CUBE_SIDE):
        cells: list[Sequence[int | None]] = [[EXPERTS] * CUBE_SIDE] * CUBE_SIDE
        shapes.append(Cells(x=x + 50 * layer, y=y, rows=cells, wide=chip, high=chip, air=1.5))
    return Sketch(wide, max(low, y + CUBE_SIDE * chip) + 16, shapes)
