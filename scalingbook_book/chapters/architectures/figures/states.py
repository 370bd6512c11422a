"""Figures of recurrent states: the family, three ways to compute one, a hybrid's layers, a pass over chips."""

from collections.abc import Sequence

from scalingbook_book.chapters.architectures.case import K3, KDA, MILLION, MLA, STACKS
from scalingbook_book.reader.explorers.view import Bars, Scale, Series
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.shapes import (
    CACHE,
    EXPERTS,
    MATH,
    MEMORY,
    NETWORK,
    Area,
    Arrow,
    Cells,
    Shape,
    Words,
)
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib.models.arithmetic.mixers import MixedLayers, RecurrentState
from scalingbook_lib.units import binary, count, count_in_words, percent, si


def million() -> Figure:
    """What one sequence of a million tokens keeps, and what a decode step reads of it."""
    kept = [one.cached_bytes(MILLION) for one in STACKS]
    read = [one.read_bytes(MILLION) for one in STACKS]
    names = [one.name for one in STACKS]
    said = "; ".join(
        f"{n}: {si(k, 'B')} kept, {si(r, 'B')} read" for n, k, r in zip(names, kept, read, strict=True)
    )
    bars = Bars(
        Scale("bytes per sequence", "B", "log", 3e8, 2e12),
        names,
        [Series("kept", kept, CACHE), Series("read per decode step", read, MEMORY)],
    )
    return Figure(
        key="architectures.million",
        alt=f"Two bars for each of six models, on a logarithmic axis. {said}.",
        caption="Bytes that six models keep for one sequence of a million tokens, and bytes that each decode "
        f"step reads. The bytes kept fall from {si(kept[0], 'B')} to {si(kept[-1], 'B')}. Some designs keep "
        "less, one reads less than it keeps, and one does both. (Recurrent states are read and written, so "
        "they count twice in the second bar.)",
        parts=lambda wide: [bars],
    )


FAMILY = (  # columns: what decays; rows: whether the key's old value is removed first
    ("linear attention", "RetNet, Mamba-2,\nLightning", "GLA, RWKV-6"),
    ("DeltaNet", "Gated DeltaNet\n(Qwen3-Next)", "KDA\n(Kimi)"),
)


def family() -> Figure:
    """The family of linear-attention recurrences."""
    told = "; ".join(", ".join(name.replace("\n", " ") for name in row) for row in FAMILY)
    return Figure(
        key="architectures.family",
        alt=f"A table of two rows and three columns. Rows: write only, and the delta rule, which erases before it writes. Columns: no decay, one decay per head, one decay per channel. {told}.",
        caption="Linear-attention recurrences, by two properties: whether the state decays (columns), and "
        "whether the old value under a key is removed before the new one is written (rows). In "
        "parentheses: the hybrid model of this page that uses it.",
        parts=lambda wide: [_family(wide)],
    )


def _family(wide: float) -> Sketch:
    column, shapes = (wide - 8) / 3, list[Shape]()
    for k, fades in enumerate(("no decay", "decay per head", "per channel")):
        shapes.append(Words(x=4 + column * (k + 0.5), y=14, text=fades, quiet=True))
    rows = ("write only: Z + kvᵀ", "delta rule: Z − βk(kᵀZ) + βkvᵀ")
    for j, (row, names) in enumerate(zip(rows, FAMILY, strict=True)):
        y = 26 + 94.0 * j
        shapes.append(Words(x=6, y=y + 14, text=row, align="start", bold=True))
        for k, name in enumerate(names):
            color = EXPERTS if "(" in name else MATH
            text = name if wide > 400 else name.replace(" attention", "\nattention").replace(", ", ",\n")
            text = (
                text.replace("Gated DeltaNet\n(Qwen3-Next)", "Gated\nDeltaNet\n(Qwen3-N.)")
                if wide < 400
                else text
            )
            text = text.replace(",\n\n", ",\n")
            shapes.append(
                Area(x=4 + column * k + 2, y=y + 22, wide=column - 4, high=60, text=text, color=color)
            )
    return Sketch(wide, 210, shapes)


T, CHUNK = 8192, 64


def executions() -> Figure:
    """Three ways to compute the same recurrence."""
    state = RecurrentState(heads=1, key=128, value=128)
    ways = {
        "step by step": state.flops(),
        "in chunks": state.chunk_flops(CHUNK),
        "at once": state.chunk_flops(T),
    }
    said = "; ".join(f"{name}: {count_in_words(round(flops))} FLOPs" for name, flops in ways.items())
    return Figure(
        key="architectures.executions",
        alt=f"Three drawings of the same tokens: a chain of single tokens, squares along a diagonal with arrows between them, and one full triangle. {said}.",
        caption="Three ways to compute linear attention, and their FLOPs per token for one head of 128, "
        f"with {count(T)} tokens and chunks of {CHUNK}. Step by step needs the fewest FLOPs but has "
        "no large matmuls. Chunks take somewhat more FLOPs, but in matmuls. (Rows are queries, columns "
        "are keys; arrows carry the state.)",
        parts=lambda wide: [_executions(wide, ways)],
    )


def _executions(wide: float, ways: dict[str, float]) -> Sketch:
    shapes, column, n = list[Shape](), wide / 3, 8
    side = min(column - 16, 128.0)
    cell = side / n
    for k, (name, flops) in enumerate(ways.items()):
        x, y = column * k + (column - side) / 2, 26.0
        size = {"step by step": 1, "in chunks": 2, "at once": n}[name]
        filled = [[MATH if i <= j and i // size == j // size else None for i in range(n)] for j in range(n)]
        shapes.append(Words(x=column * (k + 0.5), y=14, text=name, bold=True))
        shapes.append(Cells(x=x, y=y, rows=filled, wide=cell, high=cell))
        for j in range(size, n, size):
            end = y + cell * j
            shapes.append(
                Arrow(
                    x0=x + cell * (j - 0.6),
                    y0=end - 1,
                    x1=x + cell * (j + 0.4),
                    y1=end + 2,
                    color=NETWORK,
                    bend=-0.6,
                )
            )
        shapes.append(
            Words(
                x=column * (k + 0.5),
                y=y + side + 18,
                text=f"{count_in_words(round(flops))}\nFLOPs per token",
                quiet=True,
            )
        )
    return Sketch(wide, 26 + side + 44, shapes)  # fmt: skip


def strip() -> Figure:
    """The memory of a hybrid's few full-attention layers."""
    states, full = (MixedLayers("", (part,)).cached_bytes(MILLION) for part in K3.layers)
    whole = K3.L * MLA.cached_bytes(MILLION)
    return Figure(
        key="architectures.strip",
        alt=f"{K3.L} cells, one per layer, every fourth of them full attention. Below, an area of {binary(full)} for the {K3.layers[1][0]} full layers and a sliver of "
        f"{binary(states)} for the {K3.layers[0][0]} layers with states.",
        caption="What one sequence of a million tokens keeps in the layers of Kimi K3. A quarter of the "
        f"layers hold {percent(full / (full + states), 3)} of the {binary(full + states)}. With full "
        f"attention in all layers, it would be {binary(whole)}. Areas are to scale.",
        parts=lambda wide: [_strip(wide, states, full, whole)],
    )


def _strip(wide: float, states: float, full: float, whole: float) -> Sketch:
    in_row = 31
    cells = [CACHE if k % 4 == 3 or k == K3.L - 1 else MATH for k in range(K3.L)]
    side = (wide - 4) / in_row
    rows = [cells[k : k + in_row] for k in range(0, K3.L, in_row)]
    below, scale = 26 + 3 * side + 20, (wide - 8) / whole
    shapes: list[Shape] = [
        Words(x=4, y=14, text=f"{K3.layers[0][0]} layers with states, {K3.layers[1][0]} with full attention", align="start"),
        Cells(x=2, y=22, rows=rows, wide=side, high=side),
        Area(x=4, y=below, wide=whole * scale, high=30, text="", color=None, shade=0.03, dashed=True),
        Area(x=4, y=below, wide=max(states * scale, 2), high=30, color=MATH, shade=0.8),
        Area(x=4 + max(states * scale, 2), y=below, wide=full * scale, high=30, text="cache", color=CACHE),
        Words(x=4, y=below + 48, text=f"states {binary(states)}, cache {binary(full)}", align="start"),
        Words(x=wide - 4, y=below - 6, text=f"all layers full: {binary(whole)}", align="end", quiet=True),
    ]  # fmt: skip
    return Sketch(wide, below + 58, shapes)


def relay() -> Figure:
    """What crosses the links when a sequence is sharded over four chips."""
    one, tokens = KDA.handoff_bytes(), MILLION // 4
    caches = MLA.cached_bytes(tokens)
    return Figure(
        key="architectures.relay",
        alt=f"Two rows of four chips, each with a quarter of a million tokens. Between the upper ones, thin arrows carry states of {si(one, 'B')}. Between the lower "
        f"ones, thick arrows carry keys and values of {si(caches, 'B')}.",
        caption="Communication of sequence parallelism, with recurrent states and with ring attention. With "
        "states, each chip sends the others what its part of the sequence does to an incoming "
        f"state. For a layer of Kimi K3, that is {si(one, 'B')}, however long the part is. Ring "
        f"attention passes on every key and value: with {tokens:,} tokens per chip, {si(caches, 'B')} of "
        "latent vectors. "
        "(Only the arrows to the next chip are drawn, not to scale.)",
        parts=lambda wide: [_relay(wide, (one, caches))],
    )


def _relay(wide: float, sizes: Sequence[float]) -> Sketch:
    shapes = list[Shape]()
    column = wide / 4
    for j, (name, size, thick, color) in enumerate(
        zip(("states", "keys and values"), sizes, (1.6, 5.0), (MATH, CACHE), strict=True)
    ):
        y = 24 + 92.0 * j
        shapes.append(
            Words(x=4, y=y - 8, text=f"{name}: {si(size, 'B')} from each chip", align="start", bold=True)
        )
        for k in range(4):
            shapes.append(
                Area(x=column * k + 4, y=y, wide=column - 22, high=44, text=f"part {k + 1}", color=color)
            )
            if k < 3:
                x = column * (k + 1)
                shapes.append(Arrow(x0=x - 17, y0=y + 22, x1=x + 3, y1=y + 22, thick=thick, color=NETWORK))
    return Sketch(wide, 170, shapes)
