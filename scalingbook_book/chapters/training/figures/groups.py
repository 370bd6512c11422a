"""Figure of HSDP: a node gathers the weights, and equal blocks of different nodes sum their gradients."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models, training
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.training import Plan
from scalingbook_lib.units import si

SIDE = 8  # GPUs per node, and nodes
PITCH = 26.0


def hybrid() -> Figure:
    """HSDP on a grid of GPUs: the gathers run along a row, the sum of the gradients along a column."""
    llama, machine = models.find("Llama 3 70B"), Cluster.of(chips.B200, SIDE * SIDE)
    plan = Plan(fsdp=SIDE, dp=SIDE, microbatch=4, remat="full")
    inside, *_, across = training.traffic(llama, plan, machine, batch=256, T=4096)
    fast, slow = si(inside.nbytes, "B"), si(across.nbytes, "B")
    return Figure(
        key="training.hybrid",
        alt=f"A grid of {SIDE} nodes with {SIDE} GPUs each. The number in each box is the block of the weights that the GPU "
        f"holds, and each column has the same number. One row is marked: {fast} per layer over NVLink. One column is marked: an "
        f"AllReduce of {slow} per layer over the NICs.",
        caption="HSDP. Each row is a node, and the number in a box is the block of the weights that a GPU holds. In each row, "
        f"as in the marked one, weights are gathered and gradients reduce-scattered: {fast} per layer, over NVLink. In each "
        f"column, the GPUs that hold the same block sum their gradients: {slow} per layer, over the NICs, but only once per "
        f"step. (Llama 3 70B on {SIDE * SIDE} B200s.)",
        parts=lambda wide: [_grid(wide, fast, slow)],
    )


def _grid(wide: float, fast: str, slow: str) -> Sketch:
    left, top = 62.0, 34.0
    across = (wide - left - 4) / SIDE
    side = 18.0
    right, high = left + across * SIDE, PITCH * SIDE
    shapes: list[Shape] = [
        Area(x=left, y=top, wide=right - left, high=PITCH, color=MATH, shade=0.2),
        Area(x=left, y=top, wide=across, high=high, color=NETWORK, shade=0.2),
        Words(
            x=left if wide > 400 else 4.0,
            y=top - 10,
            text=f"gather and ReduceScatter: {fast}, NVLink",
            align="start",
        ),
        Words(x=left, y=top + high + 18, text=f"AllReduce: {slow}, NICs", align="start"),
    ]
    for node in range(SIDE):
        y = top + PITCH * node + (PITCH - side) / 2
        shapes.append(Words(x=left - 8, y=y + 13, text=f"node {node + 1}", align="end", quiet=True))
        for gpu in range(SIDE):
            x = left + across * (gpu + 0.5) - side / 2
            shapes.append(
                Area(x=x, y=y, wide=side, high=side, color=None, shade=0.04, text=f"{gpu + 1}", size=11.5)
            )
    return Sketch(wide, top + high + 28, shapes)
