"""Figures of mixtures of experts: experts on GPUs before and after EPLB, and models by sparsity and width."""

from random import Random

from scalingbook_book.reader.explorers.view import Chart, Points, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import EXPERTS, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import Experts, Transformer
from scalingbook_lib.steps.expert_load import placed, replicated, zipf_loads
from scalingbook_lib.units import FP8

GPUS, PER_GPU, SKEW, SEED = 8, 4, 0.6, 3
HIGH, TALLEST = 150.0, 1.3  # of a drawing, in units and over the tallest column
FRONTIER = {  # names on the map and in the table of the page
    "Mixtral 8x22B": "Mixtral 8x22B",
    "DeepSeek-V3": "DeepSeek-V3",
    "DeepSeek-V4-Pro": "DeepSeek-V4-Pro",
    "Kimi K2": "Kimi K2",
    "GLM-4.5": "GLM-4.5",
    "GLM-5": "GLM-5",
    "Qwen3 235B-A22B": "Qwen3 235B",
    "Qwen3.5 397B-A17B": "Qwen3.5 397B",
    "MiniMax-M2.5": "MiniMax-M2.5",
    "gpt-oss 120B": "gpt-oss 120B",
    "Llama 4 Maverick": "Maverick",
}


def frontier() -> tuple[Transformer, ...]:
    """Return the models of the map, in the order of their sparsity E/k."""
    return tuple(sorted(map(models.find, FRONTIER), key=lambda m: m.sparsity))


def experts(model: Transformer) -> Experts:
    """Return the experts of a model that has some."""
    if model.experts is None:
        raise ValueError(f"{model.name} has no experts")
    return model.experts


def columns(redundant: int) -> list[list[float]]:
    """Return the loads of the slots of each GPU over the mean load of a GPU."""
    loads = [load / PER_GPU for load in zipf_loads(GPUS * PER_GPU, SKEW)]
    if redundant:
        return placed(replicated(loads, redundant), GPUS)
    Random(SEED).shuffle(loads)
    return [loads[i : i + PER_GPU] for i in range(0, len(loads), PER_GPU)]


def slots() -> Figure:
    """What is the load of each GPU, with the experts as they are numbered, and with one replica more each?"""
    before, after = columns(0), columns(GPUS)
    worst, best = (max(map(sum, held)) for held in (before, after))
    return Figure(
        key="transformers.slots",
        alt=f"Two bar charts of eight GPUs; each bar is stacked from the loads of its experts. As numbered, "
        f"the GPU with the hottest expert reaches {worst:.2g} times the mean, and most are below it. With "
        f"EPLB, the hottest expert has replicas on several GPUs, and all bars end at {best:.3g} times the "
        "mean.",
        caption=f"Loads of eight GPUs with {GPUS * PER_GPU} experts of a Zipf histogram (exponent {SKEW}). "
        "Each box is an expert, as high as its load; the hottest one and its replicas are orange. First chart: "
        f"in the order of the model, all GPUs wait for the one at {worst:.2g} times the mean. Second chart: "
        "EPLB gives each GPU one redundant expert and packs all of them, and the busiest GPU is at "
        f"{best:.3g} times the mean. (Bars are to scale; the numbers are GPUs.)",
        parts=lambda wide: _side_by_side(wide, before, after),
    )


def _side_by_side(wide: float, before: list[list[float]], after: list[list[float]]) -> list[Sketch]:
    pictures = ((before, f"{PER_GPU} experts per GPU"), (after, f"EPLB, {PER_GPU + 1} per GPU"))
    if wide < 600:
        return [Sketch(wide, HIGH + 46, _bars(10, wide - 20, held, title)) for held, title in pictures]
    half = wide / 2
    shapes = [
        shape
        for k, (held, title) in enumerate(pictures)
        for shape in _bars(10 + half * k, half - 20, held, title)
    ]
    return [Sketch(wide, HIGH + 46, shapes)]


def _bars(x: float, across: float, held: list[list[float]], title: str) -> list[Shape]:
    unit = HIGH / max(max(map(sum, columns(0))), TALLEST)
    step, floor = across / GPUS, HIGH + 26
    hottest = _hottest(held)
    shapes: list[Shape] = [Words(x=x, y=16, text=title, align="start", bold=True)]
    for k, loads in enumerate(held):
        y = floor
        for load in sorted(loads, reverse=True):
            y -= load * unit
            hot = abs(load / hottest - 1) < 1e-9
            color = MATH if hot else EXPERTS
            shapes.append(
                Area(
                    x=x + step * k + 3,
                    y=y,
                    wide=step - 6,
                    high=load * unit,
                    color=color,
                    shade=0.7 if hot else 0.25,
                )
            )
        shapes.append(Words(x=x + step * (k + 0.5), y=floor + 15, text=f"{k}", quiet=True))
    mean = floor - unit
    shapes.append(Arrow(x0=x, y0=mean, x1=x + across, y1=mean, heads=0, dashed=True, thick=1.2))
    shapes.append(Words(x=x + across, y=16, text="dashed: mean load", align="end", quiet=True))
    return shapes


def _hottest(held: list[list[float]]) -> float:
    """The load of one replica of the hottest expert: the whole, or 1/n of it where n slots have that much."""
    whole, every = max(map(max, columns(0))), [load for loads in held for load in loads]
    return next(
        whole / n
        for n in range(1, len(every))
        if sum(abs(load * n / whole - 1) < 1e-9 for load in every) == n
    )


def sparsity_map() -> Figure:
    """Which models have experts that are wide enough to hide the all-to-all inside a domain?"""
    shown = frontier()
    ys = [float(experts(m).F) for m in shown]
    labels: dict[tuple[float, float], str] = {}
    for m, F in zip(shown, ys, strict=True):  # DeepSeek-V3 and GLM-5 have the same experts
        there = labels.get((m.sparsity, F))
        labels[m.sparsity, F] = f"{there}, {FRONTIER[m.name]}" if there else FRONTIER[m.name]
    lines = {chip.name: rules.ChipRatios(chip, FP8).expert_width for chip in (chips.GB200, chips.RUBIN)}
    narrow = [FRONTIER[m.name] for m, F in zip(shown, ys, strict=True) if lines["GB200"] > F]
    said = ", ".join(f"{name} {width:,.0f}" for name, width in lines.items())
    return Figure(
        key="transformers.moe_map",
        alt="A map of eleven models: sparsity E/k from 4 to 128 on the horizontal axis, width of an expert "
        "from 1,024 to 16,384 on the vertical axis. Mixtral 8x22B is at the upper left, Llama 4 Maverick at "
        f"the right; most others are near 32 and below 3,100. Lines mark the widths that hide the "
        f"all-to-all in fp8: {said}.",
        caption="Eleven models by their sparsity and by the width of one expert. Sparsity decides how many "
        "tokens keep the experts busy, and width decides whether matmuls can hide dispatch and combine. "
        f"The lines are the widths that do so inside one NVLink domain, in fp8 ({said}): {len(narrow)} of "
        "the eleven are too narrow even for the lower one.",
        parts=lambda wide: [
            Chart(
                Scale("sparsity E/k", "", "pow2", 2, 256),
                Scale("width of one expert", "", "log", 800, 20_000),
                (
                    Points("", [x for x, _ in labels], [y for _, y in labels], list(labels.values()), MEMORY),
                    *(RefLine(name, width, "y") for name, width in lines.items()),
                ),
            )
        ],
    )
