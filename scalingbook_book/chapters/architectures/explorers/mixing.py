"""What does each way to mix tokens cost, how far does a hybrid help, and how long should a chunk be?"""

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
    pluralize,
    sig3,
)
from scalingbook_lib.models.arithmetic.mixers import MixedLayers, RecurrentState
from scalingbook_lib.units import binary, count, percent, si

_COSTS = ("FLOPs of a token", "bytes read by a step", "bytes kept")
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
        Scale("tokens of the sequence", "", "pow2"),
        Scale("times less", "×", "log"),
        (*curves, RefLine("as much", 1.0, axis="y"), RefLine("now", S)),
    )
    saves = [cost for cost, ratio in now.items() if ratio > 1.05]
    loses = [cost for cost, ratio in now.items() if ratio < 0.95]
    said = {3: "saves all three", 0: "saves nothing"}.get(len(saves), f"saves {' and '.join(saves)}")
    more = f", and takes more {' and '.join(loses)}" if loses else ""
    return View(
        f"At {count(S)} tokens a layer of {layer} {said}{more}, against {against}.",
        (chart,),
        tuple(Readout(cost, ratio, "×", _times(ratio)) for cost, ratio in now.items()),
    )


def _times(ratio: float) -> str:
    return f"{sig3(ratio)} times less" if ratio >= 1 else f"{sig3(1 / ratio)} times as much"


COSTS = Explorer(
    key="architectures.costs",
    title="Three costs of a layer",
    question="Which of its three costs does a design lower, and from which length on?",
    controls={
        "layer": Choice("layer", tuple(LAYERS), "DSA: index, 2,048"),
        "against": Choice("against", ("GQA, 8 heads", "MLA", "MLA, 8 bits"), "MLA, 8 bits"),
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
        Scale("kept by one sequence", "B"),
        [f"{pluralize(n, 'layer')} of {name}" for name, (n, _) in parts.items()],
        [Series("", kept, 0)],
    )
    gain = whole / sum(kept)
    return View(
        f"{binary(sum(kept))}, {sig3(gain)} times less than {L} full layers; the full ones keep "
        f"{percent(kept[0] / sum(kept))} of it, and no length saves more than {sig3(L / some)} times.",
        (bars,),
        (
            Readout.binary("a sequence keeps", sum(kept)),
            Readout("less than all full", gain, "×", f"{sig3(gain)} times"),
            Readout("a step reads it at 8 TB/s in", read_s, "s", si(read_s, "s")),
        ),
    )


STRIP = Explorer(
    key="architectures.strip",
    title="One full layer in so many",
    question="What do a few layers of full attention cost among cheaper ones?",
    controls={
        "L": Slider("layers", 24, 96, 96, step=24),
        "every": Slider("one full layer in", 1, 12, 8),
        "full": Choice("full attention", ("GQA, 8 heads", "MLA"), "MLA"),
        "others": Choice("all others", ("state (KDA)", "window of 1,024", "HCA: 128 to 1"), "state (KDA)"),
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
        Scale("tokens of a chunk", "", "pow2"),
        Scale("FLOPs of a token and head", "", "log"),
        (
            Curve("the formula", _CHUNKS, exact, 0),
            Curve("as the unit does them", _CHUNKS, padded, 1),
            RefLine("now", chunk),
        ),
    )
    fewest = "the fewest" if best == chunk else f"the fewest are at {count(best)}"
    return View(
        f"Chunks of {count(chunk)}: {count(round(now))} FLOPs a token and head by the formula, "
        f"{count(round(full))} on a unit of {side} a side, with {percent(now / full)} of it used; {fewest}.",
        (chart,),
        (
            Readout("by the formula", now, "", count(round(now))),
            Readout("on the unit", full, "", count(round(full))),
            Readout.percent("of the unit used", now / full),
            Readout("as full attention at position", now / (4 * d), "tokens", count(round(now / (4 * d)))),
        ),
    )


CHUNK = Explorer(
    key="architectures.chunk",
    title="How long a chunk",
    question="Which chunk needs the fewest FLOPs, and which keeps the matrix unit busy?",
    controls={
        "chunk": Slider("tokens of a chunk", 8, 1024, 64, "pow2"),
        "d": Slider("side of a head's state", 64, 256, 128, "pow2"),
        "side": Choice("side of the matrix unit", ("16", "128", "256"), "128"),
        "erases": Switch("erase before writing", False),
    },
    view=_chunk,
)


def _relay(*, X: int, T: int, heads: int, erases: bool, entry: str) -> View:
    state = RecurrentState(heads=heads, key=128, value=128, erases=erases)
    entries = {"MLA, 1,152 B": 1152, "8 heads, 4,096 B": 4096}[entry]
    one = state.handoff_bytes()
    relay, ring = one * (X - 1), entries * T / X * (X - 1)
    even = X * one / entries
    lengths = [2.0**e for e in range(12, 22)]
    chart = Chart(
        Scale("tokens of the sequence", "", "pow2"),
        Scale("a chip takes in, a layer", "B", "log"),
        (
            Curve("states", lengths, [relay for _ in lengths], 0),
            Curve("keys and values", lengths, [entries * t / X * (X - 1) for t in lengths], 1),
            RefLine("now", T),
        ),
    )
    who = "states are fewer bytes" if relay < ring else "keys and values are fewer bytes"
    return View(
        f"{count(T)} tokens over {X} chips: {si(relay, 'B')} of states against {si(ring, 'B')} of keys and "
        f"values; {who}. Even at {count(round(even))} tokens.",
        (chart,),
        (
            Readout("of one chip", one, "B", si(one, "B")),
            Readout("states", relay, "B", si(relay, "B")),
            Readout("keys and values", ring, "B", si(ring, "B")),
            Readout("even at", even, "tokens", count(round(even))),
        ),
    )


RELAY = Explorer(
    key="architectures.relay",
    title="Handing on a state",
    question="What crosses the links when a sequence lies on many chips?",
    controls={
        "X": Slider("chips", 2, 64, 8, "pow2"),
        "T": Slider("tokens", 4096, 2**21, 2**17, "pow2"),
        "heads": Slider("heads of 128 × 128", 16, 128, 96, step=16),
        "erases": Switch("erase before writing", True),
        "entry": Choice("against a ring of", ("MLA, 1,152 B", "8 heads, 4,096 B"), "MLA, 1,152 B"),
    },
    view=_relay,
)
