"""Figures of DP, FSDP and TP: time on more chips, what a chip holds, what overlaps with what."""

from scalingbook_book.reader.explorers.view import Span, Timeline
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import MATH, MEMORY, NETWORK, Area, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import rules
from scalingbook_lib.machines.chips import V5P
from scalingbook_lib.units import count, percent, si

B, D, F = 2**22, 8192, 28672  # the opening's batch in tokens, and the MLP of Llama 3 70B
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
    "DP": "AllReduce gradients",
    "FSDP": "AllGather weights, ReduceScatter gradients",
    "TP": "AllGather and ReduceScatter activations",
    "FSDP + TP": "both, on smaller arrays",
}


def same_batch() -> Figure:
    """A layer's compute halves as the chips double; gathering its weights takes as long as before."""
    math, network = _one_layer()
    last = B / rules.data_parallel_tokens(V5P, axes=3)
    return Figure(
        key="training.same_batch",
        alt=f"Four pairs of bars, for {', '.join(map(count, CHIPS))} chips. The compute time of a layer halves from pair "
        f"to pair, from {si(math[0], 's')} to {si(math[-1], 's')}. Gathering its weights "
        f"takes {si(network, 's')} in every pair.",
        caption="Compute time and communication time against the number of chips, if all chips shard the "
        "weights (fully sharded data parallelism, FSDP). Adding chips shrinks each chip's compute, but not "
        "the weights that it has to gather. With FSDP, this "
        f"batch keeps up to {count(int(last))} chips busy. (Forward pass of one simplified layer of Llama 3 70B, "
        f"with two matrices of {count(D)} × {count(F)}, on TPU v5p; 4 million tokens per step.)",
        parts=lambda wide: [_pairs(wide, math, network)],
    )


def _one_layer() -> tuple[list[float], float]:
    """Seconds of a layer's compute on each number of chips, and of gathering its weights, forward."""
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
    names = (("compute", MATH), ("gathers", NETWORK))
    shapes += [
        Words(x=wide - 4, y=190 + 20 * k, text=name, color=color, align="end")
        for k, (name, color) in enumerate(names)
    ]
    return Sketch(wide, 6.0 + 58 * len(CHIPS), shapes)


def four_schemes() -> Figure:
    """What one chip holds under DP, FSDP, TP, and FSDP with TP."""
    return Figure(
        key="training.four_schemes",
        alt="Four rows, for DP, FSDP, TP and FSDP with TP, each with the five arrays of an MLP on a "
        "mesh of 4 by 2 chips. The part that one chip holds is filled. DP shards only the batch "
        "dimension of the activations; FSDP also shards the weights; TP shards the hidden dimension "
        "of weights and activations; FSDP with TP shards all of these.",
        caption="How four parallelism schemes shard the arrays of an MLP. A scheme assigns dimensions of "
        "arrays to mesh axes, and the communication follows from that assignment. (Filled: what one "
        "of 4 × 2 chips holds.)",
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
    """The array around its center, and in its corner the part that the first chip holds."""
    high, wide = (scale * SIDES[name[0]] for name in dimensions)
    down, across = (1 / WAYS[name[-1]] if "_" in name else 1.0 for name in dimensions)
    left, top = x - wide / 2, y - high / 2
    ghost = Area(x=left, y=top, wide=wide, high=high, color=None, shade=0.05)
    color = MEMORY if "B" not in dimensions[0] else MATH
    return [ghost, Area(x=left, y=top, wide=wide * across, high=high * down, color=color, shade=0.55)]


def three_lanes() -> Figure:
    """FSDP's gathers run ahead of the compute; the collectives of TP interrupt it."""
    split = rules.fsdp_with_tensor(48e3, 64, 32768, 16, V5P)
    return Figure(
        key="training.three_lanes",
        alt="A timeline of two layers with three rows. The FSDP links gather the weights of the next "
        f"layer while this one is being computed, which takes {percent(split.data)} of the compute "
        f"time. The TP links are busy before and after the matmuls, for {percent(split.tensor)} of "
        "the compute time, while the chip waits.",
        caption="Timeline of two layers with FSDP and tensor parallelism. Weights can be gathered one layer "
        "ahead. Activations cannot, so the communication of tensor parallelism is on the critical "
        "path. (64 TPU v5p, FSDP 16, TP 4, 48,000 tokens, F = 32,768; forward pass.)",
        parts=lambda wide: [_lanes(wide, split.data, split.tensor)],
    )


def _lanes(wide: float, data: float, tensor: float) -> Timeline:
    """Two layers; the compute of one takes 1."""
    spans: list[Span] = []
    for k in range(2):
        start = k * (1 + tensor)
        first, end = start + tensor / 2, start + tensor / 2 + 1
        spans += [
            Span("TP links", start, first, "", NETWORK),
            Span("compute", first, first + 0.5, f"layer {k + 1}", MATH),
            Span("compute", first + 0.5, end, "", MATH),
            Span("TP links", end, end + tensor / 2, "", NETWORK),
            Span(
                "FSDP links", start, start + data, f"weights {k + 2}" if wide > 400 else f"W {k + 2}", NETWORK
            ),
        ]
    return Timeline(
        ("compute", "TP links", "FSDP links"), spans, unit="", label="time, in compute times of one layer"
    )
