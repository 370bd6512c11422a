"""Who holds which part of the cache? Eight chips, heads, sequences and tokens."""

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
    "32 heads, MHA": "LLaMA-2 7B",
    "8 heads, GQA": "LLaMA-3 8B",
    "2 heads, GQA": "Qwen2.5 1.5B",
    "1 head, MQA": "Gemma 2B",
}
WHERE, CHIPS = "TPU v5e 2x4", 8
REST = ("sequences", "tokens", "heads, copied")


class CacheSplit(NamedTuple):
    """Ways of the cache over heads, sequences and tokens; `copies` of every head."""

    heads: int
    sequences: int
    tokens: int

    def copies(self, K: int) -> int:
        """How many chips hold the same."""
        return max(self.heads // K, 1)


def layout(ways: CacheSplit) -> inference.Layout:
    """Eight chips as one tensor group, weights and cache in int8."""
    return inference.Layout(tp=CHIPS, kv_batch=ways.sequences, kv_sequence=ways.tokens, weights=INT8, kv=INT8)


def split(heads: int, rest: str) -> CacheSplit:
    """So many ways over heads, and the rest over what is named; "copied" leaves all to the heads."""
    over = CHIPS // heads
    ways = {"sequences": (heads, over, 1), "tokens": (heads, 1, over), "heads, copied": (CHIPS, 1, 1)}
    return CacheSplit(*ways[rest])


def _layout(*, kind: str, heads: str, rest: str, B: int, S: int) -> View:
    m, on, ways = models.find(MODELS[kind]), machine(WHERE), split(int(heads), rest)
    if ways.heads > m.N:
        heads_of = f"{m.name} has {m.N} heads"
        return View(
            f"{heads_of}, fewer than {ways.heads} ways.",
            (Grid("What each chip keeps of the cache", ["chip"], ("K",), [[Cell("–", None, "nothing")]]),),
        )
    o = layout(ways)
    step = inference.decode(m, on, o, batch=B, S=S)
    kept = inference.memory(m, o, on, batch=B, S=S)
    held, least = kept.kv, kept.kv / _waste(m.K, ways, B)
    return View(
        _verdict(kind, ways, kept, least, step),
        (_painted(m.K, ways, B), _moved(step)),
        (
            Readout("cache of the fullest chip", held, "B"),
            Readout("an eighth of all", least, "B"),
            Readout("the step", step.total_s, "s"),
            Readout("cache read", step.terms.get("KV", 0.0), "s"),
            Readout("links", step.network_s, "s"),
        ),
        columns=2,
    )


def _waste(K: int, ways: CacheSplit, B: int) -> float:
    """What a chip holds over its eighth: copies of heads, and whole sequences where they do not divide."""
    whole = -(-B // ways.sequences) * ways.sequences / B
    return ways.copies(K) * whole


def _painted(K: int, ways: CacheSplit, B: int) -> Grid:
    """Each chip a row: which heads, which sequences, which tokens it holds."""
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
        "What each chip keeps of the cache", [f"chip {i + 1}" for i in range(CHIPS)], ("K", "B", "S"), rows
    )


def _range(at: int, ways: int, whole: int) -> str:
    each = whole // ways
    return f"{at * each + 1}" if each == 1 else f"{at * each + 1}–{(at + 1) * each}"


def _whose(at: int, ways: int, B: int) -> str:
    """Which of B sequences are this part's; whole ones, so that some parts may have none."""
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
        (Series("links", list(busy.values()), 3),),
        title="What goes between the chips, and what it waits for",
    )


def _verdict(
    kind: str, ways: CacheSplit, kept: inference.ServingMemory, least: float, step: inference.InferenceStep
) -> str:
    parts = {"heads": ways.heads, "sequences": ways.sequences, "tokens": ways.tokens}
    how = " and ".join(f"{n} ways over {what}" for what, n in parts.items() if n > 1)
    said = f"{kind}, {how}: each chip keeps {si(kept.kv, 'B')}, its eighth and no more"
    if kept.kv > 1.01 * least:
        said = f"{kind}, {how}: some chip keeps {si(kept.kv, 'B')}, {kept.kv / least:.3g} times an eighth"
    if not kept.fits:
        return f"{said}; with the weights that is more than the {binary(kept.chip.hbm_bytes)} it has."
    share = percent(step.network_s / step.total_s)
    return f"{said}; a step takes {si(step.total_s, 's')}, {share} of it links."


LAYOUT = Explorer(
    key="inference.layout",
    title="The cache over eight chips",
    question="Who should hold which keys and values?",
    controls={
        "kind": Choice("keys and values", tuple(MODELS), "8 heads, GQA"),
        "heads": Choice("ways over heads", ("1", "2", "4", "8"), "2"),
        "rest": Choice("the rest over", REST),
        "B": Slider("sequences, B", 1, 256, 32, "pow2"),
        "S": Slider("tokens of context", 512, 65536, 8192, "pow2"),
    },
    view=_layout,
)
