"""What belongs to the energy of a run? Boxes within boxes."""

from scalingbook_lib.chapters.posttraining.energy_of import LARGEST
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.machines.energy import BOUNDARIES, energy
from scalingbook_lib.reader.figures.figure import Figure
from scalingbook_lib.reader.figures.shapes import MATH, Area, Shape, Words
from scalingbook_lib.reader.figures.sketch import Sketch
from scalingbook_lib.units import si

NAMES = ("chips, at their most", "nodes: hosts, network cards, fans", "site: cooling, transformers")


def boundaries() -> Figure:
    """Which energy is meant?"""
    counted = [energy(H100, LARGEST.chip_hours * 3600, b) for b in BOUNDARIES]
    told = [si(one.joules / 3600, "Wh") for one in counted]
    said = "; ".join(f"{name}: {wh}" for name, wh in zip(NAMES, told, strict=True))
    return Figure(
        key="posttraining.boundaries",
        alt=f"Three boxes, one within the other, for the hours of the 405B run. {said}.",
        caption=f"One run, three energies: {told[0]}, {told[1]} or {told[2]}, by what belongs to the count. (LLaMA 3.1 405B, "
        f"{si(LARGEST.chip_hours)} H100-hours at 700 W.)",
        parts=lambda wide: [_nested(wide, told)],
    )


def _nested(wide: float, told: list[str]) -> Sketch:
    shapes: list[Shape] = []
    for k, (name, wh) in enumerate(reversed(list(zip(NAMES, told, strict=True)))):
        pad, top = 4 + 14.0 * k, 4 + 48.0 * k
        shapes.append(Area(x=pad, y=top, wide=wide - 2 * pad, high=196 - top - 14 * k, color=MATH, shade=0.1))
        shapes.append(Words(x=pad + 10, y=top + 20, text=name, align="start"))
        shapes.append(Words(x=pad + 10, y=top + 38, text=wh, align="start", bold=True))
    return Sketch(wide, 204, shapes)
