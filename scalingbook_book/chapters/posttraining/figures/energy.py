"""Figures of energy: what counts as the energy of a run, and the measured power of a chip."""

from scalingbook_book.chapters.posttraining.energy_of import LARGEST
from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.evidence import resources
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.machines.energy import BOUNDARIES, energy
from scalingbook_lib.units import count_in_words, si

NAMES = ("chips at maximum power", "nodes: plus hosts, NICs, fans", "site: plus cooling, power conversion")


def boundaries() -> Figure:
    """The energy of one run, by what is counted."""
    counted = [energy(H100, LARGEST.chip_hours * 3600, b) for b in BOUNDARIES]
    told = [si(one.joules / 3600, "Wh") for one in counted]
    said = "; ".join(f"{name}: {wh}" for name, wh in zip(NAMES, told, strict=True))
    return Figure(
        key="posttraining.boundaries",
        alt=f"Three nested boxes with the energy of the run of Llama 3.1 405B. {said}.",
        caption=f"Energy of one training run, counted at the chips, the nodes and the site. It is {told[0]}, "
        f"{told[1]} or {told[2]}, depending on what is included. (Llama 3.1 405B, "
        f"{count_in_words(LARGEST.chip_hours)} H100 hours at 700 W; boxes not to scale.)",
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
    """Measured watts while decoding with 1,024 cached tokens per sequence, by batch size."""
    found = [row for row in resources.rows("own_power") if (row["chip"], row["what"]) == (chip, what)]
    return {int(row["B"] or 0): float(row["watts"]) for row in found if row["T"] in ("", "1024")}


def drawn() -> Figure:
    """Measured power against the batch size while decoding."""
    alone, idle = (watts("H100", what) for what in ("words", "idle"))
    busy = [
        float(row["watts"])
        for row in resources.rows("own_power")
        if row["what"].startswith(("prompt", "training"))
    ]
    return Figure(
        key="posttraining.drawn",
        alt=f"Power in watts against the batch size, while a model with 8B parameters decodes. An H100 rises from {alone[1]:.0f} W for one sequence to {alone[256]:.0f} W for 256. An H200 stays above it until both approach the limit. "
        f"Dashed lines mark the limit of {H100.power_w} W and the {idle[0]:.0f} W of an idle GPU.",
        caption="Measured power of two GPUs against the batch size while decoding. With a single user, a GPU "
        "draws two thirds of its limit, although its Tensor Cores are almost idle; a GPU without work "
        f"draws {idle[0]:.0f} W. Prefill and training draw {min(busy):.0f} to {max(busy):.0f} W on either "
        "chip. (Llama 3 8B, bf16, 1,024 cached tokens per sequence; averaged over 3 s by the GPU's "
        "own counter.)",
        parts=lambda _: [_watts(idle[0])],
    )


def _watts(idle: float) -> Chart:
    curves = []
    for chip, color in (("H100", MATH), ("H200", MEMORY)):
        found = watts(chip, "words")
        curves.append(Curve(chip, list(found), list(found.values()), color))
    return Chart(
        Scale("batch size in sequences", "", "pow2", high=256),
        Scale("power", "W", low=0, high=800),
        (RefLine("limit", H100.power_w or 0.0, axis="y"), RefLine("idle", idle, axis="y"), *curves),
    )
