"""How many sequences does the memory hold? Blocks in place of reservations, windows in place of all."""

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

MODELS = ("LLaMA-3 8B", "LLaMA-3 70B", "LLaMA-2 13B", "Gemma-2 27B", "Qwen3 32B")
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
    """A chance that is known: lengths by their rank, not by luck."""

    share = 0.5

    def random(self) -> float:
        """Which share of all is shorter."""
        return self.share


class CacheUse(NamedTuple):
    """Bytes of a machine's memory: in use by tokens, reserved and not used; and the sequences."""

    used: float
    wasted: float
    sequences: int


@lru_cache(maxsize=64)
def lengths(mean: int, most: int) -> tuple[int, ...]:
    """Tokens of sequences at a moment of their lives: few are as long as they may be."""
    rank, drawn = Rank(), serving.lognormal(mean, 0.8, most)
    found = []
    for i in range(SAMPLE):
        rank.share = (i + 0.5) / SAMPLE
        found.append(drawn(rank))
    return tuple(found)


def room(model: str, where: str, weights: str) -> float:
    """Bytes of all chips together that are left for caches, a tenth of the memory kept back."""
    m, on = models.find(model), machine(where)
    held = inference.memory(m, spread(model, where, weights, "bf16"), on, batch=1, S=1, reserve=0.1)
    return on.chips * (on.chip.hbm_bytes - held.weights - held.reserve)


def kinds(model: str, where: str, kv: str, local: str) -> tuple[tuple[float, float], ...]:
    """(window in tokens, bytes for each token within it) of all layers; made local where that is asked."""
    m, dtype = models.find(model), stored(kv, machine(where))
    terms = kv_cache(m, 1, dtype).terms
    found = [(k.window or float("inf"), t.value) for k, t in zip(m.layer_kinds, terms, strict=True)]
    share = _LOCAL[local]
    cut = [(min(w, WINDOW), share * each) for w, each in found] if share else []
    return (*((w, (1 - share) * each) for w, each in found), *cut)


def kept(layers: tuple[tuple[float, float], ...], tokens: float) -> float:
    """Bytes of one sequence's cache."""
    return sum(each * min(tokens, window) for window, each in layers)


def filled(
    layers: tuple[tuple[float, float], ...], free: float, mean: int, most: int, block: int | None
) -> CacheUse:
    """As many sequences as fit, each in whole blocks; without blocks each reserves the longest."""
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
        said = "The weights, and a tenth of the memory for the runtime, are more than"
        return View(f"{said} {where} has.", (_tanks(whole, free, {}),))
    return View(
        _verdict(reserved, paged, block, round(sum(lengths(mean, most)) / SAMPLE), most),
        (
            _tanks(whole, free, {"reserved": reserved, f"blocks of {count(block)}": paged}),
            _blocks(layers, free, mean=mean, most=most, block=block, paged=paged),
        ),
        (
            Readout("sequences, reserved", reserved.sequences),
            Readout("in blocks", paged.sequences),
            Readout("a sequence, in the mean", paged.used / max(paged.sequences, 1), "B"),
            Readout.percent("lost in half-empty blocks", _lost(paged), 2),
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
            Series("held for nothing", [h.wasted for h in helds], 1),
        ]
    x, refs = Scale("bytes of all chips together", "B"), (RefLine("HBM", whole),)
    return Bars(x, rows, series, stacked=True, refs=refs, title="What fills the memory")


def _blocks(
    layers: tuple[tuple[float, float], ...], free: float, *, mean: int, most: int, block: int, paged: CacheUse
) -> Chart:
    sizes = [b for b in BLOCKS if b <= most]
    many = [filled(layers, free, mean, most, b).sequences for b in sizes]
    here = Points("", [block], [paged.sequences], [count(paged.sequences)], 2)
    x, y = Scale("tokens of a block", "", "pow2"), Scale("sequences that fit", "", "linear", 0.0)
    return Chart(x, y, (Curve("in blocks", sizes, many, 2), here), title="How large a block may be")


def _verdict(reserved: CacheUse, paged: CacheUse, block: int, mean: int, most: int) -> str:
    said = (
        f"Of sequences of {count(mean)} tokens in the mean and {count(most)} at most, "
        f"{count(reserved.sequences)} {'fits' if reserved.sequences == 1 else 'fit'} if each reserves room "
        f"for the longest, {count(paged.sequences)} in blocks of {pluralize(block, 'token')}"
    )
    if not reserved.sequences:
        return f"{said}."
    return f"{said}: {sig3(paged.sequences / reserved.sequences)} times as many."


CACHE = Explorer(
    key="inference.cache",
    title="Filling the cache",
    question="How many sequences fit beside the weights?",
    controls={
        "model": Choice("model", MODELS, "LLaMA-3 8B"),
        "where": Choice("machine", MACHINES, "TPU v5e 2x2"),
        "weights": Choice("weights", tuple(TYPES), "int8"),
        "kv": Choice("cache", tuple(TYPES), "bf16"),
        "mean": Slider("mean tokens", 128, 32768, 1024, "pow2"),
        "most": Slider("most tokens", 2048, 131072, 8192, "pow2"),
        "block": Slider("tokens of a block", 1, 2048, 16, "pow2"),
        "local": Choice("layers with a window of 1,024", tuple(_LOCAL)),
    },
    view=_cache,
)
