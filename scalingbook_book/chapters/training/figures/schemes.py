"""The ways of splitting: what more chips do, what each holds, what overlaps with what."""

from scalingbook_book.reader.explorers.view import Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import rules
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.units import count, percent, si

B, D, F = 2**22, 8192, 28672  # the opening's batch in tokens, and the MLP of LLaMA-3 70B
CHIPS = (2048, 4096, 8192, 16384)
SIDES = {"B": 40.0, "D": 30.0, "F": 52.0}  # of the drawing
WAYS = {"X": 4, "Y": 2}
ARRAYS = ("In", "W_{in}", "Tmp", "W_{out}", "Out")
SCHEMES = {  # the dimensions of the five arrays, with the mesh axis that splits them
    "DP": ("B_X D", "D F", "B_X F", "F D", "B_X D"),
    "FSDP": ("B_X D", "D_X F", "B_X F", "F D_X", "B_X D"),
    "TP": ("B D_Y", "D F_Y", "B F_Y", "F_Y D", "B D_Y"),
    "FSDP + TP": ("B_X D_Y", "D_X F_Y", "B_X F_Y", "F_Y D_X", "B_X D_Y"),
}
MOVES = {
    "DP": "gradients are summed",
    "FSDP": "weights are gathered, gradients scattered",
    "TP": "activations are gathered and scattered",
    "FSDP + TP": "both, and each array is smaller",
}


def same_batch() -> Figure:
    """Where does a given batch stop to pay on more chips?"""
    math, network = _one_layer()
    last = B / rules.data_parallel_tokens(V5P, axes=3)
    return Figure(
        key="training.same_batch",
        alt=f"Four pairs of bars, for {', '.join(map(count, CHIPS))} chips. The arithmetic of a layer halves from pair "
        f"to pair, from {si(math[0], 's')} to {si(math[-1], 's')}. Gathering its weights takes {si(network, 's')} in all of them.",
        caption=f"A chip's arithmetic falls with the chips, the weights that pass by do not. FSDP pays up to {count(int(last))} "
        "chips (LLaMA-3 70B, 4 million tokens a step, TPU v5p; one layer, forward).",
        parts=lambda wide: [_pairs(wide, math, network)],
    )


def _one_layer() -> tuple[list[float], float]:
    """Times of the arithmetic of a layer on each number of chips, and of gathering its weights, forward."""
    math = [4 * B * D * F / (n * V5P.bf16_flops_per_s) for n in CHIPS]
    return math, 4 * D * F / (3 * 2 * V5P.link_bytes_per_s)


def _pairs(wide: float, math: list[float], network: float) -> Sketch:
    left, most = 92.0, wide - 92 - 74
    shapes: list[Shape] = []
    for k, (n, busy) in enumerate(zip(CHIPS, math, strict=True)):
        y = 6.0 + 58 * k
        shapes.append(Words(x=left - 10, y=y + 26, text=f"{count(n)}\nchips", align="end"))
        for seconds, color, down in ((busy, MATH, 0), (network, NETWORK, 23)):
            long = most * seconds / max(math)
            shapes.append(Area(x=left, y=y + down, wide=long, high=20, color=color, right=si(seconds, "s")))
    names = (("arithmetic", MATH), ("gathers", NETWORK))
    shapes += [
        Words(x=wide - 4, y=190 + 20 * k, text=name, color=color, align="end")
        for k, (name, color) in enumerate(names)
    ]
    return Sketch(wide, 6.0 + 58 * len(CHIPS), shapes)


def four_schemes() -> Figure:
    """What does one chip hold under each scheme?"""
    return Figure(
        key="training.four_schemes",
        alt="Four rows, DP, FSDP, TP and both, with the five arrays of an MLP on a mesh of 4 by 2 chips; the part that one "
        "chip holds is filled. DP splits the rows of the activations alone, FSDP those and the weights, TP the hidden "
        "width of the weights and the activations, and both together every dimension.",
        caption="A scheme is which dimension of which array is split over which mesh axis. What moves follows from it. "
        "(Filled: what one of 4 × 2 chips holds.)",
        parts=lambda wide: [_rows(wide)],
    )


def _rows(wide: float) -> Sketch:
    scale = 1.25 if wide > 400 else 0.9
    left, across = (100.0, (wide - 100) / 5) if wide > 400 else (4.0, wide / 5)
    shapes: list[Shape] = [
        Words(x=left + across * (i + 0.5), y=14, text=name) for i, name in enumerate(ARRAYS)
    ]
    y = 24.0
    for scheme, held in SCHEMES.items():
        high = scale * SIDES["F"]
        shapes.append(Words(x=4, y=y + 14, text=f"{scheme}: {MOVES[scheme]}", align="start", bold=False))
        for i, dimensions in enumerate(held):
            shapes += _array(left + across * (i + 0.5), y + 24 + high / 2, dimensions.split(), scale)
        y += high + 40
    return Sketch(wide, y - 8, shapes)


def _array(x: float, y: float, dimensions: list[str], scale: float) -> list[Shape]:
    """The array around its centre, and in its corner what the first chip holds."""
    high, wide = (scale * SIDES[name[0]] for name in dimensions)
    down, across = (1 / WAYS[name[-1]] if "_" in name else 1.0 for name in dimensions)
    left, top = x - wide / 2, y - high / 2
    ghost = Area(x=left, y=top, wide=wide, high=high, color=None, shade=0.05)
    color = MEMORY if "B" not in dimensions[0] else MATH
    return [ghost, Area(x=left, y=top, wide=wide * across, high=high * down, color=color, shade=0.55)]


def three_lanes() -> Figure:
    """What waits for what, with FSDP and tensor parallelism at once?"""
    split = rules.fsdp_with_tensor(48e3, 64, 32768, 16, V5P)
    return Figure(
        key="training.three_lanes",
        alt="Three lanes over two layers. The lane of data links gathers the weights of the next layer while the "
        f"arithmetic of this one runs, in {percent(split.data)} of its time. The lane of tensor links is busy before and "
        f"after the products, {percent(split.tensor)} of the time of the arithmetic, and the arithmetic waits meanwhile.",
        caption="Weights can be gathered a layer ahead. Activations cannot: tensor parallelism lies on the critical path. "
        "(64 TPU v5p, 16 data and 4 tensor ways, 48,000 tokens, F = 32,768; forward.)",
        parts=lambda wide: [_lanes(split.data, split.tensor)],
    )


def _lanes(data: float, tensor: float) -> Timeline:
    """Two layers; the arithmetic of one takes 1."""
    spans: list[Span] = []
    for k in range(2):
        start = k * (1 + tensor)
        first, end = start + tensor / 2, start + tensor / 2 + 1
        spans += [
            Span("TP links", start, first, "", NETWORK),
            Span("math", first, first + 0.5, f"layer {k + 1}", MATH),
            Span("math", first + 0.5, end, "", MATH),
            Span("TP links", end, end + tensor / 2, "", NETWORK),
            Span("DP links", start, start + data, f"W of {k + 2}", MEMORY),
        ]
    return Timeline(("math", "TP links", "DP links"), spans, unit="", label="time, arithmetic of a layer = 1")
