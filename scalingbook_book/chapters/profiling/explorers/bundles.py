"""Explorer of a kernel's bundles: which units work at the same time, and where the matrix units idle."""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib.evidence.compiled.bundles import KERNELS, STRIPS, UNITS, Kernel
from scalingbook_lib.units import count, percent

_FIRST = next(iter(KERNELS))


def _bundles(*, program: str, strip: int) -> View:
    kernel = KERNELS[program]
    here = strip - 1
    start = here * kernel.bundles // STRIPS
    idle = [k for k in range(STRIPS) if kernel.strip_utilization("MATMUL", k) < 0.01]
    return View(
        _verdict(kernel, here),
        (_heat(kernel, here), _units(kernel, here, start)),
        (
            Readout("bundles", kernel.bundles, "", count(kernel.bundles)),
            Readout.percent("MATMUL slots used", kernel.utilization("MATMUL")),
            Readout("strips without MATMUL", len(idle), "", f"{len(idle)} of {STRIPS}"),
            Readout("busiest unit", kernel.utilization(kernel.busiest), "", kernel.busiest),
            Readout.percent("slots of this unit used", kernel.utilization(kernel.busiest)),
        ),
    )


def _heat(kernel: Kernel, here: int) -> Grid:
    """A row for every unit, a column for every strip; the selected strip has another color."""
    cells = [
        [_cell(kernel.strip_utilization(unit, k), 1 if k == here else 0) for k in range(STRIPS)]
        for unit in kernel.used
    ]
    title = "Slots used, from the first bundle to the last (stronger color: more)"
    return Grid(title, [_short(unit) for unit in kernel.used], (), cells)


def _cell(share: float, color: int) -> Cell:
    """No color where a unit is idle; shades in steps of an eighth, so that equal neighbors merge."""
    return Cell("", color, level=0.15 + 2 * round(8 * share) / 8) if share >= 0.01 else Cell()


def _short(unit: str) -> str:
    """SPILL for VSTORE:SPILL, which is a part of VSTORE."""
    return unit.rpartition(":")[2]


def _units(kernel: Kernel, here: int, start: int) -> Bars:
    units = [unit for unit in kernel.used if kernel.utilization(unit)]
    labels = [f"{_short(unit)}, {UNITS[unit]}" for unit in units]
    now = [100 * kernel.strip_utilization(unit, here) for unit in units]
    whole = [100 * kernel.utilization(unit) for unit in units]
    title = f"Bundles {start:,} to {start + kernel.size(here) - 1:,} and the whole kernel"
    series = (Series("this strip", now, 1), Series("whole kernel", whole, 5))
    return Bars(Scale("slots used", "%", high=100), labels, series, title=title)


def _verdict(kernel: Kernel, here: int) -> str:
    matmul, push = kernel.strip_utilization("MATMUL", here), kernel.strip_utilization("MATPUSH", here)
    used, pushed = kernel.utilization("MATMUL"), kernel.utilization("MATPUSH")
    if not used:
        rest = " and ".join(
            f"{percent(kernel.utilization(unit))} of the {unit} slots" for unit in ("VALU", "EUP")
        )
        return f"The matrix units are idle from the first bundle to the last. This kernel uses {rest}."
    if pushed > used:
        slots = f"{percent(pushed)} of MATPUSH against {percent(used)} of MATMUL"
        few = "each tile of weights multiplies only a few rows"
        return f"Loading the weights takes more slots than using them, {slots}, because {few}."
    if push > matmul:
        said = f"weights are loaded (MATPUSH {percent(push)}) before rows follow (MATMUL {percent(matmul)})"
        return f"The start: {said}. Every kernel pays this cost once, however long it runs."
    if matmul < 0.6:
        return (
            f"The end: the last rows leave the matrix units and are stored. {percent(matmul)} of the "
            "MATMUL slots are used."
        )
    beside = [unit for unit in ("EUP", "VALU", "VSTORE") if kernel.strip_utilization(unit, here) >= 0.05]
    free = "so what follows the matmul needs no bundles of its own"
    return f"{percent(matmul)} of the MATMUL slots are used, and {_listed(beside)} the same bundles, {free}."


def _listed(units: list[str]) -> str:
    if not units:
        return "nothing else uses"
    *most, last = units
    return f"{', '.join(most)} and {last} work in" if most else f"{last} works in"


BUNDLES = Explorer(
    key="profiling.bundles",
    title="LLO bundles: which unit works when",
    question="Where in a kernel are the matrix units idle, and which other units work while they are busy?",
    controls={
        "program": Choice("kernel", tuple(KERNELS), _FIRST),
        "strip": Slider("strip of the kernel", 1, STRIPS, 12),
    },
    view=_bundles,
)
