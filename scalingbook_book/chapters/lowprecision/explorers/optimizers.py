"""Explorers of the training state per chip by optimizer, and of the cost of Muon's iteration by layout."""

from scalingbook_book.chapters.lowprecision.case import LAYOUTS as NAMES
from scalingbook_book.chapters.lowprecision.case import PARTS
from scalingbook_book.reader.explorers.parts import (
    Bars,
    Choice,
    Explorer,
    Readout,
    Scale,
    Series,
    Slider,
    View,
    join_and,
    pluralize,
    sig3,
)
from scalingbook_lib import models
from scalingbook_lib.machines import Slice, chips
from scalingbook_lib.training.optimizers import OPTIMIZERS, layouts, orthogonalized
from scalingbook_lib.units import percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "DeepSeek-V3", "Kimi K2")
_SHARED = {  # the parts that a stage of ZeRO shards
    "no ZeRO": (),
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
    series = [
        Series(label, [one[part] for one in every.values()], color) for part, (label, color) in PARTS.items()
    ]
    bars = Bars(Scale("bytes per chip", "B"), list(every), series, stacked=True)
    now, adamw = sum(every[optimizer].values()), sum(every["AdamW"].values())
    each = OPTIMIZERS[optimizer].state(m.params).bytes_per_parameter
    fits = [c.name for c in (chips.V5E, chips.H100, chips.TPU7X) if c.hbm_bytes > now]
    where = f"fits on {join_and(fits)}" if fits else "does not fit on v5e, H100 or TPU7x"
    return View(
        f"{optimizer} for {model}, {zero}, {pluralize(n, 'chip')}: {si(now, 'B')} per chip, "
        f"{sig3(now / adamw, 2)} times as much as AdamW. It {where}.",
        (bars,),
        (
            Readout("per chip", now, "B", si(now, "B")),
            Readout("bytes per parameter over all chips", each, "", f"{each:.4g}"),
            Readout("relative to AdamW", now / adamw, "", percent(now / adamw)),
        ),
    )


STATE = Explorer(
    key="lowprecision.state",
    title="Training state by optimizer and ZeRO stage",
    question="How many bytes of training state does each chip hold?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "optimizer": Choice("optimizer", tuple(OPTIMIZERS), "Muon"),
        "zero": Choice("sharding", tuple(_SHARED), "ZeRO-3"),
        "n": Slider("data-parallel chips", 1, 1024, 64, "pow2"),
    },
    view=_state,
)

_SHAPES = {8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8"}


def _layouts(*, model: str, m: int, n: int, ways: int, batch: float) -> View:
    ways_of = layouts(m, n, Slice.of(chips.V5P, _SHAPES[ways]))
    series = [
        Series("compute", [one.math_s for one in ways_of], 1),
        Series("network", [one.network_s for one in ways_of], 2),
    ]
    best = min(ways_of, key=lambda one: one.total_s)
    worst = max(ways_of, key=lambda one: one.total_s)
    found = models.find(model)
    share = orthogonalized(found) / (6 * found.active_params * batch * 1e6)
    names = [NAMES[one.name] for one in ways_of]
    bars = Bars(Scale("average time per matrix", "s"), names, series, stacked=True)
    return View(
        f"{m:,} × {n:,} on {ways} TPU v5p: the layout “{NAMES[best.name]}” is fastest and takes "
        f"{si(best.total_s, 's')}; “{NAMES[worst.name]}” takes {sig3(worst.total_s / best.total_s, 2)} "
        f"times as long. For all of {model}, Muon takes {percent(share)} of a step's FLOPs at "
        f"{sig3(batch)} million tokens.",
        (bars,),
        (
            Readout("fastest", best.total_s, "s", si(best.total_s, "s")),
            Readout("slowest", worst.total_s, "s", si(worst.total_s, "s")),
            Readout("bytes sent per chip, fastest layout", best.sent_bytes, "B", si(best.sent_bytes, "B")),
            Readout.percent("share of the step's FLOPs", share),
        ),
    )


LAYOUTS = Explorer(
    key="lowprecision.layouts",
    title="Layouts of Muon's iteration",
    question="How long does it take, on average, to orthogonalize a matrix in each layout?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "m": Slider("short side", 512, 8192, 8192, "pow2"),
        "n": Slider("long side", 8192, 65_536, 32_768, "pow2"),
        "ways": Slider("TPU v5p chips", 8, 256, 64, "pow2"),
        "batch": Slider("million tokens per step", 0.5, 128.0, 4.0, "log"),
    },
    view=_layouts,
)
