"""Figures of the chip: its cores beside those of a TPU, and the factors of its peak."""

from math import log2, sqrt

from scalingbook_book.chapters.gpus.figures.facts import (
    CLOCK_HZ,
    L2,
    LANES_FLOPS_PER_S,
    REGISTERS,
    SMEM,
    SMS,
    TENSOR_CORES,
    V5P_CORES,
    VMEM,
    per_cycle,
)
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    Area,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines.chips import H100, V5P
from scalingbook_lib.units import KiB, MiB, si

ACROSS = 12  # SMs drawn in a row, six in each half of the chip
SIDE = 12.0  # of an SM
WARPS_AT_ONCE, LANES = 4, 32  # the quarters of an SM, and the lanes of one


def sm() -> Figure:
    """An H100 with its SMs beside a TPU v5p with its two cores; areas by FLOPs per cycle, bars by bytes."""
    ratio = per_cycle(V5P) / per_cycle(H100)
    return Figure(
        key="gpus.sm",
        alt=f"An H100 with {SMS} small squares in two halves, and a TPU v5p with {V5P_CORES} cores of four large "
        f"matrix units each, each of them {ratio:.0f} times as large as a Tensor Core. Below each chip, bars show its on-chip memories. One "
        "SM is enlarged: it has four quarters, each with a Tensor Core, 32 CUDA cores, a scheduler and registers, above a shared SMEM.",
        caption="The components of an H100 and of a TPU v5p. They are similar, but the H100 divides them "
        f"over {SMS} small cores (SMs), each with its own memory, whereas the v5p has {V5P_CORES} "
        "large cores. (The areas of matrix units are to scale by FLOPs per cycle, and the bars of "
        "memories by bytes.)",
        parts=lambda wide: [_both(wide)] if wide > 400 else [_both(wide), Sketch(wide, 214, _one_sm(60, 8))],
    )


def _both(wide: float) -> Sketch:
    """Both chips; where there is room an SM of the one stands between them."""
    roomy = wide > 400
    left, right = 10.0, (wide - 170.0 if roomy else 172.0)
    shapes: list[Shape] = [*_h100(left), *_v5p(right)]
    if roomy:
        shapes += _one_sm(236, 26)
        shapes += [
            Arrow(x0=left + SIDE * ACROSS + 8, y0=y0, x1=236, y1=y1, heads=0, thick=1, dashed=True)
            for y0, y1 in ((24, 26), (24 + SIDE, 222))
        ]
    return Sketch(wide, 236, shapes)


def _h100(x: float) -> list[Shape]:
    half = [[MATH] * (ACROSS // 2)] * (SMS // ACROSS)
    high, down = SIDE * len(half), 24.0
    middle = SIDE * ACROSS / 2
    memories = (
        ("registers", SMS * REGISTERS, MEMORY),
        ("SMEM, L1", SMS * SMEM, MEMORY),
        ("L2", L2, CACHE),
    )
    shapes: list[Shape] = [
        Words(x=x, y=14, text=f"H100: {SMS} SMs", align="start", bold=True),
        Cells(x=x, y=down, rows=half, wide=SIDE, high=SIDE),
        Cells(x=x + middle + 8, y=down, rows=half, wide=SIDE, high=SIDE),
        *(_memory(x, down + high + 8 + 20 * k, *memory) for k, memory in enumerate(memories)),
    ]
    return shapes


def _v5p(x: float) -> list[Shape]:
    """Its matrix units, with areas by FLOPs per cycle on the scale of the SMs."""
    side = (SIDE - 2) * sqrt(per_cycle(V5P) / per_cycle(H100) / WARPS_AT_ONCE)
    pitch, core = side + 4, 2 * side + 14
    shapes: list[Shape] = [Words(x=x, y=14, text=f"TPU v5p: {V5P_CORES} cores", align="start", bold=True)]
    for k in range(V5P_CORES):
        at = x + k * (core + 8)
        shapes.append(Area(x=at, y=24, wide=core, high=core, color=None, shade=0.04))
        shapes += [
            Area(x=at + 5 + pitch * i, y=29 + pitch * j, wide=side, high=side, color=MATH, shade=0.45)
            for i in range(2)
            for j in range(2)
        ]
    return [
        *shapes,
        Words(x=x, y=46 + core, text="a square: one\n128 × 128 matrix unit", align="start", quiet=True),
        _memory(x, 164, "VMEM", VMEM, MEMORY),
    ]


def _memory(x: float, y: float, name: str, nbytes: float, color: int) -> Area:
    long = 0.5 * nbytes / MiB
    return Area(x=x, y=y, wide=long, high=14, color=color, right=f"{name} {nbytes / MiB:.0f} MiB")


def _one_sm(x: float, y: float) -> list[Shape]:
    """One SM, enlarged: four quarters above the memory that they share."""
    shapes: list[Shape] = [
        Area(x=x, y=y, wide=220, high=196, color=None, shade=0.03),
        Words(x=x + 110, y=y + 15, text="one SM", bold=True),
    ]
    for k in range(WARPS_AT_ONCE):
        left, top = x + 8 + 104 * (k % 2), y + 22 + 68 * (k // 2)
        registers = f"registers {REGISTERS / WARPS_AT_ONCE / KiB:.0f} KiB"
        shapes += [
            Area(x=left, y=top, wide=100, high=64, color=None, shade=0.05),
            Area(x=left + 3, y=top + 3, wide=94, high=20, text="Tensor Core", color=MATH, size=11),
            Cells(x=left + 4, y=top + 27, rows=[[EXPERTS] * (LANES // 2)] * 2, wide=4.6, high=7, air=1),
            Area(x=left + 81, y=top + 26, wide=16, high=15, text="S", color=IDLE, size=11),
            Area(x=left + 3, y=top + 44, wide=94, high=17, text=registers, color=MEMORY, size=11),
        ]
    shapes += [
        Area(
            x=x + 8,
            y=y + 160,
            wide=204,
            high=16,
            text=f"SMEM and L1, {SMEM / KiB:.0f} KiB",
            color=MEMORY,
            size=11,
        ),
        Words(x=x + 110, y=y + 190, text="squares: CUDA cores; S: scheduler", size=11, quiet=True),
    ]
    return shapes


def peak() -> Figure:
    """The four factors of an H100's peak, and the printed, dense and CUDA-core FLOPs/s as bars."""
    flops, sparse = H100.bf16_flops_per_s, 2 * H100.bf16_flops_per_s
    return Figure(
        key="gpus.peak",
        alt=f"Four factors, {SMS} SMs, four Tensor Cores per SM, 1,024 FLOPs per cycle and {si(CLOCK_HZ, 'Hz')}, give {si(flops, 'FLOPs/s')}. "
        f"Below, three bars: {si(sparse, 'FLOPs/s')} with sparsity, half of it hollow, {si(flops, 'FLOPs/s')} for dense matmuls, and a short bar of {si(LANES_FLOPS_PER_S, 'FLOPs/s')} for the CUDA cores.",
        caption="The peak of an H100 as a product of three counts and a clock. The datasheet's "
        f"{si(sparse, 'FLOPs/s')} is twice the dense peak, because it counts multiplications by zero that are "
        f"skipped. Outside of matmuls, an H100 performs at most {si(LANES_FLOPS_PER_S, 'FLOPs/s')}.",
        parts=lambda wide: [_factors(wide), _rates(wide)],
    )


def _factors(wide: float) -> Sketch:
    each = 2 ** round(log2(per_cycle(H100)))  # the figures are rounded, the unit is a power of two
    factors = (
        (f"{SMS}", "SMs"),
        (f"{TENSOR_CORES // SMS}", "Tensor Cores per SM"),
        (f"{each:,}", "FLOPs per cycle"),
        (si(CLOCK_HZ, "Hz"), "clock"),
    )
    columns = 4 if wide > 400 else 2
    pitch = wide / columns
    shapes: list[Shape] = []
    for k, (number, name) in enumerate(factors):
        x, y = pitch * (k % columns), 6 + 66.0 * (k // columns)
        shapes += [
            Area(x=x + 14, y=y, wide=pitch - 28, high=54, color=MATH, shade=0.2),
            Words(x=x + pitch / 2, y=y + 24, text=number, bold=True, size=16),
            Words(x=x + pitch / 2, y=y + 44, text=name, quiet=True),
        ]
        if k:
            shapes.append(Words(x=x if k % columns else 8, y=y + 32, text="×", size=16))
    return Sketch(wide, 6 + 66.0 * (len(factors) // columns), shapes)


def _rates(wide: float) -> Sketch:
    left, dense = 92.0, H100.bf16_flops_per_s
    long = (wide - left - 8) / 2
    lanes = long * LANES_FLOPS_PER_S / dense
    return Sketch(
        wide,
        108,
        [
            Area(x=left, y=4, wide=long, high=28, text=si(dense, "FLOPs/s"), color=MATH, left="sparse"),
            Area(
                x=left + long,
                y=4,
                wide=long,
                high=28,
                text="skipped zeros",
                color=IDLE,
                shade=0.05,
                dashed=True,
            ),
            Area(
                x=left, y=40, wide=long, high=28, color=MATH, text="= " + si(dense, "FLOPs/s"), left="dense"
            ),
            Area(
                x=left,
                y=76,
                wide=lanes,
                high=28,
                color=EXPERTS,
                right=si(LANES_FLOPS_PER_S, "FLOPs/s"),
                left="CUDA cores",
            ),
        ],
    )
