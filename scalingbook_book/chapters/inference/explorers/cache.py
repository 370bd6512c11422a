"""Explorer: sequences that fit into memory, with reservations and with a paged KV cache."""

from functools import lru_cache
from random import Random
from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    TYPES,
    Bars,
    Chart,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    machine,
    pluralize,
    sig3,
    spread,
    stored,
)
from scalingbook_lib import inference, models, serving
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.units import count

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 2 13B", "Gemma-2 27B", "Qwen3 32B")
MACHINES = (
    "TPU v5e 2x2",
    "TPU v5e 2x4",
    "TPU v5e 4x4",
    "TPU v5p 2x2x2",
    "TPU v6e 2x2",
    "H100 × 1",
    "H100 × 8",
)
BLOCKS = tuple(2**e for e in range(12))
SAMPLE = 128
WINDOW = 1024
_LOCAL = {"the model's own": 0.0, "1 of 2": 1 / 2, "5 of 6": 5 / 6}


class Rank(Random):
    """A deterministic stand-in for random numbers, which gives the quantile `share` of a distribution."""

    share = 0.5

    def random(self) -> float:
        """The share of all values that are smaller."""
        return self.share


class CacheUse(NamedTuple):
    """Memory in bytes that tokens use, bytes allocated but unused, and the number of sequences."""

    used: float
    wasted: float
    sequences: int


@lru_cache(maxsize=64)
def lengths(mean: int, most: int) -> tuple[int, ...]:
    """Lengths in tokens of `SAMPLE` sequences, lognormal with this mean and cut off at `most`."""
    rank, drawn = Rank(), serving.lognormal(mean, 0.8, most)
    found = []
    for i in range(SAMPLE):
        rank.share = (i + 0.5) / SAMPLE
        found.append(drawn(rank))
    return tuple(found)


def room(model: str, where: str, weights: str) -> float:
    """Bytes that all chips together have left for caches, with a tenth of the memory in reserve."""
    m, on = models.find(model), machine(where)
    held = inference.memory(m, spread(model, where, weights, "bf16"), on, batch=1, S=1, reserve=0.1)
    return on.chips * (on.chip.hbm_bytes - held.weights - held.reserve)


def kinds(model: str, where: str, kv: str, local: str) -> tuple[tuple[float, float], ...]:
    """(window in tokens, bytes per token within it) of each kind of layer; a share `local` has a window."""
    m, dtype = models.find(model), stored(kv, machine(where))
    terms = kv_cache(m, 1, dtype).terms
    found = [(k.window or float("inf"), t.value) for k, t in zip(m.layer_kinds, terms, strict=True)]
    share = _LOCAL[local]
    cut = [(min(w, WINDOW), share * each) for w, each in found] if share else []
    return (*((w, (1 - share) * each) for w, each in found), *cut)


def kept(layers: tuple[tuple[float, float], ...], tokens: float) -> float:
    """KV-cache bytes of one sequence."""
    return sum(each * min(tokens, window) for window, each in layers)


def filled(
    layers: tuple[tuple[float, float], ...], free: float, mean: int, most: int, block: int | None
) -> CacheUse:
    """Memory use of as many sequences as fit: in whole blocks, or each at the maximum length."""
    tokens = lengths(mean, most)
    used = sum(kept(layers, n) for n in tokens) / SAMPLE
    each = kept(layers, most)
    if block:
        each = sum(kept(layers, -(-n // block) * block) for n in tokens) / SAMPLE
    sequences = int(free // each) if free > 0 else 0
    return CacheUse(sequences * used, sequences * (each - used), sequences)


def _cache(
    *, model: str, where: str, weights: str, kv: str, mean: int, most: int, block: int, local: str
) -> View:
    free, whole = room(model, where, weights), machine(where).chips * machine(where).chip.hbm_bytes
    mean = min(mean, most)
    layers = kinds(model, where, kv, local)
    reserved, paged = (filled(layers, free, mean, most, b) for b in (None, block))
    if free <= 0:
        said = (
            "The weights do not fit: with a tenth of the memory reserved for the runtime, they need more than"
        )
        return View(f"{said} {where} has.", (_tanks(whole, free, {}),))
    return View(
        _verdict(reserved, paged, block, round(sum(lengths(mean, most)) / SAMPLE), most),
        (
            _tanks(whole, free, {"reserved": reserved, f"blocks of {count(block)}": paged}),
            _blocks(layers, free, mean=mean, most=most, block=block, paged=paged),
        ),
        (
            Readout("sequences with reservations", reserved.sequences),
            Readout("sequences with paging", paged.sequences),
            Readout("mean cache per sequence", paged.used / max(paged.sequences, 1), "B"),
            Readout.percent("wasted in partly filled blocks", _lost(paged), 2),
        ),
        columns=2,
    )


def _lost(held: CacheUse) -> float:
    whole = held.used + held.wasted
    return held.wasted / whole if whole else 0.0


def _tanks(whole: float, free: float, ways: dict[str, CacheUse]) -> Bars:
    first = min(whole - free, whole) if free > 0 else whole - free
    rows = list(ways) or ["weights and runtime"]
    helds = list(ways.values()) or [CacheUse(0.0, 0.0, 0)]
    series = [Series("weights and runtime", [first] * len(rows), 0)]
    if ways:
        series += [
            Series("tokens in the cache", [h.used for h in helds], 2),
            Series("allocated but unused", [h.wasted for h in helds], 1),
        ]
    x, refs = Scale("bytes on all chips", "B"), (RefLine("HBM", whole),)
    return Bars(x, rows, series, stacked=True, refs=refs, title="Memory of all chips")


def _blocks(
    layers: tuple[tuple[float, float], ...], free: float, *, mean: int, most: int, block: int, paged: CacheUse
) -> Chart:
    sizes = [b for b in BLOCKS if b <= most]
    many = [filled(layers, free, mean, most, b).sequences for b in sizes]
    here = Points("", [block], [paged.sequences], [count(paged.sequences)], 2)
    x, y = Scale("block size in tokens", "", "pow2"), Scale("sequences that fit", "", "linear", 0.0)
    return Chart(x, y, (Curve("paged", sizes, many, 2), here), title="Sequences that fit, by block size")


def _verdict(reserved: CacheUse, paged: CacheUse, block: int, mean: int, most: int) -> str:
    said = (
        f"Sequences have {count(mean)} tokens on average and at most {count(most)}. If each sequence "
        f"reserves memory for the maximum, {count(reserved.sequences)} "
        f"{'fits' if reserved.sequences == 1 else 'fit'}. With blocks of {pluralize(block, 'token')}, "
        f"{count(paged.sequences)} {'fits' if paged.sequences == 1 else 'fit'}"
    )
    if not reserved.sequences:
        return f"{said}."
    return f"{said}, {sig3(paged.sequences / reserved.sequences)} times as many."


CACHE = Explorer(
    key="inference.cache",
    title="Paged KV cache: how many sequences fit?",
    question="How many sequences fit in the memory that the weights leave free?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 8B"),
        "where": Choice("machine", MACHINES, "TPU v5e 2x2"),
        "weights": Choice("weight dtype", tuple(TYPES), "int8"),
        "kv": Choice("KV-cache dtype", tuple(TYPES), "bf16"),
        "mean": Slider("mean length in tokens", 128, 32768, 1024, "pow2"),
        "most": Slider("maximum length in tokens", 2048, 131072, 8192, "pow2"),
        "block": Slider("block size in tokens", 1, 2048, 16, "pow2"),
        "local": Choice("layers with a window of 1,024", tuple(_LOCAL)),
    },
    view=_cache,
)
