"""Figures of the parts of a TPU v5e, and of how often each number from HBM has to be used there."""

from math import sqrt

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, NETWORK, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline
from scalingbook_lib.machines import systolic
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import BF16, binary, si

PEAK, RATES, VMEM = systolic.peak_of(V5E), roofline.levels(V5E), binary(V5E.vmem_bytes or 0)
FLOPS = PEAK.flops_per_cycle
BYTES = V5E.hbm_bytes_per_s / PEAK.clock_hz  # in one cycle
NUMBERS = int(BYTES / BF16.bytes)
EACH = round(FLOPS / (BYTES / BF16.bytes))


def cycle() -> Figure:
    """One cycle of the clock: what is done, and what arrives."""
    return Figure(
        key="tpus.cycle",
        alt=f"Two squares drawn to scale. A tiny one stands for the {NUMBERS} numbers that HBM delivers in one cycle, "
        f"a large one for the {FLOPS:,} FLOPs of that cycle. An arrow between them says: {EACH} FLOPs each.",
        caption=f"One cycle of a TPU v5e, with areas to scale. To keep the chip busy, every number that arrives has to "
        f"be used in {EACH} operations.",
        parts=lambda wide: [_cycle(wide)],
    )


def _cycle(wide: float) -> Sketch:
    side = 190.0
    tiny = side * sqrt(1 / EACH)
    left, right = wide * 0.17, wide - side - (90 if wide > 400 else 8)
    middle = 8 + side / 2
    return Sketch(
        wide,
        side + 16,
        [
            Area(x=left - tiny / 2, y=middle - tiny / 2, wide=tiny, high=tiny, color=MEMORY, shade=0.9),
            Words(x=left, y=middle - 34, text="HBM delivers", bold=True),
            Words(x=left, y=middle + 28, text=f"{int(BYTES)} bytes:\n{NUMBERS} numbers"),
            Arrow(x0=left + 12, y0=middle, x1=right - 6, y1=middle, color=MEMORY),
            Words(
                x=(left + right) / 2 + 6,
                y=middle - 10,
                text=f"used in {EACH} FLOPs each" if wide > 400 else f"× {EACH}",
            ),
            Area(x=right, y=8, wide=side, high=side, color=MATH, text=f"{FLOPS:,}\nFLOPs", bold=True),
        ],
    )


def chip() -> Figure:
    """The floor plan of a TPU, and the path of a number through it."""
    return Figure(
        key="tpus.chip",
        alt=f"A plan of a TPU v5e. On top, off the die, {binary(V5E.hbm_bytes)} of HBM, the links and PCIe. "
        f"Below, on the die: {VMEM} of VMEM, then the vector registers, then the units: four matrix units, "
        "the vector unit, the cross-lane unit, and the scalar core with its SMEM. Arrows 1 to 3 lead down "
        "from HBM to the units, 4 and 5 back up.",
        caption="The parts of a TPU v5e. Every number takes the same path: it is copied to VMEM (1), loaded into a register "
        "(2), used by the units (3), and written back (4, 5). Each step is an explicit instruction.",
        parts=lambda wide: [_plan(wide)],
    )


def _plan(wide: float) -> Sketch:
    """Memories one below the other, the units under them, the links at the edge."""
    roomy, off = wide > 400, wide - 2
    high = 292 if roomy else 308
    shapes: list[Shape] = [
        Area(x=1, y=58, wide=off - 1, high=high, color=IDLE, shade=0.03, dashed=True),
        Words(x=off - 8, y=84, text="on the die", align="end", quiet=True),
        *_edge(off),
        *_ways(),
        *_units(off, roomy),
    ]
    for y, text, share in ((96, f"VMEM, {VMEM}", 0.45), (180, "vector registers", 0.2)):
        shapes.append(
            Area(x=20, y=y, wide=off - 40, high=34, text=text, color=MEMORY, shade=share, bold=True)
        )
    return Sketch(wide, 62 + high, shapes)


def _edge(off: float) -> list[Shape]:
    """HBM, the links and PCIe, which are not on the die."""
    links = f"ICI\n{V5E.links} × {si(V5E.link_bytes_per_s, 'B/s')}", f"PCIe\n{si(RATES['PCIe'], 'B/s')}"
    half, quarter = off / 2, off / 4
    return [
        Area(x=1, y=2, wide=half - 8, high=40, text="HBM, " + binary(V5E.hbm_bytes), color=MEMORY, size=12),
        *(
            Area(x=1 + half + quarter * k, y=2, wide=quarter - 8, high=40, text=text, color=NETWORK, size=12)
            for k, text in enumerate(links)
        ),
    ]


def _ways() -> list[Shape]:
    """The five stations of a number, arrows wider where the rate is higher."""
    shapes: list[Shape] = [
        Arrow(x0=54, y0=216, x1=54, y1=244, thick=7),
        Words(x=34, y=234, text="3", bold=True),
    ]
    steps = (
        (42, 96, "1", "5", si(RATES["HBM"], "B/s"), 2.4),
        (130, 180, "2", "4", f"about {si(RATES['VMEM'], 'B/s')}", 7.0),
    )
    for top, end, down, up, rate, thick in steps:
        middle = (top + end) / 2 + 5 + 10 * (top < 60)  # below the edge of the die
        shapes += [
            Arrow(x0=54, y0=top + 2, x1=54, y1=end - 1, thick=thick),
            Arrow(x0=150, y0=end - 2, x1=150, y1=top + 1, thick=thick),
            Words(x=34, y=middle, text=down, bold=True),
            Words(x=130, y=middle, text=up, bold=True),
            Words(x=170, y=middle, text=rate, align="start"),
        ]
    return shapes


def _units(off: float, roomy: bool) -> list[Shape]:
    """Squares for the matrix units, and what stands beside them."""
    side, abreast = (56.0, PEAK.units) if roomy else (30.0, 2)
    right = 20 + (side + 4) * abreast
    under = f"{PEAK.units} MXUs" + f" of {PEAK.side} × {PEAK.side}" * roomy
    x, y, wide = (right + 190, 252.0, off - right - 206) if roomy else (right + 16, 310.0, off - right - 32)
    return [
        *(
            Area(
                x=20 + (side + 4) * (k % abreast),
                y=248 + (side + 4) * (k // abreast),
                wide=side,
                high=side,
                color=MATH,
                text="MXU" * roomy,
            )
            for k in range(PEAK.units)
        ),
        Words(x=20, y=326 if roomy else 330, text=under, align="start"),
        Area(x=right + 16, y=252, wide=90, high=24, color=MATH, text="VPU", below="8 × 128", shade=0.2),
        Area(x=right + 126, y=252, wide=44, high=24, color=MATH, text="XLU", shade=0.2),
        Area(x=x, y=y, wide=wide, high=40, color=IDLE, text="scalar core\n+ SMEM"),
    ]
