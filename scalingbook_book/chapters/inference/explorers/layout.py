"""Explorer: the KV cache sharded over eight chips by heads, sequences and tokens."""

from typing import NamedTuple

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Cell,
    Choice,
    Explorer,
    Grid,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    machine,
)
from scalingbook_lib import inference, models
from scalingbook_lib.units import INT8, binary, percent, si

MODELS = {
    "32 heads, MHA": "Llama 2 7B",
    "8 heads, GQA": "Llama 3 8B",
    "2 heads, GQA": "Qwen2.5 1.5B",
    "1 head, MQA": "Gemma 2B",
}
WHERE, CHIPS = "TPU v5e 2x4", 8
REST = ("sequences", "tokens", "heads (replicated)")


class CacheSplit(NamedTuple):
    """Degrees of sharding of the cache over heads, sequences and tokens."""

    heads: int
    sequences: int
    tokens: int

    def copies(self, K: int) -> int:
        """The number of chips that hold the same KV head."""
        return max(self.heads // K, 1)


def layout(ways: CacheSplit) -> inference.Layout:
    """Eight chips as one tensor group, weights and cache in int8."""
    return inference.Layout(tp=CHIPS, kv_batch=ways.sequences, kv_sequence=ways.tokens, weights=INT8, kv=INT8)


def split(heads: int, rest: str) -> CacheSplit:
    """Sharded this many ways by heads and the rest by `rest`; "replicated" shards by heads only."""
    over = CHIPS // heads
    ways = {"sequences": (heads, over, 1), "tokens": (heads, 1, over), "heads (replicated)": (CHIPS, 1, 1)}
    return CacheSplit(*ways[rest])


def _layout(*, kind: str, heads: str, rest: str, B: int, S: int) -> View:
    m, on, ways = models.find(MODELS[kind]), machine(WHERE), split(int(heads), rest)
    if ways.heads > m.N:
        heads_of = f"{m.name} has {m.N} heads"
        return View(
            f"{heads_of}, fewer than the {ways.heads} chips.",
            (Grid("The shard of the cache on each chip", ["chip"], ("K",), [[Cell("–", None, "nothing")]]),),
        )
    o = layout(ways)
    step = inference.decode(m, on, o, batch=B, S=S)
    kept = inference.memory(m, o, on, batch=B, S=S)
    held, least = kept.kv, kept.kv / _waste(m.K, ways, B)
    return View(
        _verdict(kind, ways, kept, least, step),
        (_painted(m.K, ways, B), _moved(step)),
        (
            Readout("cache on the fullest chip", held, "B"),
            Readout("an eighth of the cache", least, "B"),
            Readout("step time", step.total_s, "s"),
            Readout("reading the cache", step.terms.get("KV", 0.0), "s"),
            Readout("network", step.network_s, "s"),
        ),
        columns=2,
    )


def _waste(K: int, ways: CacheSplit, B: int) -> float:
    """What the fullest chip holds, over an eighth: more with replicated heads or an uneven batch."""
    whole = -(-B // ways.sequences) * ways.sequences / B
    return ways.copies(K) * whole


def _painted(K: int, ways: CacheSplit, B: int) -> Grid:
    """A row per chip: the heads, sequences and tokens that it holds."""
    rows = []
    for chip in range(CHIPS):
        head, rest = divmod(chip, ways.sequences * ways.tokens)
        at, token = divmod(rest, ways.tokens)
        own = _range(head // ways.copies(K), min(ways.heads, K), K)
        rows.append(
            [
                Cell(f"head{'s' * (K > 1)} {own}", head // ways.copies(K) % 6, "its heads", level=0.5),
                Cell(_whose(at, ways.sequences, B), at % 6, "its sequences", level=0.5),
                Cell(
                    "all tokens" if ways.tokens == 1 else f"{token + 1} of {ways.tokens}",
                    token % 6,
                    "its tokens",
                    level=0.5,
                ),
            ]
        )
    return Grid(
        "The shard of the cache on each chip", [f"chip {i + 1}" for i in range(CHIPS)], ("K", "B", "S"), rows
    )


def _range(at: int, ways: int, whole: int) -> str:
    each = whole // ways
    return f"{at * each + 1}" if each == 1 else f"{at * each + 1}–{(at + 1) * each}"


def _whose(at: int, ways: int, B: int) -> str:
    """The sequences of B that this part holds; they are not divided, so a part may have none."""
    each = -(-B // ways)
    first, last = at * each + 1, min((at + 1) * each, B)
    if first > B:
        return "none"
    return f"{first if first == last else f'{first}–{last}'} of {B}"


def _moved(step: inference.InferenceStep) -> Bars:
    busy = {name: s for name, s in step.collectives.items() if s}
    labels = [f"{name} ({step.bound[name]})" for name in busy]
    return Bars(
        Scale("time in a step", "s"),
        labels,
        (Series("collectives", list(busy.values()), 3),),
        title="Collectives of a step, and what limits them",
    )


def _verdict(
    kind: str, ways: CacheSplit, kept: inference.ServingMemory, least: float, step: inference.InferenceStep
) -> str:
    parts = {"heads": ways.heads, "sequences": ways.sequences, "tokens": ways.tokens}
    how = " and ".join(f"{n} ways by {what}" for what, n in parts.items() if n > 1)
    said = f"{kind}, sharded {how}: each chip holds {si(kept.kv, 'B')}, exactly an eighth of the cache"
    if kept.kv > 1.01 * least:
        said = (
            f"{kind}, sharded {how}: the fullest chip holds {si(kept.kv, 'B')}, "
            f"{kept.kv / least:.3g} times its eighth of the cache"
        )
    if not kept.fits:
        return f"{said}. Together with the weights, that exceeds its {binary(kept.chip.hbm_bytes)} of memory."
    share = percent(step.network_s / step.total_s)
    return f"{said}. A step takes {si(step.total_s, 's')}, of which the network takes {share}."


LAYOUT = Explorer(
    key="inference.layout",
    title="Sharding the KV cache over eight chips",
    question="Should the cache be sharded by heads, by sequences or by tokens?",
    controls={
        "kind": Choice("KV heads", tuple(MODELS), "8 heads, GQA"),
        "heads": Choice("degree over heads", ("1", "2", "4", "8"), "2"),
        "rest": Choice("remaining chips shard by", REST),
        "B": Slider("sequences, B", 1, 256, 32, "pow2"),
        "S": Slider("context length", 512, 65536, 8192, "pow2"),
    },
    view=_layout,
)
