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
        alt=f"Three bars on one scale with the energy of the run of Llama 3.1 405B, each with what it adds to the one before. {said}.",
        caption=f"Energy of one training run, counted at the chips, the nodes and the site. It is {told[0]}, "
        f"{told[1]} or {told[2]}, depending on what is included. (Llama 3.1 405B, "
        f"{count_in_words(LARGEST.chip_hours)} H100 hours at 700 W. To scale; each bar adds its last part.)",
        parts=lambda wide: [_added(wide, [one.joules for one in counted], told)],
    )


def _added(wide: float, joules: list[float], told: list[str]) -> Sketch:
    """A bar for each boundary: what the narrower one counts, pale, and what this one adds."""
    shapes: list[Shape] = []
    unit, before = (wide - 90) / max(joules), 0.0
    for k, (name, energy_j, wh) in enumerate(zip(NAMES, joules, told, strict=True)):
        y = 54.0 * k
        shapes.append(Words(x=4, y=y + 14, text=name, align="start"))
        if before:
            shapes.append(Area(x=4, y=y + 20, wide=before * unit, high=24, color=MATH, shade=0.15))
        added = (energy_j - before) * unit
        shapes.append(Area(x=4 + before * unit, y=y + 20, wide=added, high=24, color=MATH, shade=0.6))
        shapes.append(Words(x=12 + energy_j * unit, y=y + 37, text=wh, align="start", bold=True))
        before = energy_j
    return Sketch(wide, 54.0 * len(NAMES), shapes)


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
