"""Figures of where time goes: the parts of a run, rings, and passes over HBM."""

from collections.abc import Sequence

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Brace,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import Axis
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.sharded_matmul.overlap import BACK, LINK, UNIT, OverlapRun, RingMatmul
from scalingbook_lib.units import BF16, MiB, si

LAYER = RingMatmul(B=8192, D=8192, F=8192 / 4, axis=Axis(4, True, V5E.link_bytes_per_s, V5E.hop_s), chip=V5E)
RUNS = {
    "gather, then multiply": LAYER.gather_first(),
    "ring, one direction": LAYER.on_arrival(1),
    "ring, both directions": LAYER.on_arrival(2),
}
LANES = {UNIT: ("compute", MATH), LINK: ("link →", NETWORK), BACK: ("link ←", NETWORK)}
HEADS, T, PIECE = 32, 4096, 256  # of the layer's attention, and the queries of one chunk
KERNELS = (
    ("scores", 0, 1),
    ("sum", 1, 0),
    ("divide", 1, 1),
    ("values", 1, 0),
)  # what each reads and writes of T × T

type Stretch = tuple[str, float, float]  # its name, from and until, in tenths of the drawing
type Lanes = dict[str, tuple[int, Sequence[Stretch]]]  # by name: its color, and what is in it
RUN: Lanes = {
    "compute": (MATH, (("matmul", 0.0, 3.6), ("matmul", 7.7, 10.0))),
    "transfers": (NETWORK, (("hidden", 0.8, 3.2), ("exposed", 3.6, 6.3))),
}
PARTS = (("compute", 0.0, 3.6), ("exposed", 3.6, 6.3), ("idle", 6.3, 7.7), ("compute", 7.7, 10.0))
LAUNCHED = [float(k) for k in range(3)]  # one by one, each with a kernel behind it
GPU_STEP: Lanes = {
    "host": (CACHE, (*(("", at, at + 0.6) for at in LAUNCHED), ("graph", 3.0, 4.7))),
    "kernels": (
        MATH,
        (
            *(("", at + 0.6, at + 0.9) for at in LAUNCHED),
            *(("", 4.7 + 0.3 * at, 5.0 + 0.3 * at) for at in LAUNCHED),
            ("matmul", 5.6, 8.0),
        ),
    ),
    "NCCL": (NETWORK, (("AllReduce", 6.8, 10.0),)),
}
GPU_PARTS = (("launches, gaps", 0.6, 2.9), ("one graph", 4.7, 8.0), ("exposed", 8.0, 10.0))


def lanes() -> Figure:
    """A run as compute, exposed communication and idle time."""
    return Figure(
        key="profiling.lanes",
        alt="A run of a device as two lanes. In the upper lane it computes twice, with a gap in between. In the lower lane, a first transfer runs during a matmul, and a second one during the gap. Brackets below divide "
        "the run into compute, exposed, idle, and compute.",
        caption="The parts of a run: compute, exposed communication and idle time. A transfer that runs "
        "during a matmul is hidden and costs no time. Where only a transfer runs, the time is "
        "exposed, and where nothing runs, the device is idle. (Schematic, not to scale.)",
        parts=lambda wide: [_schematic(wide, RUN, PARTS)],
    )


def gpu() -> Figure:
    """A GPU step with launch gaps, a CUDA graph and an exposed collective."""
    return Figure(
        key="profiling.gpu",
        alt="A step of a GPU as three lanes: the host, a stream of kernels, and a stream of NCCL. First the host launches three short kernels one by one, with gaps between them. Then it launches "
        "a graph, and three kernels and a matmul run without gaps. An AllReduce of NCCL begins during the matmul and continues alone.",
        caption="One step of a GPU: the host, the kernels, and the collectives. If kernels are shorter than "
        "their launches, there are gaps between them. Launched as one CUDA graph, they run without "
        "gaps. Collectives are kernels on a stream of their own, and they are exposed where nothing "
        "else runs. (Schematic, not to scale.)",
        parts=lambda wide: [_schematic(wide, GPU_STEP, GPU_PARTS)],
    )


def _schematic(wide: float, lanes: Lanes, parts: Sequence[Stretch]) -> Sketch:
    """Lanes of ten units, with brackets that name the parts of the run."""
    left = 78.0
    unit = (wide - left - 8) / 10
    shapes: list[Shape] = []
    for k, (name, (color, stretches)) in enumerate(lanes.items()):
        y = 10 + 40.0 * k
        shapes.append(Words(x=left - 10, y=y + 20, text=name, align="end"))
        shapes += [
            Area(x=left + unit * a, y=y, wide=unit * (b - a), high=32, text=text, color=color)
            for text, a, b in stretches
        ]
    y = 12 + 40.0 * len(lanes)
    shapes += [Brace(x0=left + unit * a + 2, x1=left + unit * b - 2, y=y, text=text) for text, a, b in parts]
    return Sketch(wide, y + 30, shapes)


def ring() -> Figure:
    """Timelines of an AllGather and a matmul, with and without a ring."""
    said = ", ".join(f"{name} {si(run.exposed_s, 's', 2)}" for name, run in RUNS.items())
    return Figure(
        key="profiling.ring",
        alt=f"Three timelines of one chip on the same time axis: gather first, a ring in one direction, a ring in both directions. Gaps in the compute lane are exposed: {said}.",
        caption="Timelines of a matmul whose operand is gathered in three ways. If the chip gathers first, "
        "the whole transfer is exposed. A ring multiplies one block while the next one arrives. In "
        "one direction, the chip still waits in every hop; in both directions, it waits only in the "
        "first hop. (An 8,192 × 8,192 operand over four TPU v5e, with 2,048 columns on each.)",
        parts=lambda wide: [_rings(wide)],
    )


def _rings(wide: float) -> Sketch:
    shapes: list[Shape] = []
    y, most = 0.0, max(run.total_s for run in RUNS.values())
    for name, run in RUNS.items():
        words = f"{name}: exposed {si(run.exposed_s, 's', 2)}"
        shapes.append(Words(x=4, y=y + 16, text=words, align="start", bold=True))
        shapes += _played(run, y + 26, wide, most)
        y += 26 + 26.0 * len(LANES) + 14
    return Sketch(wide, y - 8, shapes)


def _played(run: OverlapRun, y: float, wide: float, most: float) -> list[Shape]:
    left = 76.0
    unit = (wide - left - 6) / most
    shapes: list[Shape] = []
    for k, (stage, (lane, color)) in enumerate(LANES.items()):
        top, reached = y + 26 * k, 0.0
        shapes.append(Words(x=left - 8, y=top + 15, text=lane, align="end", quiet=True))
        for turn in (t for t in run.turns if t.stage == stage):
            if stage == UNIT and turn.start_s > reached:
                gap = unit * (turn.start_s - reached)
                shapes.append(
                    Area(
                        x=left + unit * reached, y=top, wide=gap, high=21, color=IDLE, shade=0.05, dashed=True
                    )
                )
            shapes.append(
                Area(
                    x=left + unit * turn.start_s,
                    y=top,
                    wide=unit * (turn.end_s - turn.start_s),
                    high=21,
                    color=color,
                    shade=0.45,
                )
            )
            reached = turn.end_s
    return shapes


def passes() -> Figure:
    """The passes of attention over its scores, in HBM and in VMEM."""
    nbytes = BF16.bytes * HEADS * T * T
    count = sum(reads + writes for _, reads, writes in KERNELS)
    one, pieces = nbytes / V5E.hbm_bytes_per_s, nbytes * PIECE / T
    return Figure(
        key="profiling.passes",
        alt=f"Four kernels of attention above a bar of HBM. The first writes the scores, the second reads them, the third reads and writes, the fourth reads: {count} arrows of {si(nbytes, 'B')}. "
        f"Below, the same kernels on chunks of {PIECE} queries, with a bar of VMEM of {pieces / MiB:.0f} MiB.",
        caption="HBM traffic of unfused attention and of attention in chunks. The attention scores pass "
        f"through HBM {count} times with {si(nbytes, 'B')} each. That takes {si(count * one, 's')}, "
        f"which no count of FLOPs includes. In chunks of {PIECE} queries, the scores are "
        f"{pieces / MiB:.0f} MiB and stay in VMEM. ({HEADS} heads, {T:,} tokens, TPU v5e.)",
        parts=lambda wide: [
            _kernels(wide, "HBM", f"{count} passes of {si(nbytes, 'B')}: {si(count * one, 's')}", True),
            _kernels(wide, "VMEM", f"chunks of {PIECE} queries, {pieces / MiB:.0f} MiB", False),
        ],
    )


def _kernels(wide: float, memory: str, said: str, far: bool) -> Sketch:
    pitch = (wide - 8) / len(KERNELS)
    low = 112.0 if far else 74.0
    shapes: list[Shape] = [
        Area(
            x=4,
            y=low,
            wide=wide - 8,
            high=28,
            color=MEMORY,
            text=f"{memory}: {said}",
            shade=0.3 if far else 0.1,
        )
    ]
    for k, (name, reads, writes) in enumerate(KERNELS):
        x = 4 + pitch * k
        shapes.append(Area(x=x + 6, y=8, wide=pitch - 12, high=32, text=name, color=MATH))
        places = [x + pitch * (i + 1) / (reads + writes + 1) for i in range(reads + writes)]
        thick = 4.0 if far else 1.2
        if reads:
            shapes.append(Arrow(x0=places[0], y0=low, x1=places[0], y1=41, color=MEMORY, thick=thick))
        if writes:
            shapes.append(Arrow(x0=places[-1], y0=41, x1=places[-1], y1=low, color=MEMORY, thick=thick))
    return Sketch(wide, low + 34, shapes)


WHERE = (  # of a slow step: the question, and the cause if the answer is yes
    ("time between runs?", "the host: data, compilation, waiting", CACHE),
    ("transfers exposed?", "the sharding, or the schedule", NETWORK),
    ("a kernel slower than its roofline?", "a shape, a copy, a small batch", MEMORY),
    ("more FLOPs than the model's?", "recomputed or replicated work", MATH),
)


def where() -> Figure:
    """Questions to ask about a slow step, in order."""
    asked = "; ".join(f"{question} {answer}" for question, answer, _ in WHERE)
    return Figure(
        key="profiling.where",
        alt=f"Four questions, one below the other, each with an arrow to the cause if the answer is yes: {asked}.",
        caption="Four questions about a slow step, in the order in which to ask them. Each one is cheaper "
        "to answer than the next, and a problem further up hides those below it.",
        parts=lambda wide: [_asked(wide)],
    )


def _asked(wide: float) -> Sketch:
    abreast = wide > 400
    pitch, half = (46.0, wide / 2 - 40) if abreast else (84.0, wide - 60)
    shapes: list[Shape] = []
    for k, (question, answer, color) in enumerate(WHERE):
        y = 4 + pitch * k
        shapes.append(Area(x=4, y=y, wide=half - 8, high=30, text=question, color=IDLE, shade=0.15))
        x, low = (wide / 2 + 40, y) if abreast else (56.0, y + 40)
        shapes.append(Area(x=x, y=low, wide=half, high=30, text=answer, color=color))
        shapes.append(Arrow(x0=half if abreast else 30, y0=low + 15, x1=x - 2, y1=low + 15))
        shapes.append(
            Words(x=wide / 2 + 4 if abreast else 14, y=low + (9 if abreast else 19), text="yes", quiet=True)
        )
        if k and abreast:
            shapes.append(Arrow(x0=half - 40, y0=y - pitch + 31, x1=half - 40, y1=y - 1))
    return Sketch(wide, pitch * len(WHERE) - (8 if abreast else 6), shapes)
