"""Explorers of the three costs of mixers, the gain of hybrids, and the best chunk size."""

from scalingbook_book.chapters.architectures.case import LAYERS
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Switch,
    View,
    join_and,
    pluralize,
    sig3,
)
from scalingbook_lib.models.arithmetic.mixers import MixedLayers, RecurrentState
from scalingbook_lib.units import binary, count, count_in_words, percent, si

_COSTS = ("FLOPs per token", "bytes read per step", "bytes kept")
_LENGTHS = [2.0**e for e in range(10, 21)]
_HBM = 8e12  # bytes/s: eight chips of 1 TB/s, or one of 8


def _three(name: str, S: float) -> tuple[float, float, float]:
    one = MixedLayers(name, ((1, LAYERS[name]),))
    return one.flops(S), one.read_bytes(S), one.cached_bytes(S)


def _costs(*, layer: str, against: str, S: int) -> View:
    curves = []
    for k, cost in enumerate(_COSTS):
        ys = [_three(against, at)[k] / _three(layer, at)[k] for at in _LENGTHS]
        curves.append(Curve(cost, _LENGTHS, ys, k))
    ratios = [b / a for a, b in zip(_three(layer, S), _three(against, S), strict=True)]
    now = dict(zip(_COSTS, ratios, strict=True))
    chart = Chart(
        Scale("tokens in the sequence", "", "pow2"),
        Scale("reduction factor", "×", "log"),
        (*curves, RefLine("no saving", 1.0, axis="y"), RefLine("now", S)),
    )
    saves = [cost for cost, ratio in now.items() if ratio > 1.05]
    loses = [cost for cost, ratio in now.items() if ratio < 0.95]
    reduced = "all three costs" if len(saves) == 3 else join_and(saves) if saves else ""
    said = f"reduces {reduced}" if reduced else "does not reduce any cost"
    more = f" {'but' if saves else 'and'} increases {join_and(loses)}" if loses else ""
    return View(
        f"At {count_in_words(S)} tokens, compared with {against}, a layer of {layer} {said}{more}.",
        (chart,),
        tuple(Readout(cost, ratio, "×", _times(ratio)) for cost, ratio in now.items()),
    )


def _times(ratio: float) -> str:
    return f"{sig3(ratio)}× lower" if ratio >= 1 else f"{sig3(1 / ratio)}× higher"


COSTS = Explorer(
    key="architectures.costs",
    title="Three costs of a layer",
    question="Which of the three costs does a design reduce, and above what length?",
    controls={
        "layer": Choice("layer", tuple(LAYERS), "DSA (top 2,048)"),
        "against": Choice("compared with", ("GQA (8 heads)", "MLA", "MLA (8 bits)"), "MLA (8 bits)"),
        "S": Slider("tokens", 1024, 2**20, 2**17, "pow2"),
    },
    view=_costs,
)


def _strip(*, L: int, every: int, full: str, others: str, S: int) -> View:
    some = L // every
    parts = {full: (some, LAYERS[full]), others: (L - some, LAYERS[others])}
    kept = [MixedLayers(name, (part,)).cached_bytes(S) for name, part in parts.items()]
    whole = MixedLayers(full, ((L, LAYERS[full]),)).cached_bytes(S)
    read_s = sum(MixedLayers(name, (part,)).read_bytes(S) for name, part in parts.items()) / _HBM
    bars = Bars(
        Scale("kept per sequence", "B"),
        [f"{pluralize(n, 'layer')} of {name}" for name, (n, _) in parts.items()],
        [Series("", kept, 0)],
    )
    gain = whole / sum(kept)
    return View(
        f"A sequence keeps {binary(sum(kept))}; with full attention in all {L} layers, it would keep "
        f"{sig3(gain)} times as much. The full-attention layers hold {percent(kept[0] / sum(kept))} of "
        f"these bytes. At no length can the saving exceed a factor of {sig3(L / some)}.",
        (bars,),
        (
            Readout.binary("kept per sequence", sum(kept)),
            Readout("saving factor over full attention", gain, "×"),
            Readout("read time per step at 8 TB/s", read_s, "s", si(read_s, "s")),
        ),
    )


STRIP = Explorer(
    key="architectures.strip",
    title="Hybrid models: memory per sequence",
    question="How much memory do a few full-attention layers take among cheaper ones?",
    controls={
        "L": Slider("layers", 24, 96, 96, step=24),
        "every": Slider("one full layer in", 1, 12, 8),
        "full": Choice("full-attention layers", ("GQA (8 heads)", "MLA"), "MLA"),
        "others": Choice("other layers", ("KDA states", "window of 1,024", "HCA (128:1)"), "KDA states"),
        "S": Slider("tokens", 1024, 2**20, 2**17, "pow2"),
    },
    view=_strip,
)
_CHUNKS = [2.0**e for e in range(3, 11)]


def _chunk(*, chunk: int, d: int, side: str, erases: bool) -> View:
    state, unit = RecurrentState(heads=1, key=d, value=d, erases=erases), int(side)
    exact = [state.chunk_flops(int(c)) for c in _CHUNKS]
    padded = [state.chunk_flops(int(c), unit) for c in _CHUNKS]
    best = min(_CHUNKS, key=lambda c: state.chunk_flops(int(c), unit))
    now, full = state.chunk_flops(chunk), state.chunk_flops(chunk, unit)
    chart = Chart(
        Scale("tokens per chunk", "", "pow2"),
        Scale("FLOPs per token per head", "", "log"),
        (
            Curve("formula", _CHUNKS, exact, 0),
            Curve("padded to the matrix unit", _CHUNKS, padded, 1),
            RefLine("now", chunk),
        ),
    )
    fewest = "which is the minimum" if best == chunk else f"and the minimum is at {count(best)}"
    return View(
        f"By the formula, chunks of {count(chunk)} take {count(round(now))} FLOPs per token per head. "
        f"Padding to a matrix unit of {side} × {side} increases this to {count(round(full))} "
        f"({percent(now / full)} utilization), {fewest}.",
        (chart,),
        (
            Readout("formula", now, "", count(round(now))),
            Readout("padded to the unit", full, "", count(round(full))),
            Readout.percent("utilization of the unit", now / full),
            Readout(
                "same FLOPs as full attention at position",
                now / (4 * d),
                "tokens",
                count(round(now / (4 * d))),
            ),
        ),
    )


CHUNK = Explorer(
    key="architectures.chunk",
    title="Chunk size of linear attention",
    question="Which chunk size needs the fewest FLOPs, and which one keeps the matrix unit busy?",
    controls={
        "chunk": Slider("tokens per chunk", 8, 1024, 64, "pow2"),
        "d": Slider("head dimension", 64, 256, 128, "pow2"),
        "side": Choice("side of the matrix unit", ("16", "128", "256"), "128"),
        "erases": Switch("delta rule", False),
    },
    view=_chunk,
)


def _relay(*, X: int, T: int, heads: int, erases: bool, entry: str) -> View:
    state = RecurrentState(heads=heads, key=128, value=128, erases=erases)
    entries = {"MLA (1,152 B)": 1152, "GQA (4,096 B)": 4096}[entry]
    one = state.handoff_bytes()
    relay, ring = one * (X - 1), entries * T / X * (X - 1)
    even = X * one / entries
    lengths = [2.0**e for e in range(12, 22)]
    chart = Chart(
        Scale("tokens in the sequence", "", "pow2"),
        Scale("received per chip per layer", "B", "log"),
        (
            Curve("states", lengths, [relay for _ in lengths], 0),
            Curve("keys and values", lengths, [entries * t / X * (X - 1) for t in lengths], 1),
            RefLine("now", T),
        ),
    )
    fewer = "States take fewer bytes" if relay < ring else "Keys and values take fewer bytes"
    return View(
        f"{count_in_words(T)} tokens over {X} chips: each chip receives {si(relay, 'B')} of states, "
        f"or {si(ring, 'B')} of keys and values. {fewer}; break-even is at {count(round(even))} tokens.",
        (chart,),
        (
            Readout("sent per chip", one, "B", si(one, "B")),
            Readout("states", relay, "B", si(relay, "B")),
            Readout("keys and values", ring, "B", si(ring, "B")),
            Readout("break-even", even, "tokens", count(round(even))),
        ),
    )


RELAY = Explorer(
    key="architectures.relay",
    title="Sequence parallelism: states or keys and values",
    question="How many bytes cross the links when a sequence is sharded over chips?",
    controls={
        "X": Slider("chips", 2, 64, 8, "pow2"),
        "T": Slider("tokens", 4096, 2**21, 2**17, "pow2"),
        "heads": Slider("heads of 128 × 128", 16, 128, 96, step=16),
        "erases": Switch("delta rule", True),
        "entry": Choice("ring attention with", ("MLA (1,152 B)", "GQA (4,096 B)"), "MLA (1,152 B)"),
    },
    view=_relay,
)
