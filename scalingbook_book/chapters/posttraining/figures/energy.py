"""What belongs to the energy of a run, and what does a chip draw? Boxes within boxes, and measured watts."""

from scalingbook_book.chapters.posttraining.energy_of import LARGEST
from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.machines.energy import BOUNDARIES, energy
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


def watts(chip: str, what: str) -> dict[int, float]:
    """What a GPU of ours drew, by the sequences of a batch; words with caches of 1,024 tokens."""
    found = [row for row in resources.rows("own_power") if (row["chip"], row["what"]) == (chip, what)]
    return {int(row["B"] or 0): float(row["watts"]) for row in found if row["T"] in ("", "1024")}


def drawn() -> Figure:
    """Does a chip that waits for its memory draw less?"""
    alone, idle = (watts("H100", what) for what in ("words", "idle"))
    busy = [
        float(row["watts"])
        for row in resources.rows("own_power")
        if row["what"].startswith(("prompt", "training"))
    ]
    return Figure(
        key="posttraining.drawn",
        alt=f"Watts over the sequences of a batch, while a model of 8B parameters writes. An H100 rises from {alone[1]:.0f} alone to {alone[256]:.0f} W at 256, an H200 stays above it until both are near the limit; "
        f"dashed lines mark the limit of {H100.power_w} W and the {idle[0]:.0f} W of a GPU that does nothing.",
        caption=f"One user alone draws two thirds of the limit, though the Tensor Cores hardly work; a GPU that does nothing draws {idle[0]:.0f} W. Prompts and steps of training draw {min(busy):.0f} to {max(busy):.0f} W on either chip. "
        "(LLaMA 3 8B, bf16, caches of 1,024 tokens; mean of 3 s by the GPU's counter.)",
        parts=lambda _: [_watts(idle[0])],
    )


def _watts(idle: float) -> Chart:
    curves = []
    for chip, color in (("H100", MATH), ("H200", MEMORY)):
        found = watts(chip, "words")
        curves.append(Curve(chip, list(found), list(found.values()), color))
    return Chart(
        Scale("sequences of a batch", "", "pow2", high=256),
        Scale("drawn", "W", low=0, high=800),
        (RefLine("limit", H100.power_w or 0.0, axis="y"), RefLine("idle", idle, axis="y"), *curves),
    )
