"""Explorers of the critical batch size: one layer at many batch sizes, and a map of all layers."""

import math
from dataclasses import replace

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Regions,
    Scale,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import roofline, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP8, FP32, INT4, INT8, DType, percent

_MIXES = {  # how X and Y are stored, how W is stored, what the matrix unit computes in
    "bf16 everything": (BF16, BF16, BF16),
    "int8 everything": (INT8, INT8, INT8),
    "fp8 everything": (FP8, FP8, FP8),
    "int8 weights, bf16 compute": (BF16, INT8, BF16),
    "int4 weights, bf16 compute": (BF16, INT4, BF16),
    "fp32 weights, bf16 compute": (BF16, FP32, BF16),
}
_BATCHES = [2.0 ** (e / 4) for e in range(57)]  # 1 to 16,384, four points an octave


# One layer at many batches


def _knee(*, B: int, D: int, F: int, mix: str, chip: str) -> View:
    on, (kind, weights, maths) = chips.find(chip), _MIXES[mix]

    def at(batch: float) -> roofline.Roofline:
        return roofline.matmul(batch, D, F, on, kind, weights=weights, maths=maths)  # type: ignore[arg-type]

    now, many = at(B), [at(batch) for batch in _BATCHES]
    exact = rules.matmul_critical_batch(D, F, on, kind, weights=weights, maths=maths)
    thumb = roofline.rule_of_thumb_batch(D, F, on, kind, weights=weights, maths=maths)
    chart = Chart(
        Scale("batch B", "tokens", "log", _BATCHES[0], _BATCHES[-1]),
        Scale("time", "s", "log"),
        (
            Curve("memory", _BATCHES, [t.memory_s for t in many], 0),
            Curve("compute", _BATCHES, [t.math_s for t in many], 1),
            *([RefLine("critical batch", exact)] if exact < _BATCHES[-1] else []),
            Points("you", [B], [now.lower_s], ["you are here"], 2),
        ),
    )
    return View(
        _knee_verdict(B, now, exact),
        (chart,),
        (
            Readout("critical batch size", exact, "tokens", _tokens(exact)),
            Readout("rule of thumb", thumb.batch, "tokens", _tokens(thumb.batch)),
            Readout("time", now.lower_s, "s"),
            Readout.percent("fraction of peak", now.attained_fraction),
            Readout("time per token", now.lower_s / B, "s"),
        ),
    )


def _tokens(batch: float) -> str:
    return "none" if math.isinf(batch) else f"{batch:,.0f} tokens"


def _knee_verdict(B: int, now: roofline.Roofline, exact: float) -> str:
    tokens, reached = pluralize(B, "token"), percent(now.attained_fraction)
    if math.isinf(exact):
        return (
            "Memory-bound: the layer is too narrow for any batch to be large enough. "
            f"With {tokens}, it attains at most {reached} of the peak."
        )
    if now.bound == "compute-bound":
        return (
            f"Compute-bound: {tokens} exceed{'s' * (B == 1)} the critical batch size of {exact:,.0f}, so "
            "doubling the batch doubles the time."
        )
    return (
        f"Memory-bound: at most {reached} of the peak. Up to the critical batch size of {exact:,.0f} tokens, "
        "additional tokens are nearly free."
    )


BATCH = Explorer(
    key="rooflines.batch",
    title="Critical batch size of a matmul",
    question="How many tokens does X[B, D] · W[D, F] need before it is no longer memory-bound?",
    controls={
        "B": Slider("tokens B", 1, 16384, 64, "log"),
        "D": Slider("width D", 128, 32768, 8192, "pow2"),
        "F": Slider("width F", 128, 131072, 32768, "pow2"),
        "mix": Choice("data types", tuple(_MIXES), "bf16 everything"),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
    },
    view=_knee,
)


# Many layers at once

_WIDTHS = [2.0 ** (7 + e / 4) for e in range(37)]  # edges: 128 to 65,536
_CENTERS = [2.0 ** (7 + e / 4 + 1 / 8) for e in range(36)]
_LEVELS = (128, 256, 512, 1024, 4096)
_LABELS = ("up to 128", "up to 256", "up to 512", "up to 1,024", "up to 4,096", "more than 4,096")


def _critical(*, ridge: int, weights: str, activations: str) -> View:
    w, a = _STORED[weights], _STORED[activations]
    # a v5e with another memory: only the ratio of its rates matters here
    hardware = replace(chips.V5E, name=f"ridge {ridge}", hbm_bytes_per_s=chips.V5E.bf16_flops_per_s / ridge)
    half = [
        [
            _level(rules.matmul_critical_batch(D, F, hardware, a, weights=w, maths=BF16))
            for D in _CENTERS[: i + 1]
        ]
        for i, F in enumerate(_CENTERS)
    ]
    cells = [
        [half[max(i, j)][min(i, j)] for j in range(len(half))] for i in range(len(half))
    ]  # D and F may trade places
    edge = rules.memory_bound_width(hardware, a, maths=BF16)
    hopeless = [[0 if level is None else None for level in row] for row in cells]
    narrowest = 1 / (2 / edge - 1 / _WIDTHS[-1])  # the D at which the border leaves the map at its top
    border = [(D, 1 / (2 / edge - 1 / D)) for D in _between(narrowest, _WIDTHS[-1])]
    width = rules.matmul_critical_batch(4096, 4096, hardware, a, weights=w, maths=BF16)
    needs = "is memory-bound at any batch size" if math.isinf(width) else f"needs {width:,.0f} tokens"
    chart = Chart(
        Scale("width D", "", "log", _WIDTHS[0], _WIDTHS[-1]),
        Scale("width F", "", "log", _WIDTHS[0], _WIDTHS[-1]),
        (
            Regions(_LABELS, _WIDTHS, _WIDTHS, cells, ramp=True),
            Regions(("memory-bound at any batch size",), _WIDTHS, _WIDTHS, hopeless, colors=(1,)),
            Curve("", [D for D, _ in border], [F for _, F in border], 1),
        ),
        "Critical batch size in tokens",
    )
    return View(
        f"A layer with D = F = 4,096 {needs}. Square layers with D = F up to {edge:,.0f} are never "
        "compute-bound.",
        (chart,),
        (
            Readout("widest layer (D = F) that is never compute-bound", edge, "", f"up to {edge:,.0f}"),
            Readout("very wide layers", ridge * w.bytes / 2, "tokens", f"{ridge * w.bytes / 2:,.0f} tokens"),
        ),
    )


_STORED: dict[str, DType] = {
    "4 bytes (fp32)": FP32,
    "2 bytes (bf16)": BF16,
    "1 byte (int8)": INT8,
    "half a byte (int4)": INT4,
}


def _level(batch: float) -> int | None:
    return None if math.isinf(batch) else sum(batch > level for level in _LEVELS)


def _between(low: float, high: float) -> list[float]:
    """Widths from `low` to `high`, close together near `low`, where the border is steep."""
    return [low * (high / low) ** ((e / 40) ** 3) for e in range(41)]


CRITICAL_BATCH = Explorer(
    key="rooflines.critical_batch",
    title="Map of critical batch sizes",
    question="Which D × F layers can be compute-bound at all, and how large a batch do they need?",
    controls={
        "ridge": Slider("ridge of the chip", 100, 1200, 240, unit="FLOPs/byte", step=10),
        "weights": Choice("bytes per weight", tuple(_STORED), "2 bytes (bf16)"),
        "activations": Choice("bytes per activation", tuple(_STORED)[:3], "2 bytes (bf16)"),
    },
    view=_critical,
)
