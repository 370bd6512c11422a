"""Figures of ZeRO, tensor parallelism on part of a ring, memory per chip, and the pipeline bubble."""

from dataclasses import replace

from scalingbook_book.reader.explorers.view import Bars, RefLine, Scale, Series, Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models, training
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.steps import pipelines
from scalingbook_lib.training import Plan
from scalingbook_lib.units import percent, si

LLAMA = models.find("Llama 3 70B")
PARAMS, SHARING = 7.5e9, 64
STAGES = {"plain DP, 2M moved": 0, "ZeRO-1, 2M moved": 1, "ZeRO-2, 2M moved": 2, "ZeRO-3, 3M moved": 3}
POLICIES = {"none": "everything", "selective": "matmul outputs", "full": "layer inputs"}
LONG = Slice.of(V5P, "4x32x32")
PLAN = Plan(fsdp=1024, tp=4)


def zero() -> Figure:
    """What each stage of ZeRO leaves on a chip, and what it moves."""
    held = {name: training.states(PARAMS, Plan(fsdp=SHARING, zero=stage)) for name, stage in STAGES.items()}
    said = ", ".join(f"{name.split(',')[0]} {si(memory.total, 'B')}" for name, memory in held.items())
    return Figure(
        key="training.zero",
        alt=f"Four stacked bars of weights, gradients and optimizer state on each of {SHARING} chips: {said}.",
        caption="Training state per chip for plain data parallelism and the three stages of ZeRO. Each "
        "stage shards one more part of the state. ZeRO-1 saves most, because the optimizer state is "
        "12 of the 16 bytes per parameter. Only ZeRO-3 moves more bytes per step: 3M instead of 2M, for weights of M bytes. "
        f"({PARAMS / 1e9:g} billion parameters, {SHARING} chips.)",
        parts=lambda wide: [_stages(held)],
    )


def _stages(held: dict[str, training.TrainingMemory]) -> Bars:
    parts = {"weights": MEMORY, "gradients": MATH, "optimizer": EXPERTS}
    series = [
        Series(part, [memory[part] for memory in held.values()], color) for part, color in parts.items()
    ]
    return Bars(Scale("bytes per chip", "B"), list(held), series, stacked=True)


def piece_of_a_ring() -> Figure:
    """Four chips of a longer axis form a line, which takes twice as long as a ring of four."""
    waits = {shape: _waits(shape) for shape in ("16x16x16", "4x32x32")}
    piece, ring = waits.values()
    return Figure(
        key="training.piece_of_a_ring",
        alt=f"Above, an axis of 16 chips, four of which work together: a line, with one link to the chip at each end. Below, an axis "
        f"of four chips that forms a ring. Exposed time of tensor parallelism per step: "
        f"{si(piece, 's')} and {si(ring, 's')}.",
        caption="Tensor parallelism of degree 4 on part of a torus axis and on a whole axis. Four chips of "
        "an axis of 16 form a line, so the chip at its end receives over one link. An axis of four "
        "is a ring, where every chip receives over two links. The exposed time of tensor "
        f"parallelism is therefore {si(ring, 's')} per step instead of {si(piece, 's')}.",
        parts=lambda wide: [_axes(wide, piece, ring)],
    )


def _waits(shape: str) -> float:
    return training.step(LLAMA, Slice.of(V5P, shape), PLAN, batch=1024, T=4096).exposed["tensor parallelism"]


def _axes(wide: float, piece: float, ring: float) -> Sketch:
    pitch = wide / 16
    side = pitch * 0.62
    shapes: list[Shape] = []
    for k in range(16):
        used = k < 4
        x = pitch * (k + 0.5) - side / 2
        shapes.append(
            Area(x=x, y=30, wide=side, high=side, color=MATH if used else None, shade=0.5 if used else 0.04)
        )
        if k < 15:
            line = Arrow(
                x0=x + side,
                y0=30 + side / 2,
                x1=x + pitch,
                y1=30 + side / 2,
                heads=0,
                thick=3 if k < 3 else 1,
            )
            shapes.append(line)
    shapes.append(Words(x=4, y=16, text=f"4 of 16 chips, a line: {si(piece, 's')}", align="start"))
    y = 84 + side
    for k in range(4):
        x = pitch * (2 * k + 1) - side / 2
        shapes.append(Area(x=x, y=y, wide=side, high=side, color=MATH, shade=0.5))
        if k < 3:
            shapes.append(
                Arrow(x0=x + side, y0=y + side / 2, x1=x + 2 * pitch, y1=y + side / 2, heads=0, thick=3)
            )
    low = y + side
    shapes.append(
        Arrow(x0=pitch * 7, y0=low, x1=pitch, y1=low, heads=0, thick=3, bend=-0.12 if wide > 400 else -0.2)
    )
    shapes.append(Words(x=4, y=y - 14, text=f"an axis of 4, a ring: {si(ring, 's')}", align="start"))
    return Sketch(wide, y + side + 36, shapes)


def memory_of_a_chip() -> Figure:
    """Memory per chip by what it holds, for three rematerialization policies."""
    steps = {
        name: training.step(LLAMA, LONG, replace(PLAN, remat=remat), batch=1024, T=4096)
        for remat, name in POLICIES.items()
    }
    more = {name: step.hardware_flops / step.useful_flops - 1 for name, step in steps.items()}
    said = "; ".join(
        f"{name} {si(sum(_drawn(step.memory).values()), 'B')}, {percent(more[name], 2)} more FLOPs"
        for name, step in steps.items()
    )
    state = next(iter(steps.values())).memory.state
    return Figure(
        key="training.memory_of_a_chip",
        alt=f"Three stacked bars below a line for the HBM of a TPU v5p, by what is saved for the backward pass: {said}.",
        caption="Memory per chip for Llama 3 70B on 4,096 chips, under three rematerialization policies. "
        f"The sharded training state takes only {si(state, 'B')}, too little to see, and activations "
        "take most of the memory. Saving fewer of them costs more FLOPs: "
        f"{', '.join(percent(share, 2) for share in more.values())} more for the three policies.",
        parts=lambda wide: [_held({name: step.memory for name, step in steps.items()})],
    )


_PARTS = {"state": MEMORY, "activations": MATH, "logits": CACHE, "gathered weights": NETWORK}


def _drawn(memory: training.TrainingMemory) -> dict[str, float]:
    """The bytes of each part of a bar."""
    return {part: memory.state if part == "state" else memory[part] for part in _PARTS}


def _held(memory: dict[str, training.TrainingMemory]) -> Bars:
    drawn = [_drawn(each) for each in memory.values()]
    series = [Series(part, [each[part] for each in drawn], color) for part, color in _PARTS.items()]
    return Bars(
        Scale("bytes per chip", "B"),
        list(memory),
        series,
        stacked=True,
        refs=(RefLine("HBM", V5P.hbm_bytes),),
    )


def bubble() -> Figure:
    """GPipe and 1F1B as timelines: equal bubbles, different numbers of microbatches kept."""
    runs = {
        name: pipelines.simulate(schedule, 4, 8) for name, schedule in (("GPipe", "gpipe"), ("1F1B", "1f1b"))
    }
    idle = {name: percent(float(run.bubble)) for name, run in runs.items()}
    held = {name: float(max(run.live)) for name, run in runs.items()}
    return Figure(
        key="training.bubble",
        alt="Two timelines of four stages and eight microbatches. GPipe runs all forward passes and "
        "then all backward passes; 1F1B alternates. Both leave triangles of idle time at the start "
        f"and at the end, which take {idle['GPipe']} of the step.",
        caption="Two pipeline schedules with four stages and eight microbatches. With both, a stage is idle "
        f"for {idle['1F1B']} of the step. But with GPipe, it has to keep the activations of up to "
        f"{held['GPipe']:.0f} microbatches, and with 1F1B, of only {held['1F1B']:.0f}. (Short "
        "blocks: forward pass; long blocks: backward pass; the number is the microbatch.)",
        parts=lambda wide: [_played(name, run) for name, run in runs.items()],
    )


def _played(name: str, run: pipelines.PipelineRun) -> Timeline:
    lanes = [f"stage {s + 1}" for s in range(run.stages)]
    colors = {"F": MEMORY, "B": MATH}
    spans = [
        Span(lanes[s.stage], float(s.start), float(s.end), str(s.microbatch + 1), colors[s.kind])
        for s in run.spans
    ]
    return Timeline(lanes, spans, unit="", title=name, label="time, in forward passes of a microbatch")
