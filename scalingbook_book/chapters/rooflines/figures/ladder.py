"""Figure of the memories and links of a chip as pipes, with the ridge of each."""

from math import floor, log10

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines.chips import V5E
from scalingbook_lib.units import si

RATES = roofline.levels(V5E)
RIDGES = {level: rules.ridge(V5E, bytes_per_s=rate) for level, rate in RATES.items()}
WHERE = {
    "VMEM": "memory on the die",
    "HBM": "memory in the package",
    "ICI": "neighboring chips, one ring",
    "PCIe": "the host",
    "DCN": "the data center",
}


def _whole(ridge: float) -> str:
    """Ridge as a whole number; halves are rounded up, as in the text: 12,312.5 is 12,313."""
    return f"{floor(ridge + 0.5):,}"


def ladder() -> Figure:
    """Bandwidths and ridges of VMEM, HBM, ICI, PCIe and DCN on a v5e."""
    said = ", ".join(
        f"{level} {si(rate, 'B/s')}, ridge {_whole(RIDGES[level])}" for level, rate in RATES.items()
    )
    return Figure(
        key="rooflines.ladder",
        alt=f"Five pipes into the matrix unit of a TPU v5e, each narrower than the one before: {said}.",
        caption="Bandwidth and ridge point of each memory and link of a TPU v5e. The farther away the bytes "
        "come from, the lower the bandwidth and the higher the ridge point, in FLOPs per byte. (The widths "
        "of the pipes are logarithmic.)",
        parts=lambda wide: [_pipes(wide)],
    )


def _pipes(wide: float) -> Sketch:
    """A pipe for each level, as thick as the logarithm of its bandwidth, with its ridge."""
    room, step = wide > 400, 54.0
    left, right = (236.0, wide - 150) if room else (58.0, wide - 92)
    shapes: list[Shape] = [
        Area(x=right, y=24, wide=28, high=step * len(RATES) - 4, color=MATH, text="M\nX\nU", bold=True),
        Words(x=wide - 2, y=14, text="ridge (FLOPs per byte)" if room else "ridge", align="end", quiet=True),
    ]
    for k, (level, rate) in enumerate(RATES.items()):
        y, thick = 24 + step * (k + 0.46), 9 * log10(rate / 1e9) - 2
        color, rate_said = MEMORY if level in ("VMEM", "HBM") else NETWORK, si(rate, "B/s")
        shapes += [
            Area(x=left, y=y - thick / 2, wide=right - left, high=thick, color=color),
            Words(x=left - 8, y=y + 4.5, text=level, align="end", bold=True),
            Words(x=wide - 2, y=y + 4.5, text=_whole(RIDGES[level]), align="end", bold=True),
            Words(x=(left + right) / 2, y=y + (4.5 if thick > 15 else 20), text=rate_said),
        ]
        if room:
            shapes.append(Words(x=2, y=y + 4.5, text=WHERE[level], align="start", quiet=True))
    return Sketch(wide, 30 + step * len(RATES), shapes)
