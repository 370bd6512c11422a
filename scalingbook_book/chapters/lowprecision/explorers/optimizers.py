"""What does an optimizer keep on each chip, and what does orthogonalizing cost in a step?"""

from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib import models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training.optimizers import OPTIMIZERS, layouts, orthogonalized
from scalingbook_lib.units import percent, si

MODELS = ("LLaMA-3 8B", "LLaMA-3 70B", "LLaMA-3 405B", "DeepSeek-V3", "Kimi K2")
PARTS = {"weights": 0, "gradients": 1, "master": 3, "moments": 4, "rows and columns": 5, "sides": 2}
_SHARED = {  # the parts that a stage of ZeRO shares
    "plain": (),
    "ZeRO-1": ("master", "moments", "rows and columns", "sides"),
    "ZeRO-2": ("gradients", "master", "moments", "rows and columns", "sides"),
    "ZeRO-3": tuple(PARTS),
}


def _state(*, model: str, optimizer: str, zero: str, n: int) -> View:
    m = models.find(model)

    def held(name: str) -> dict[str, float]:
        state = OPTIMIZERS[name].state(m.params)
        return {part: state.get(part) / (n if part in _SHARED[zero] else 1) for part in PARTS}

    every = {name: held(name) for name in OPTIMIZERS}
    series = [Series(part, [one[part] for one in every.values()], color) for part, color in PARTS.items()]
    bars = Bars(Scale("bytes on each chip", "B"), list(every), series, stacked=True)
    now, adamw = sum(every[optimizer].values()), sum(every["AdamW"].values())
    each = OPTIMIZERS[optimizer].state(m.params).bytes_per_parameter
    fits = [c.name for c in (chips.V5E, chips.H100, chips.TPU7X) if c.hbm_bytes > now]
    where = f"fits {', '.join(fits)}" if fits else "fits none of v5e, H100, TPU7x"
    return View(
        f"{optimizer} for {model}, {zero} on {pluralize(n, 'chip')}: {si(now, 'B')} each, "
        f"{sig3(now / adamw, 2)} of AdamW's; it {where}.",
        (bars,),
        (
            Readout("on each chip", now, "B", si(now, "B")),
            Readout("bytes a parameter, all together", each, "", f"{each:.4g}"),
            Readout("of AdamW's", now / adamw, "", percent(now / adamw)),
        ),
    )


STATE = Explorer(
    key="lowprecision.state",
    title="State, by optimizer and stage",
    question="What does an optimizer keep on each chip?",
    controls={
        "model": Choice("model", MODELS, "LLaMA-3 70B"),
        "optimizer": Choice("optimizer", tuple(OPTIMIZERS), "Muon"),
        "zero": Choice("shared by", tuple(_SHARED), "ZeRO-3"),
        "n": Slider("chips that share", 1, 1024, 64, "pow2"),
    },
    view=_state,
)

_SHAPES = {8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8"}


def _layouts(*, model: str, m: int, n: int, ways: int, batch: float) -> View:
    ways_of = layouts(m, n, Slice.of(chips.V5P, _SHAPES[ways]))
    series = [
        Series("arithmetic", [one.math_s for one in ways_of], 1),
        Series("network", [one.network_s for one in ways_of], 2),
    ]
    best = min(ways_of, key=lambda one: one.total_s)
    worst = max(ways_of, key=lambda one: one.total_s)
    found = models.find(model)
    share = orthogonalized(found) / (6 * found.active_params * batch * 1e6)
    bars = Bars(Scale("a matrix", "s"), [one.name for one in ways_of], series, stacked=True)
    return View(
        f"{m:,} x {n:,} on {ways} TPU v5p: {best.name}, {si(best.total_s, 's')}; "
        f"{worst.name}, {sig3(worst.total_s / best.total_s, 2)} times as long. All of {model}: "
        f"{percent(share)} of the FLOPs of a step of {sig3(batch)} million tokens.",
        (bars,),
        (
            Readout("fastest", best.total_s, "s", si(best.total_s, "s")),
            Readout("slowest", worst.total_s, "s", si(worst.total_s, "s")),
            Readout("sent by a chip, fastest", best.sent_bytes, "B", si(best.sent_bytes, "B")),
            Readout.percent("of a step's FLOPs", share),
        ),
    )


LAYOUTS = Explorer(
    key="lowprecision.layouts",
    title="Who holds the matrix",
    question="How long does orthogonalizing one matrix take, by who holds which part?",
    controls={
        "model": Choice("model", MODELS, "LLaMA-3 70B"),
        "m": Slider("short side", 512, 8192, 8192, "pow2"),
        "n": Slider("long side", 8192, 65_536, 32_768, "pow2"),
        "ways": Slider("TPU v5p", 8, 256, 64, "pow2"),
        "batch": Slider("million tokens in a step", 0.5, 128.0, 4.0, "log"),
    },
    view=_layouts,
)
