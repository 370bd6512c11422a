"""Figures on sparse attention, diffusion language models, images and videos."""

from scalingbook_book.chapters.architectures.case import (
    CSA,
    DENSE,
    DSA,
    HCA,
    MILLION,
    SIGLIP,
    WAN,
)
from scalingbook_book.reader.explorers.view import Bars, Scale, Series, Span
from scalingbook_book.reader.figures.figure import Figure
from scalingbook_book.reader.figures.lanes import lanes
from scalingbook_book.reader.figures.shapes import (
    CACHE,
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
from scalingbook_lib.inference import diffusion
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.models.arithmetic.mixers import bidirectional_flops, video_tokens
from scalingbook_lib.units import count, count_in_words, percent, si
from scalingbook_lib.words import pluralize

DESIGNS = {"full (MLA)": (DENSE,), "V3.2: DSA": (DSA,), "V4: CSA": CSA, "V4: HCA": HCA}


def funnels() -> Figure:
    """Entries that are kept, scored by an index, and attended to."""
    far = {name: mixer[0] for name, mixer in DESIGNS.items()}  # the window's 128 are beside it
    kept = [one.entries(MILLION) for one in far.values()]
    scored = [one.entries(MILLION) if one.index_flops else 0.0 for one in far.values()]
    attended = [one.attended(MILLION) for one in far.values()]
    said = "; ".join(
        f"{name}: {count_in_words(k)} kept, {count_in_words(s)} scored, {count_in_words(a)} attended to"
        for name, k, s, a in zip(far, kept, scored, attended, strict=True)
    )
    bars = Bars(
        Scale("cache entries at a million tokens", "", "log", 100, 3e7),
        list(far),
        [Series("kept", kept, CACHE), Series("scored", scored, NETWORK), Series("attended to", attended, MEMORY)],
    )  # fmt: skip
    return Figure(
        key="architectures.funnels",
        alt=f"Three bars for each of four designs, on a logarithmic axis. {said}.",
        caption="Cache entries that four attention designs keep, score and attend to, at a million tokens. An "
        "index chooses which entries are attended to, but it has to score everything that is kept. "
        "To keep fewer entries, each has to stand for more than one token.",
        parts=lambda wide: [bars],
    )


def blocks() -> Figure:
    """The time of diffusion and of token-by-token decode, for one and for eight requests."""
    spans = list[Span]()
    told = []
    for B in (1, 8):
        one = diffusion(8e9, H100, T=256, passes=64, batch=B)
        name = pluralize(B, "request")
        spans.append(Span(f"{name}, token by token", 0, one.one_by_one_s, si(one.one_by_one_s, "s"), MEMORY))
        spans.append(Span(f"{name}, {one.passes} passes", 0, one.block_s, si(one.block_s, "s"), MATH))
        told.append(
            f"{name}: {si(one.one_by_one_s, 's')} token by token, {si(one.block_s, 's')} in {one.passes} passes"
        )
    even = diffusion(8e9, H100, T=256, passes=64).even_batch
    return Figure(
        key="architectures.blocks",
        alt=f"Four bars on a time axis. {'; '.join(told)}.",
        caption="Time to generate 256 tokens with an 8B model on one H100, token by token and by diffusion. "
        "A decode step reads the weights and takes equally long for one request and for eight. A "
        "diffusion pass is compute-bound, so eight requests take longer. Break-even is at "
        f"{even:.2g} requests.",
        parts=lambda wide: [lanes(wide, spans)],
    )


def eye() -> Figure:
    """How an image becomes tokens."""
    patches, tokens = 4096, 256
    encoder = sum(bidirectional_flops(SIGLIP.params, patches, SIGLIP.D, SIGLIP.L))
    model = 2 * 27e9 * tokens
    return Figure(
        key="architectures.eye",
        alt=f"An image of 896 × 896 pixels is divided into 64 × 64 patches, which go through an encoder and become 16 × 16 tokens for a language model. "
        f"{si(encoder, 'FLOPs')} in the encoder, {si(model, 'FLOPs')} in the model.",
        caption=f"The path of an image into Gemma 3: {count(patches)} patches enter the encoder, and "
        f"{tokens} tokens leave it. The encoder takes {si(encoder, 'FLOPs')}, which is "
        f"{percent(encoder / model)} of what the 27B model takes for these tokens. (Each cell stands "
        "for 16 patches or 16 tokens.)",
        parts=lambda wide: [_eye(wide, encoder, model)],
    )


def _eye(wide: float, encoder: float, model: float) -> Sketch:
    column = wide / 3
    side = min(column - 24, 110.0)
    first, last = (column - side) / 2, 2 * column + (column - side) / 2
    shapes: list[Shape] = [
        Words(x=column / 2, y=14, text="896 × 896 pixels", quiet=True),
        Cells(x=first, y=24, rows=[[MEMORY] * 16] * 16, wide=side / 16, high=side / 16, air=1),
        Words(x=column / 2, y=42 + side, text="64 × 64 patches"),
        Area(x=column + 14, y=44, wide=column - 28, high=70, text=f"encoder\n{si(encoder, 'FLOPs')}", color=MATH, size=12),
        Arrow(x0=first + side + 3, y0=79, x1=column + 11, y1=79),
        Arrow(x0=2 * column - 12, y0=79, x1=last - 3, y1=79),
        Words(x=2.5 * column, y=14, text="into the model", quiet=True),
        Cells(x=last, y=24, rows=[[CACHE] * 4] * 4, wide=side / 4, high=side / 4),
        Words(x=2.5 * column, y=42 + side, text=f"16 × 16 tokens\n27B model: {si(model, 'FLOPs')}" if wide > 400 else f"16 × 16 tokens\n{si(model, 'FLOPs')}"),
    ]  # fmt: skip
    return Sketch(wide, side + 70, shapes)


def video() -> Figure:
    """FLOPs of weights and attention for an image and for videos."""
    sizes = {"one image": (1, 720, 1280), "1 s": (17, 720, 1280), "5 s": (81, 720, 1280), "5 s of 1080p": (81, 1088, 1920)}  # fmt: skip
    tokens = {name: video_tokens(*size) for name, size in sizes.items()}
    counted = {name: bidirectional_flops(WAN.params, n, WAN.D, WAN.L) for name, n in tokens.items()}
    said = "; ".join(
        f"{name}: {count_in_words(tokens[name])} tokens, attention {percent(a / (w + a))}"
        for name, (w, a) in counted.items()
    )
    bars = Bars(
        Scale("one pass", "FLOPs"),
        [f"{name}: {count(n)} tokens" for name, n in tokens.items()],
        [
            Series("weights", [w for w, _ in counted.values()], MATH),
            Series("attention", [a for _, a in counted.values()], CACHE),
        ],
        stacked=True,
    )
    return Figure(
        key="architectures.video",
        alt=f"Stacked bars of FLOPs of weights and of attention. {said}.",
        caption="FLOPs of one pass of a video model, by length and resolution. FLOPs of the weights grow in "
        "proportion to the tokens, and those of attention grow with their square. "
        f"({WAN.params / 1e9:g} billion parameters; 720p unless stated otherwise. A whole video "
        "takes 100 such passes.)",
        parts=lambda wide: [bars],
    )
