"""What counts as the batch of a matmul? The tokens that meet one copy of the weights."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Bars,
    Chips,
    Choice,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import count

_PHASES = ("training, prefill", "decoding")  # every token of a sequence at once, or one of each


def _tokens(*, phase: str, sequences: int, length: int, copies: int, m: int, chip: str) -> View:
    on = chips.find(chip)
    tokens = sequences * (length if phase == _PHASES[0] else 1)
    if tokens < copies:
        raise ValueError(f"{tokens:,} tokens cannot feed {copies:,} copies of the weights; have fewer copies")
    ridge, each = rules.ridge(on), tokens / copies
    rows = {
        "sequences": sequences,
        "tokens at once": tokens,
        "tokens of each copy: B": each,
        "tokens ÷ chips: not B": each / m,
    }
    bars = Bars(
        Scale("how many", "", "log", 0.1, 1e9),
        tuple(rows),
        (Series("count", tuple(rows.values()), 0),),
        refs=(RefLine("ridge, in tokens", ridge),),
    )
    return View(
        _verdict(tokens, copies, m, each=each, ridge=ridge, name=on.name),
        (bars,),
        (
            Readout("tokens of each copy: B", each, "", f"{count(each)} tokens"),
            Readout("ridge", ridge, "FLOPs/byte"),
            Readout("chips in all", copies * m, "", count(copies * m)),
        ),
    )


def _verdict(tokens: int, copies: int, m: int, *, each: float, ridge: float, name: str) -> str:
    side, bound = ("above", "compute-bound") if each > ridge else ("below", "memory-bound")
    chips_of = f", whether on one chip or on {m}" if m > 1 else ""
    return (
        f"{tokens:,} tokens meet {copies:,} cop{'ies' if copies > 1 else 'y'} of the weights: "
        f"B = {count(each)} on each{chips_of}, {side} the ridge of {ridge:.0f}, so wide bf16 layers "
        f"are {bound} on {name}."
    )


TOKENS = Explorer(
    key="rooflines.tokens",
    title="From the whole batch to the B of a matmul",
    question="How many tokens meet one copy of the weights?",
    controls={
        "phase": Choice("phase", _PHASES, _PHASES[0]),
        "sequences": Slider("sequences", 1, 65536, 512, "pow2"),
        "length": Slider("tokens in a sequence", 128, 131072, 4096, "pow2"),
        "copies": Slider("copies of the weights", 1, 16384, 2048, "pow2"),
        "m": Slider("chips that share a copy", 1, 64, 8, "pow2"),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
    },
    view=_tokens,
)
