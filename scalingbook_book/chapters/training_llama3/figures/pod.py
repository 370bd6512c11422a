"""Figures of a back-of-the-envelope estimate of the run on a pod, and of what fills the pod's memory."""

from math import ceil, prod

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import IDLE, MATH, MEMORY, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models, rules, training
from scalingbook_lib.machines import Slice
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.units import count, count_in_words, percent, si

LLAMA = models.find("Llama 3 70B")
TOKENS, BATCH, MFU = 15e12, 2**22, 0.4
POD, CUBE = Slice.of(V5P, "16x20x28"), 64  # a cube of 4 x 4 x 4 chips is what a pod is built of
WAYS = (2048, 4)  # the nearest powers of two to the best split


def pod() -> Figure:
    """How long does the run take by estimate, and which chips does a plan of powers of two leave idle?"""
    run = training.run_at(LLAMA, POD, TOKENS, mfu=MFU)
    used, idle, price = prod(WAYS), POD.chips - prod(WAYS), V5P.usd_per_hour or 0.0
    envelope = (
        f"{LLAMA.params / 1e9:.1f} billion parameters",
        f"× {TOKENS / 1e12:.0f} trillion tokens × 6",
        f"= {6 * LLAMA.params * TOKENS / 1e24:.2f} × 10²⁴ FLOPs",
        f"on {count(POD.chips)} chips, at {percent(MFU)}:",
        f"{run.days:.1f} days",
        f"{(run.usd or 0.0) / 1e6:.1f} million dollars",
    )
    return Figure(
        key="training_llama3.pod",
        alt=f"A pod as {POD.chips // CUBE} cubes of {CUBE} chips. {used // CUBE} cubes are colored, the {count(used)} chips of a plan of "
        f"{count(WAYS[0])} by {WAYS[1]}; {idle // CUBE} are gray, the {count(idle)} idle chips. Next to it: {'; '.join(envelope)}.",
        caption="A training run of Llama 3 70B on a whole pod, estimated on the back of an envelope. The "
        f"run takes {run.days:.1f} days (at {percent(MFU)} MFU and {price:.2f} dollars per "
        f"chip-hour). A plan with powers of two, {count(WAYS[0])} × {WAYS[1]}, would leave "
        f"{percent(idle / POD.chips, 2)} of the pod idle.",
        parts=lambda wide: [_cubes(wide, used // CUBE, POD.chips // CUBE, envelope)],
    )


def _cubes(wide: float, used: int, cubes: int, envelope: tuple[str, ...]) -> Sketch:
    beside, columns = wide > 400, 20
    side = (420.0 if beside else wide) / columns
    colors = [MATH if k < used else IDLE for k in range(cubes)]
    rows = [colors[k : k + columns] for k in range(0, cubes, columns)]
    low = side * len(rows)
    names = {MATH: f"{count(used * CUBE)} chips used", IDLE: f"{count((cubes - used) * CUBE)} idle"}
    swatches, end = key(wide, low + 14, names)
    x, y = (wide - 105, 22.0) if beside else (wide / 2, end + 14)
    lines: list[Shape] = [
        Words(x=x, y=y + 22 * k, text=line, bold=k > 3, align="middle") for k, line in enumerate(envelope)
    ]
    high = end if beside else y + 22 * len(envelope)
    return Sketch(wide, high, [Cells(x=1, y=4, rows=rows, wide=side, high=side), *swatches, *lines])


def who_fills_memory() -> Figure:
    """What fills the memory of a run, and how many chips can hold it?"""
    held = {tokens: rules.pooled(LLAMA, tokens) for tokens in (BATCH, BATCH // 8, BATCH // 32)}
    first = held[BATCH]
    least = ceil(first.chips(V5P))
    said = "; ".join(
        f"{count_in_words(tokens)} tokens, {si(each.total, 'B')}, {percent(each.state / each.total)} state"
        for tokens, each in held.items()
    )
    return Figure(
        key="training_llama3.who_fills_memory",
        alt=f"Three bars divided into state and activations: {said}. Below them {least} small squares, one for each chip that the first needs.",
        caption="Memory of training by batch size, divided into training state and activations. With "
        f"{count_in_words(BATCH)} tokens per step, activations are {percent(first.checkpoints / first.total)} "
        f"of the bytes, and {least} chips can hold everything. The state takes half of the memory only if "
        f"the batch is 1/{BATCH // (BATCH // 32)} as large. (Each bar is 100% of its total.)",
        parts=lambda wide: [_strips(wide, held, least)],
    )


def _strips(wide: float, held: dict[int, rules.Pooled], least: int) -> Sketch:
    shapes: list[Shape] = []
    for k, (tokens, each) in enumerate(held.items()):
        y = 22.0 + 62 * k
        title = f"{count_in_words(tokens)} tokens per step: {si(each.total, 'B')}"
        parts = (
            Part(f"state {si(each.state, 'B')}", each.state, MEMORY),
            Part(f"activations {si(each.checkpoints, 'B')}", each.checkpoints, MATH),
        )
        shapes += [Words(x=2, y=y - 7, text=title, align="start"), *strip(2, y, wide - 4, 28, parts)]
    shapes.append(Words(x=2, y=214, text=f"the first one needs {least} TPU v5p:", align="start"))
    columns = 56 if wide > 400 else 28
    side = (wide - 4) / columns
    rows = [[MATH] * min(columns, least - k) for k in range(0, least, columns)]
    swatches, end = key(
        wide, 232 + side * len(rows), {MEMORY: "weights and optimizer state", MATH: "activations"}
    )
    return Sketch(wide, end, [*shapes, Cells(x=2, y=222, rows=rows, wide=side, high=side), *swatches])
