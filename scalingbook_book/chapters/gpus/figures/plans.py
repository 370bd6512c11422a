"""Figures of a published plan: tokens and width that it needs and has, and where its peak FLOPs go."""

from math import ceil

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    IDLE,
    MATH,
    NETWORK,
    Area,
    Arrow,
    Brace,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.evidence.measured import SWEEPS
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.steps import limits
from scalingbook_lib.units import count, percent

LLAMA = models.find("Llama 3.1 405B")
GPUS, BATCH, TP, PP, MICRO, PIECES = 16_384, 2**24, 8, 16, 16, 8
REPORTED = 0.41  # of the peak, as the run's paper has it
SWEEP = SWEEPS["H100, bf16, 16,384 wide"]


def audit() -> Figure:
    """Llama 3.1 405B's plan: its limits, and its utilization compared with what was reported."""
    plan = limits.audit(Cluster.of(H100, GPUS), LLAMA, tokens=BATCH, tp=TP, pp=PP, m=MICRO)
    each, bubble, rows = plan.tokens_per_chip, _bubble(), _rows()
    kept = (1 - bubble) * _reached()
    said = ", ".join(f"{name}: needed {ceil(need):,} of {have:,.0f}" for name, need, have in rows)
    return Figure(
        key="gpus.audit",
        alt=f"{GPUS:,} GPUs as {plan.dp} replicas, each a row of {PP} stages of {TP} GPUs. Bars show what the plan needs out of what it has: {said}. Then the peak is divided: a bubble of {percent(bubble)}, "
        f"a part that matmuls do not reach, {percent(kept)} that remain, and the {percent(REPORTED)} that were reported.",
        caption="Meta's plan for Llama 3.1 405B, and what it leaves of the peak. No network is the "
        f"bottleneck: {ceil(rows[0][1])} tokens per GPU are enough, and there are {each:,.0f}. The "
        f"bubble and the efficiency of matmuls leave {percent(kept)} of the peak. The gap to the "
        f"reported {percent(REPORTED)} is due to attention, recomputation and communication that "
        "does not overlap.",
        parts=lambda wide: [_levels(wide, plan.dp), _enough(wide, rows), _peak(wide, bubble, kept)],
    )


def _reached() -> float:
    """The fraction of the peak that the best measured matmul reaches on this chip."""
    return max(row.roofline.flops / row.seconds for row in SWEEP.rows) / SWEEP.chip.flops_per_s(SWEEP.dtype)


def _bubble() -> float:
    shape = {
        "tokens": BATCH / GPUS,
        "m": MICRO,
        "D": LLAMA.D,
        "F": LLAMA.F,
        "L": LLAMA.L + 2,
        "model_parallel": TP,
    }
    return limits.pipeline_parallel(Cluster.of(H100, GPUS), PP, interleave=PIECES, gated=True, **shape).bubble


def _rows() -> tuple[tuple[str, float, float], ...]:
    """The needed and the available tokens per GPU (DP) and width (TP)."""
    machine = Cluster.of(H100, GPUS)
    tokens = limits.data_parallel(machine, model_parallel=TP * PP).least
    width = limits.tensor_parallel(machine, TP, gated=True).least
    return ("tokens per GPU", tokens, BATCH / GPUS), ("width F", width, LLAMA.F)


def _levels(wide: float, copies: int) -> Sketch:
    """Replicas behind each other, the first with its stages, one of which is enlarged."""
    long = wide - 60.0
    pitch = (long - 8) / PP
    shapes: list[Shape] = [Area(x=24, y=44, wide=long, high=46, color=None, shade=0.04)]
    for k in (1, 2):  # the visible edges of the replicas behind
        x, y = 24 + 6.0 * k, 44 - 6.0 * k
        shapes += [
            Arrow(x0=x, y0=y, x1=x + long, y1=y, heads=0, thick=1, color=IDLE),
            Arrow(x0=x + long, y0=y, x1=x + long, y1=y + 46, heads=0, thick=1, color=IDLE),
        ]
    shapes.append(
        Words(x=24, y=16, text=f"{copies} replicas (DP) of {PP} stages (PP)", align="start", bold=True)
    )
    shapes += [
        Area(x=28 + pitch * k, y=50, wide=pitch - 3, high=34, color=MATH, shade=0.5 if k == 4 else 0.2)
        for k in range(PP)
    ]
    x = 28 + pitch * 4
    left = max(x - 60, 24.0)
    for k, end in ((0, left), (1, left + 176)):
        shapes.append(Arrow(x0=x + (pitch - 3) * k, y0=84, x1=end, y1=122, heads=0, thick=1, dashed=True))
    shapes.append(Area(x=left, y=122, wide=176, high=34, color=None, shade=0.03))
    shapes += [Area(x=left + 6 + 21 * k, y=130, wide=17, high=17, color=MATH, shade=0.5) for k in range(TP)]
    shapes.append(Brace(x0=left, x1=left + 176, y=158, text=f"a stage: {TP} GPUs (TP)"))
    return Sketch(wide, 188, shapes)


def _enough(wide: float, rows: tuple[tuple[str, float, float], ...]) -> Sketch:
    left, long = 118.0, wide - 118 - 8
    shapes: list[Shape] = []
    for k, (name, need, have) in enumerate(rows):
        y = 20 + 54.0 * k
        shapes += [
            Area(x=left, y=y, wide=long, high=24, color=IDLE, shade=0.08, left=name),
            Area(x=left, y=y, wide=long * need / have, high=24, color=NETWORK),
        ]
        said = f"needs {count(ceil(need))} of {have:,.0f}"
        shapes.append(Words(x=left + long, y=y - 6, text=said, align="end"))
    return Sketch(wide, 20 + 54.0 * len(rows) - 24, shapes)


def _peak(wide: float, bubble: float, kept: float) -> Sketch:
    parts = (
        ("reported", REPORTED, MATH),
        ("other losses", kept - REPORTED, IDLE),
        ("matmuls", 1 - bubble - kept, IDLE),
        ("bubble", bubble, IDLE),
    )
    long, x = wide - 8.0, 4.0
    shapes: list[Shape] = [Words(x=4, y=14, text="fraction of the peak", align="start", quiet=True)]
    for name, share, color in parts:
        shapes += [
            Area(
                x=x,
                y=22,
                wide=long * share,
                high=34,
                color=color,
                shade=0.1 if name in ("matmuls", "bubble") else 0.35,
                text=percent(share),
                dashed=name in ("matmuls", "bubble"),
            ),
            Words(x=x + long * share / 2, y=72, text=name, size=12),
        ]
        x += long * share
    return Sketch(wide, 80, shapes)
