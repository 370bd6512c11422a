"""Figures of warps: branch divergence, and how many warps fit on an SM."""

from scalingbook_book.chapters.gpus.figures.facts import REGISTERS
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Area, Brace, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.machines import occupancy
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.machines.occupancy import MOST_WARPS, WARP, Occupancy
from scalingbook_lib.units import KiB, percent

CHANCES = (0.001, 0.01, 0.1)
THE_ONE = 11  # the thread that takes the branch, as drawn
ASKED = (64, 65)  # registers of a thread


def diverges(p: float) -> float:
    """How often a warp runs both sides, if each thread takes the branch with probability p."""
    return 1 - p**WARP - (1 - p) ** WARP


def divergence() -> Figure:
    """A warp that diverges because of one thread, and how often that happens."""
    said = ", ".join(f"{percent(diverges(p))} for {p * 100:g}%" for p in CHANCES)
    return Figure(
        key="gpus.divergence",
        alt="A grid with 32 lanes across and time downward. At first all lanes work; then 31 work and one is idle; then that one works and 31 are "
        f"idle; then all work again. Below, bars show how often a warp runs both sides, by the probability for a thread: {said}.",
        caption="Warp divergence at a branch. If a single thread takes the branch, its warp has to run both "
        f"sides, and most of its {WARP} lanes wait. If one thread in a hundred takes the branch, "
        f"{percent(diverges(0.01))} of the warps run both sides. (In the grid, time runs downward.)",
        parts=lambda wide: [_lanes(wide), _chances(wide)],
    )


def _lanes(wide: float) -> Sketch:
    left, side = 122.0, (wide - 126) / WARP
    all_of_them = [MATH] * WARP
    others = [None if lane == THE_ONE else MATH for lane in range(WARP)]
    alone = [MATH if lane == THE_ONE else None for lane in range(WARP)]
    stretches = (
        ("before", [all_of_them] * 2),
        ("31 threads: one side", [others] * 3),
        ("1 thread: the other", [alone] * 3),
        ("after", [all_of_them] * 2),
    )
    shapes: list[Shape] = [Words(x=left, y=14, text=f"{WARP} lanes", align="start", quiet=True)]
    y, high = 22.0, 12.0
    for name, rows in stretches:
        shapes += [
            Cells(x=left, y=y, rows=rows, wide=side, high=high),
            Words(x=left - 8, y=y + high * len(rows) / 2 + 3, text=name, align="end", size=11),
        ]
        y += high * len(rows) + 5
    return Sketch(wide, y + 4, shapes)


def _chances(wide: float) -> Sketch:
    left = 122.0
    shapes: list[Shape] = [Words(x=left, y=14, text="warps that run both sides", align="start", quiet=True)]
    for k, p in enumerate(CHANCES):
        long, y = (wide - left - 50) * diverges(p), 22 + 24.0 * k
        often = f"1 in {round(1 / p):,} takes it"
        shapes += [
            Area(x=left, y=y, wide=long, high=18, color=MATH, right=percent(diverges(p))),
            Words(x=left - 8, y=y + 13, text=often, align="end", size=11),
        ]
    return Sketch(wide, 22 + 24.0 * len(CHANCES), shapes)


def tanks() -> Figure:
    """The register file of an SM with 64 and with 65 registers per thread."""
    held = [occupancy.occupancy(H100, threads=256, registers=n, smem_bytes=0) for n in ASKED]
    four, three = (each.blocks for each in held)
    return Figure(
        key="gpus.tanks",
        alt=f"Two register files of 65,536 registers. With {ASKED[0]} registers per thread, {four} blocks of eight warps fill the first. With {ASKED[1]}, which are allocated "
        f"as 72, {three} blocks fit into the second, and the space that is left is too small for another one.",
        caption="Blocks in the register file of one SM. A block fits completely or not at all. With "
        f"{ASKED[0]} registers per thread, {held[0].warps} of {MOST_WARPS} warps fit on an SM. With "
        "one register more, a thread is allocated 72, because registers come in units of eight. The last "
        f"block then no longer fits, and only {held[1].warps} warps run.",
        parts=lambda wide: [_tanks(wide, held)],
    )


def _tanks(wide: float, held: list[Occupancy]) -> Sketch:
    across = wide / 2
    shapes = [
        shape
        for k, (asked, each) in enumerate(zip(ASKED, held, strict=True))
        for shape in _tank(across * k + across / 2 - 65, asked, each)
    ]
    said = f"one SM: {REGISTERS // 4:,} registers, {REGISTERS / KiB:.0f} KiB"
    return Sketch(wide, 254, [*shapes, Words(x=wide / 2, y=248, text=said, quiet=True)])


def _tank(x: float, asked: int, each: Occupancy) -> list[Shape]:
    """The registers of one SM, the blocks that fit, and what is left above them."""
    file, y, high = REGISTERS / 4, 26.0, 168.0  # of four bytes
    block = 8 * WARP * -(-asked // 8) * 8  # allocated in multiples of eight
    tall = high * block / file
    shapes: list[Shape] = [Words(x=x + 65, y=16, text=f"{asked} registers/thread", bold=True)]
    for i in range(each.blocks):
        named = f"block {i + 1}\n{block:,}"
        top = y + high - tall * (i + 1)
        shapes.append(Area(x=x, y=top, wide=130, high=tall - 3, color=MEMORY, text=named))
    rest = high - tall * each.blocks
    if rest > 1:
        left = f"{file - block * each.blocks:,.0f} left"
        shapes.append(Area(x=x, y=y, wide=130, high=rest - 3, color=IDLE, shade=0.05, dashed=True, text=left))
    return [*shapes, Brace(x0=x, x1=x + 130, y=y + high + 4, text=f"{each.warps} of {MOST_WARPS} warps")]
