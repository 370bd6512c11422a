"""Figures of the KV cache: paged, sharded over chips, and with data-parallel attention."""

from dataclasses import replace

from scalingbook_book.chapters.inference.figures.steps import LLAMA, NARROW, SIXTEEN, USERS, S
from scalingbook_book.reader.explorers.view import Chart, Curve, Scale
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import CACHE, EXPERTS, MATH, MEMORY, NETWORK, Cells, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import inference, models, serving
from scalingbook_lib.inference import Layout
from scalingbook_lib.machines import Cluster
from scalingbook_lib.machines.chips import H200
from scalingbook_lib.units import FP8, INT8, percent, si

LENGTHS = (5, 11, 3, 8)  # tokens of four sequences, drawn
ROOM, BLOCK = 24, 2
COLORS = (MEMORY, MATH, NETWORK, EXPERTS)
DEEPSEEK = models.find("DeepSeek-V3")


def pages() -> Figure:
    """Memory in use with reservations, and with a paged cache."""
    blocks = [serving.PagedCache(1, BLOCK).needed_for(length) for length in LENGTHS]
    reserved = sum(LENGTHS) / (ROOM * len(LENGTHS))
    paged = sum(LENGTHS) / (BLOCK * sum(blocks))
    return Figure(
        key="inference.pages",
        alt="Top: four rows, one per sequence, each reserved up to the maximum length and mostly empty; "
        f"{percent(reserved)} of the memory is in use. Bottom: the same four sequences in blocks of "
        f"{BLOCK} tokens at arbitrary places; {percent(paged)} of the allocated memory is in use, "
        "and the rest of the memory is free.",
        caption="A KV cache with reserved memory and with paging. If every sequence reserves memory for the "
        "maximum length, most of it stays empty. With paging, a sequence takes blocks as it needs "
        "them and wastes half a block on average. (Four sequences, a color each; a cell is one "
        f"token, a block is {BLOCK} tokens.)",
        parts=lambda wide: [_memory(wide, blocks, reserved, paged)],
    )


def _memory(wide: float, blocks: list[int], reserved: float, paged: float) -> Sketch:
    side = (wide - 8) / ROOM
    high = min(side, 18.0)
    rows = [
        [color] * length + [None] * (ROOM - length) for color, length in zip(COLORS, LENGTHS, strict=True)
    ]
    order = [(turn, k) for k, count in enumerate(blocks) for turn in range(count)]
    flat: list[int | None] = []
    for turn, k in sorted(order):  # blocks as they were asked for, one sequence after the other
        used = min(BLOCK, LENGTHS[k] - BLOCK * turn)
        flat += [COLORS[k]] * used + [None] * (BLOCK - used)
    flat += [None] * (ROOM * len(LENGTHS) - len(flat))
    packed = [flat[i : i + ROOM] for i in range(0, len(flat), ROOM)]
    low = 60 + high * len(LENGTHS)
    shapes: list[Shape] = [
        Words(x=4, y=14, text=f"reserved for the maximum length: {percent(reserved)} in use", align="start"),
        Cells(x=4, y=22, rows=rows, wide=side, high=high),
        Words(
            x=4,
            y=low - 8,
            text=f"paged, blocks of {BLOCK} tokens: {percent(paged)} of them in use",
            align="start",
        ),
        Cells(x=4, y=low, rows=packed, wide=side, high=high),
    ]
    return Sketch(wide, low + high * len(packed) + 4, shapes)


def cache_split() -> Figure:
    """The part of the cache on each chip when there are twice as many chips as KV heads."""
    splits = {
        "replicated": Layout(tp=16, weights=INT8, kv=INT8),
        "by sequences": NARROW,
        "by tokens": replace(NARROW, kv_batch=1, kv_sequence=2),
    }
    steps = {
        name: inference.decode(LLAMA, SIXTEEN, layout, batch=USERS, S=S).total_s
        for name, layout in splits.items()
    }
    said = ", ".join(f"{name} {si(seconds, 's')}" for name, seconds in steps.items())
    return Figure(
        key="inference.cache_split",
        alt="Three drawings of a cache with eight heads across and sequences downward, on sixteen "
        "chips, two per head. Replicated: both chips of a head hold the same data. By sequences: "
        "each chip holds half of the sequences of its head. By tokens: each chip holds half of the "
        f"tokens of every sequence. Time of a step: {said}.",
        caption="Three ways to shard a KV cache with eight heads over sixteen chips. Sharding by heads "
        "alone ends at eight chips, so two chips share each head. Blue and orange are the two chips; the third color is "
        "data that both of them hold. They hold replicas, different sequences, or different tokens. "
        f"Replicating takes the longest: each chip reads "
        f"twice as many bytes of the cache. ({USERS} sequences of {S:,} tokens. In the third drawing, the two halves of the tokens "
        "of each head are side by side.)",
        parts=lambda wide: [_boxes(wide, steps)],
    )


def _boxes(wide: float, steps: dict[str, float]) -> Sketch:
    across = wide / 3
    side = (across - 24) / 8
    halves = {"replicated": [EXPERTS, EXPERTS], "by sequences": [MEMORY, MATH], "by tokens": [MEMORY, MATH]}
    shapes: list[Shape] = []
    for k, (name, seconds) in enumerate(steps.items()):
        x, middle = across * k + 12, across * (k + 0.5)
        first, second = halves[name]
        if name == "by tokens":  # within every head, left and right half of its tokens
            rows = [[first, second] * 8 for _ in range(6)]
            shapes.append(Cells(x=x, y=44, rows=rows, wide=side / 2, high=14, air=1.5))
        else:
            rows = [[first] * 8 for _ in range(3)] + [[second] * 8 for _ in range(3)]
            shapes.append(Cells(x=x, y=44, rows=rows, wide=side, high=14))
        shapes.append(Words(x=middle, y=14, text=name, bold=True))
        shapes.append(Words(x=x, y=34, text="8 heads →", align="start", quiet=True))
        shapes.append(Words(x=x, y=148, text="↓ sequences", align="start", quiet=True))
        said = f"{si(seconds, 's')} per step" if wide > 400 else f"{si(seconds, 's')}\nper step"
        shapes.append(Words(x=middle, y=170, text=said))
    return Sketch(wide, 178 if wide > 400 else 194, shapes)


OWNED = Layout(weights=FP8, compute=FP8, dispatch=FP8)  # its cache stays in bf16


def owners() -> Figure:
    """The sequences that fit with latent attention: tensor parallelism or data-parallel attention."""
    counts = (8, 16, 32, 64)
    most = {n: _most(n) for n in counts}
    together, apart = most[64]
    return Figure(
        key="inference.owners",
        alt=f"The number of sequences that fit on 8, 16, 32 and 64 GPUs, two curves, both axes logarithmic. With tensor parallelism alone: {', '.join(f'{most[n][0]:,}' for n in counts)}. "
        f"With data-parallel attention: {', '.join(f'{most[n][1]:,}' for n in counts)}.",
        caption="Sequences that fit in memory, against the number of GPUs, with tensor parallelism and with "
        "data-parallel attention. With latent attention, every GPU of a tensor-parallel group holds "
        "the full latent vectors of every sequence. With data-parallel attention, each GPU holds "
        f"only its own sequences, so 64 GPUs hold {apart:,} sequences instead of {together:,}. "
        f"(DeepSeek-V3 on H200, weights in {FP8.name}, cache in {OWNED.kv.name}, 4,096 tokens.)",
        parts=lambda wide: [_fits(most)],
    )


def _most(n: int) -> tuple[int, int]:
    one = replace(OWNED, tp=n)
    layouts = one, replace(one, attention_dp=n, ep=n)
    together, apart = (
        inference.largest_batch(DEEPSEEK, layout, Cluster.of(H200, n), S=4096) for layout in layouts
    )
    return together, apart


def _fits(most: dict[int, tuple[int, int]]) -> Chart:
    gpus = list(most)
    return Chart(
        x=Scale("GPUs", "", "pow2"),
        y=Scale("sequences that fit", "", "log"),
        marks=(
            Curve("tensor parallelism", gpus, [pair[0] for pair in most.values()], color=CACHE),
            Curve("data-parallel attention", gpus, [pair[1] for pair in most.values()], color=MATH),
        ),
    )
