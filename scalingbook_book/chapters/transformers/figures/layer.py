"""Figures of one layer: its list of matmuls, its matrices to scale, and the cost of each part."""

from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.layout import Part, key, strip
from scalingbook_book.reader.figures.shapes import CACHE, IDLE, MATH, MEMORY, Area, Arrow, Shape, Words
from scalingbook_book.reader.figures.sketch import Sketch
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import percent

LLAMA = models.find("Llama 3 70B")
T = 8192
FLOPS = arithmetic.flops(LLAMA, 1, T)
PARAMS = arithmetic.params(LLAMA)
BESIDE = {("q", "k"), ("k", "v"), ("gate", "up")}  # neither uses the other's output
SCORES = "QKᵀ, PV"


def layer() -> Figure:
    """Where are the parameters, and where do the FLOPs go?"""
    of_params, of_flops = percent(PARAMS.share("mlp")), percent(FLOPS.attention_share)
    return Figure(
        key="transformers.layer",
        alt="The matrices of one layer drawn to scale, from left to right. Attention: queries, keys, values, then "
        "dot-product attention, which has no matrix, and the output. Keys and values are an eighth as wide as queries. "
        "Then the MLP: gate, up and down, each more than three times the size of the largest matrix in attention. Below, "
        f"two strips: the MLP has {of_params} of the parameters; dot-product attention takes {of_flops} of the FLOPs and "
        "has no parameters.",
        caption="One layer of Llama 3 70B, drawn to scale: seven weight matrices, and two matmuls without "
        "weights (dashed), which compute attention scores and weighted values. The MLP has "
        f"{of_params} of the model's parameters. At {T:,} tokens, the two matmuls without weights "
        f"take {of_flops} of the FLOPs. (The last part of both strips: embedding and unembedding.)",
        parts=lambda wide: [*_matrices(wide), _strips(wide)],
    )


def _matrices(wide: float) -> list[Sketch]:
    """Attention and MLP, beside one another where there is room; one scale for all."""
    unit = (44.0 if wide > 400 else 25.0) / LLAMA.D  # of the drawing, for one element of a side
    D, N, K, F = (n * unit for n in (LLAMA.D, LLAMA.N * LLAMA.H, LLAMA.K * LLAMA.H, LLAMA.F))
    attention = [("q", N, D), ("k", K, D), ("v", K, D), (SCORES, N * 1.35, D), ("o", D, N)]
    mlp = [("gate", F, D), ("up", F, D), ("down", D, F)]
    if wide < 400:
        return [_row(wide, attention, "attention"), _row(wide, mlp, "MLP")]
    return [_row(wide, [*attention, *mlp], "")]


def _row(wide: float, blocks: list[tuple[str, float, float]], title: str) -> Sketch:
    """The blocks in the order of the computation, centered on one line."""
    high = max(h for _, _, h in blocks)
    gap = (wide - sum(w for _, w, _ in blocks)) / (len(blocks) + 1)
    middle, x = 40 + high / 2, gap
    shapes: list[Shape] = [Words(x=0, y=13, text=title, align="start", bold=True)] if title else []
    ends = [2.0]
    for name, across, down in blocks:
        plain = name == SCORES
        top = middle - down / 2
        shade = 0.0 if plain else 0.3
        color = IDLE if plain else MATH if name in ("gate", "up", "down") else MEMORY
        shapes.append(Area(x=x, y=top, wide=across, high=down, color=color, shade=shade, dashed=plain))
        shapes.append(Words(x=x + across / 2, y=top - 7, text=name))
        ends += [x, x + across]
        x += across + gap
    ends.append(wide - 2)
    names = ["", *(name for name, _, _ in blocks), ""]
    stream = [
        Arrow(x0=a + 1, y0=middle, x1=b - 1, y1=middle, thick=1)
        for (a, b), before, after in zip(
            zip(ends[::2], ends[1::2], strict=True), names, names[1:], strict=False
        )
        if (before, after) not in BESIDE
    ]
    return Sketch(wide, 50 + high, [*stream, *shapes])


def _strips(wide: float) -> Sketch:
    """Shares of parameters and of FLOPs, in the same colors."""
    left, (shapes, start) = 84.0, ([], 8.0)
    if wide <= 400:  # too narrow for names within the strips
        names = {MATH: "MLP", MEMORY: "attention weights", IDLE: SCORES, CACHE: "embeddings"}
        shapes, start = key(wide, 2.0, names)
    vocabulary = PARAMS["embedding"] + PARAMS["unembedding"]
    kept = [Part("MLP", PARAMS["mlp"], MATH), Part("attention", PARAMS["attention"], MEMORY)]
    work = [Part("MLP", FLOPS["mlp"], MATH), Part("attention", FLOPS["attention projections"], MEMORY)]
    kept.append(Part("embeddings", vocabulary, CACHE))
    work += [Part(SCORES, FLOPS.attention, IDLE), Part("unembedding", FLOPS["unembedding"], CACHE)]
    for k, (name, parts) in enumerate((("parameters", kept), ("FLOPs", work))):
        y = start + 38 * k
        shapes.append(Words(x=left - 8, y=y + 19, text=name, align="end"))
        shapes += strip(left, y, wide - left - 4, 28, parts)
    return Sketch(wide, start + 76, shapes)
