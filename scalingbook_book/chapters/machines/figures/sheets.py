"""Figures of six numbers of a chip, of every machine as a point, and of the sizes of scale-up domains."""

from math import ceil, sqrt

from scalingbook_book.chapters.machines.case import fastest_type
from scalingbook_book.reader.explorers.view import Chart, Curve, Points, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import key
from scalingbook_book.reader.figures.shapes import (
    EXPERTS,
    IDLE,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.units import FP8, count, si

RUBIN = rules.ChipRatios(chips.RUBIN, FP8)


def six() -> Figure:
    """Which six numbers describe a machine?"""
    chip = RUBIN.chip
    return Figure(
        key="machines.six",
        alt=f"A box for a chip that performs {si(RUBIN.flops_per_s, 'FLOPs/s')}, connected to a box for its memory. One arrow leads into a domain of {chip.domain_chips} chips, another into the network. "
        f"The ratios are {RUBIN.ridge:.0f} FLOPs per byte of memory traffic and {count(RUBIN.balance)} per byte into the domain.",
        caption="NVIDIA's Rubin, as announced, in six numbers, with the compute rate in fp8. Their ratios "
        f"are what matters: the ridge point ({RUBIN.ridge:.0f}), the time to read the memory once "
        f"({si(RUBIN.hbm_read_time_s, 's')}), and the FLOPs per byte that leaves the chip "
        f"({count(RUBIN.balance)}).",
        parts=lambda wide: [_six(wide)],
    )


def _six(wide: float) -> Sketch:
    chip, narrow = RUBIN.chip, wide < 400
    box = 96.0 if narrow else 170.0
    right, gap = wide - box - 2, wide - 2 * box - 4
    out = [
        (f"W = {si(RUBIN.scale_up_bytes_per_s, 'B/s')}", f"domain of\n{chip.domain_chips} chips", 30.0),
        (si(chip.dcn_bytes_per_s or 0, "B/s"), "network", 122.0),
    ]
    shapes: list[Shape] = [
        Area(x=2, y=22, wide=box, high=66, text=f"{si(chip.hbm_bytes, 'B')}\n{chip.memory}", color=MEMORY),
        Area(x=2, y=112, wide=box, high=66, text=f"C = {RUBIN.flops_per_s / 1e15:g}\nPFLOPs/s", color=MATH),
        Arrow(x0=2 + box / 2, y0=88, x1=2 + box / 2, y1=112, color=MEMORY, thick=5),
        Words(x=box + 10, y=104, text=si(chip.hbm_bytes_per_s, "B/s"), align="start", color=MEMORY),
        Words(x=2, y=200, text=f"power: at most {chip.power_w:,.0f} W", align="start", quiet=True),
    ]
    for k, (rate, name, y) in enumerate(out):
        shapes.append(Area(x=right, y=y, wide=box, high=56, text=name, color=NETWORK, shade=0.3 - 0.2 * k))
        shapes.append(Arrow(x0=box + 4, y0=140 + 16 * k, x1=right, y1=y + 28, color=NETWORK, thick=5 - 3 * k))
        place = 60 if k == 0 else 176
        shapes.append(Words(x=2 + box + gap / 2, y=place, text=rate, color=NETWORK))
    return Sketch(wide, 206, shapes)


FAMILIES = {
    "TPUs": (chips.V5E, chips.V5P, chips.TPU7X, chips.TPU8T, chips.TPU8I),
    "NVIDIA": (chips.A100, chips.H100, chips.GB300, chips.RUBIN),
    "AMD, AWS, Intel": (chips.MI300X, chips.MI355X, chips.MI455X, chips.TRAINIUM3, chips.GAUDI3),
    "SRAM-based, desktop": (chips.GROQ3, chips.WSE3, chips.DGX_SPARK),
}
RIDGES = (10, 100, 1000)


def ridges() -> Figure:
    """What are the memory bandwidth and the compute rate of every machine?"""
    said = "; ".join(
        f"{c.name} {count(rules.ChipRatios(c, fastest_type(c)).ridge)} in {fastest_type(c)}"
        for row in FAMILIES.values()
        for c in row
    )
    return Figure(
        key="machines.ridges",
        alt=f"A scatter plot of compute rate against memory bandwidth, with logarithmic axes and dashed diagonals for ridge points of {', '.join(map(str, RIDGES))}. {said}.",
        caption="Compute rate against memory bandwidth, for each machine in the data type with its highest "
        "rate. Along a diagonal, the ridge point is constant. With narrower types, the ridge "
        "points of machines with HBM have risen from 150 to 1,900 FLOPs per byte. SRAM-based "
        "machines are far to the right, below 10.",
        parts=lambda wide: [_families(wide), _ridges(wide)],
    )


def _families(wide: float) -> Sketch:
    """The color of each family."""
    shapes, end = key(wide, 2, dict(enumerate(FAMILIES)))
    return Sketch(wide, end, shapes)


def _ridges(wide: float) -> Chart:
    lines = [Curve(f"ridge {r:,}", [2e11, 3e16], [2e11 * r, 3e16 * r], IDLE, dashed=True) for r in RIDGES]
    points = [
        Points(
            name,
            [c.hbm_bytes_per_s for c in row],
            [rules.ChipRatios(c, fastest_type(c)).flops_per_s for c in row],
            [c.name if c in NAMED or (wide > 400 and c in MORE) else "" for c in row],
            color,
        )
        for color, (name, row) in enumerate(FAMILIES.items())
    ]
    return Chart(
        Scale("memory bandwidth", "B/s", "log", 2e11, 3e16),
        Scale("compute rate", "FLOPs/s", "log", 1e14, 3e17),
        (*lines, *points),
    )


NAMED = (chips.WSE3, chips.GROQ3, chips.DGX_SPARK, chips.A100)
MORE = (chips.RUBIN, chips.TPU8T, chips.V5E, chips.V5P, chips.TPU7X, chips.MI455X)

DOMAINS = (chips.MI355X, chips.TRAINIUM2, chips.TRAINIUM3, chips.RUBIN, chips.TPU8I, chips.TPU8T)


def size(chip: Chip) -> int:
    """Number of chips that are connected at full speed."""
    return chip.torus.pod_chips if chip.torus else chip.domain_chips or 1


def _kind(chip: Chip) -> str:
    if chip.torus:
        return "torus"
    return "mesh" if chip.full_mesh else "switches"


def domains() -> Figure:
    """How large is the scale-up domain of each machine?"""
    said = "; ".join(f"{c.name} {size(c):,} ({_kind(c)})" for c in DOMAINS)
    return Figure(
        key="machines.domains",
        alt=f"A square of cells for each machine, with one cell per chip, all to the same scale. {said}.",
        caption="Scale-up domains: the chips that are connected at full speed, with one cell for each (to "
        "scale; on a phone, TPU 8t has its own scale). A pair of chips can use a seventh of a chip's links in a full mesh of eight, and "
        "all of them through switches. In a torus, a chip has links only to its neighbors. TPU 8i "
        "has no axes: its Boardfly network connects any two chips in at most seven hops.",
        parts=lambda wide: [_domains(wide)],
    )


def _domains(wide: float) -> Sketch:
    sides = [ceil(sqrt(size(c))) for c in DOMAINS]
    narrow = wide < 400
    cell = (wide - 60) / sum(sides[:-1]) if narrow else (wide - 360) / sum(sides[-2:])
    shapes: list[Shape] = []
    x, top, high = 4.0, 62.0, 0.0
    for chip, side in zip(DOMAINS, sides, strict=True):
        if narrow and chip is DOMAINS[-1]:
            shapes.append(Words(x=4, y=top + high + 20, text=_told(chip), align="start"))
            x, top, cell = 4.0, top + high + 30, (wide - 8) / side
        rows = [[_color(chip)] * min(side, size(chip) - side * r) for r in range(ceil(size(chip) / side))]
        shapes.append(Cells(x=x, y=top, rows=rows, wide=cell, high=cell, air=cell / 5))
        high = max(high, side * cell)
        if not narrow:
            middle = x + max(side * cell, 54) / 2
            left = middle - side * cell / 2
            shapes[-1] = Cells(x=left, y=top, rows=rows, wide=cell, high=cell, air=cell / 5)
            shapes.append(Words(x=middle, y=top - 42, text=f"{chip.name}\n{size(chip):,}\n{_kind(chip)}"))
        x += max(side * cell, 14 if narrow else 54) + (11 if narrow else 24)
    return Sketch(wide, top + high + 4, shapes + (_names() if narrow else []))


def _color(chip: Chip) -> int:
    return {"torus": MEMORY, "mesh": EXPERTS, "switches": NETWORK}[_kind(chip)]


def _names() -> list[Shape]:
    told = [_told(chip) for chip in DOMAINS]
    return [
        Words(x=4, y=14, text=",\n".join((", ".join(told[:2]), told[2], ", ".join(told[3:5]))), align="start")
    ]


def _told(chip: Chip) -> str:
    return f"{chip.name} {size(chip):,} ({_kind(chip)})"
