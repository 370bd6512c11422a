"""Figures of the batch: the floor of a run's duration, and which scheme suits how many tokens per chip."""

from math import log

from scalingbook_book.reader.explorers.view import Chart, Curve, RefLine, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models, rules
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.training import effective_width
from scalingbook_lib.units import count

LLAMA = models.find("Llama 3 70B")
TOKENS, NOISE = 15e12, 2**22  # the fewest tokens of the run, and an assumed gradient noise scale
ALONE = rules.data_parallel_tokens(V5P, axes=3)
WIDTH = effective_width(LLAMA)
BOTH, WAITING = (rules.fsdp_with_tensor_tokens(WIDTH, V5P, dial=dial) for dial in (0, 1))


def days(n: float, b: float) -> float:
    """Days of a run on n chips of b tokens each, at half of the peak: 6 P tokens (1 "
    "+ bn/B_noise) / (n C/2)."""
    tokens = TOKENS * (1 + b * n / NOISE)
    return 6 * LLAMA.params * tokens / (n * V5P.bf16_flops_per_s * 0.5) / 86400


def floor_of_days() -> Figure:
    """The duration of a run falls toward a floor as chips with a minimum of tokens are added."""
    floors = {b: days(1e15, b) for b in (ALONE, BOTH)}
    said = " and ".join(f"{floor:.2g} days at {b:.0f} tokens per chip" for b, floor in floors.items())
    return Figure(
        key="training.floor_of_days",
        alt=f"Days of a run against the number of chips, both on log scales: two falling curves that flatten toward {said}.",
        caption="Duration of a training run against the number of chips. If every chip needs a minimum "
        "number of tokens, more chips require a larger batch, in which each token contributes less. "
        f"So the run takes at least {said}. Parallelism schemes that need fewer tokens per chip "
        "lower this floor.",
        parts=lambda wide: [_curves(floors)],
    )


def _curves(floors: dict[float, float]) -> Chart:
    chips = [2.0**e for e in range(10, 17)]
    curves = [
        Curve(f"{b:.0f} tokens per chip", chips, [days(n, b) for n in chips], color=k)
        for k, b in enumerate(floors)
    ]
    lines = [RefLine(f"floor: {floor:.2g}", floor, axis="y") for floor in floors.values()]
    return Chart(
        x=Scale("chips", "", "pow2", high=100_000), y=Scale("days", "", "log", low=5), marks=(*curves, *lines)
    )


def recipe() -> Figure:
    """Which scheme to use for how many tokens per chip."""
    return Figure(
        key="training.recipe",
        alt=f"A log axis of tokens per chip. Above {ALONE:.0f}, FSDP alone. Above {BOTH:.0f} or {WAITING:.0f}, depending on overlap, FSDP with "
        "tensor parallelism. Below that, no scheme hides its communication. Under the "
        "axis are four special cases: few sequences, "
        "experts, slow networks and several pods.",
        caption="Which parallelism scheme to use, by the number of tokens per chip (Llama 3 70B on TPU "
        f"v5p). FSDP alone needs {ALONE:.0f}. With tensor parallelism, {BOTH:.0f} are enough if "
        f"everything overlaps, or {WAITING:.0f} if the two kinds of communication run one after the "
        "other. The special cases below depend on the model and the network.",
        parts=lambda wide: [_bands(wide), _branches(wide)],
    )


def _bands(wide: float) -> Sketch:
    left, right, low, high = 8.0, wide - 8, 30.0, 3000.0

    def at(tokens: float) -> float:
        return left + (right - left) * log(tokens / low) / log(high / low)

    bands = (
        (low, BOTH, "too few\ntokens", IDLE),
        (BOTH, WAITING, "FSDP + TP,\nif all\noverlaps", CACHE),
        (WAITING, ALONE, "FSDP\n+ TP", NETWORK),
        (ALONE, high, "FSDP\nalone", MATH),
    )
    shapes: list[Shape] = [
        Area(x=at(a), y=6, wide=at(b) - at(a), high=70, text=name, color=color, size=11)
        for a, b, name, color in bands
    ]
    shapes += [Words(x=at(tokens), y=94, text=f"{tokens:.0f}") for tokens in (BOTH, WAITING, ALONE)]
    shapes.append(Words(x=wide / 2, y=114, text="tokens per chip, log scale", quiet=True))
    return Sketch(wide, 122, shapes)


def _branches(wide: float) -> Sketch:
    experts = rules.expert_parallel_width(V5P, 4)
    context = rules.context_parallel_tokens(LLAMA.G, V5P)
    pods = rules.cross_pod_tokens(V5P, 10**9)
    rows = (
        ("fewer sequences than chips", f"context parallelism,\nabove {context:.0f} tokens per chip"),
        ("mixture of experts", f"expert parallelism, on 64 chips\nif experts are {experts:,.0f} wide"),
        ("slow network", "pipeline, many microbatches,\nZeRO-1"),
        ("several pods", f"data parallelism, above\n{count(round(pods))} tokens per pod"),
    )
    columns = 2 if wide > 400 else 1
    across = wide / columns
    shapes: list[Shape] = []
    for k, (case, answer) in enumerate(rows):
        x, y = across * (k % columns), 8 + 76.0 * (k // columns)
        shapes.append(Area(x=x + 6, y=y, wide=across - 12, high=66, color=None, shade=0.03))
        shapes.append(Words(x=x + across / 2, y=y + 18, text=case, bold=True))
        shapes.append(Words(x=x + across / 2, y=y + 38, text=answer))
    return Sketch(wide, 8 + 76.0 * (len(rows) // columns), shapes)
