"""Explorer of the batch of a matmul: tokens per model replica, in training and in decode."""

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
    pluralize,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import count, count_in_words

_PHASES = ("training, prefill", "decode")  # all tokens of a sequence at once, or one of each


def _tokens(*, phase: str, sequences: int, length: int, copies: int, m: int, chip: str) -> View:
    on = chips.find(chip)
    tokens = sequences * (length if phase == _PHASES[0] else 1)
    if tokens < copies:
        raise ValueError(f"{tokens:,} tokens are not enough for {copies:,} replicas; choose fewer replicas")
    ridge, each = rules.ridge(on), tokens / copies
    rows = {
        "sequences": sequences,
        "tokens per step": tokens,
        "tokens per replica: B": each,
        "tokens per chip: not B": each / m,
    }
    bars = Bars(
        Scale("number", "", "log", 0.1, 1e9),
        tuple(rows),
        (Series("count", tuple(rows.values()), 0),),
        refs=(RefLine("ridge, in tokens", ridge),),
    )
    return View(
        _verdict(tokens, copies, m, each=each, ridge=ridge, name=on.name),
        (bars,),
        (
            Readout("tokens per replica: B", each, "", f"{count_in_words(each)} tokens"),
            Readout("ridge", ridge, "FLOPs/byte"),
            Readout("chips in total", copies * m, "", count(copies * m)),
        ),
    )


def _verdict(tokens: int, copies: int, m: int, *, each: float, ridge: float, name: str) -> str:
    side, bound = ("above", "Compute-bound") if each > ridge else ("below", "Memory-bound")
    spread = " The number of chips per replica does not matter." if m > 1 else ""
    return (
        f"{bound} in wide bf16 layers on {name}: {tokens:,} tokens on {pluralize(copies, 'replica')} "
        f"make B = {count_in_words(each)}, which is {side} the ridge of {ridge:.0f}.{spread}"
    )


TOKENS = Explorer(
    key="rooflines.tokens",
    title="From the global batch to the B of a matmul",
    question="How many tokens does each model replica process per step?",
    controls={
        "phase": Choice("phase", _PHASES, _PHASES[0]),
        "sequences": Slider("sequences", 1, 65536, 512, "pow2"),
        "length": Slider("tokens per sequence", 128, 131072, 4096, "pow2"),
        "copies": Slider("model replicas", 1, 16384, 128, "pow2"),
        "m": Slider("chips per replica", 1, 64, 8, "pow2"),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
    },
    view=_tokens,
)
