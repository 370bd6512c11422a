"""Explorer of the width that an expert needs, with 8 chips in a scale-up domain and with 64 or 72."""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    CLUSTERS,
    DOMAINS,
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
    Switch,
    View,
    cluster,
    join_and,
)
from scalingbook_lib.steps import limits
from scalingbook_lib.steps.limits import Limit
from scalingbook_lib.units import BF16, FP8, count

_MOST = 512
_SIZES = [2**e for e in range(1, 10)]
_OUT = {"bf16, bf16": BF16, "fp8, bf16": FP8}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of experts, and how its tokens travel."""

    k: int
    E: int
    shared: int
    gated: bool
    out: str
    once: bool


@lru_cache(maxsize=8192)
def width(machine: str, Z: int, layer: Layer) -> Limit:
    """The width that the experts need when Z chips of that machine share them."""
    return limits.expert_parallel(
        cluster(machine, Z),
        Z,
        k=layer.k,
        E=layer.E,
        shared=layer.shared,
        gated=layer.gated,
        dispatch=_OUT[layer.out],
        once=layer.once,
    )


def _moe(*, F: int, Z: int, k: int, E: int, shared: int, gated: bool, out: str, once: bool) -> View:
    layer = Layer(k=k, E=E, shared=shared, gated=gated, out=out, once=once)
    found = {name: width(name, Z, layer) for name in CLUSTERS}
    return View(
        _verdict(F, Z, found),
        (_chart(F, Z, layer, found), _bars(F, found)),
        tuple(Readout(f"{name}: minimum F", f.least, "", count(round(f.least))) for name, f in found.items()),
    )


def _chart(F: int, Z: int, layer: Layer, found: dict[str, Limit]) -> Chart:
    sizes = [z for z in _SIZES if z <= layer.E]
    curves = [
        Curve(name, sizes, [width(name, z, layer).least for z in sizes], color)
        for color, name in enumerate(CLUSTERS)
    ]
    return Chart(
        Scale("GPUs Z that share the experts", "", "pow2", 2, _MOST),
        Scale("width F that hides the AllToAll", "", "log"),
        (
            *curves,
            *(Points("", [Z], [f.least], color=color) for color, f in enumerate(found.values())),
            RefLine(f"your F, {count(F)}", F, axis="y"),
        ),
    )


def _bars(F: int, found: dict[str, Limit]) -> Bars:
    """Time of the AllToAll divided by the compute time; at 1, they are equal."""
    return Bars(
        Scale("AllToAll time / compute time", "×"),
        list(found),
        (Series("dispatch and combine", [f.least / F for f in found.values()], 0),),
        refs=(RefLine("hidden up to 1", 1),),
    )


def _verdict(F: int, Z: int, found: dict[str, Limit]) -> str:
    hidden = [name for name, f in found.items() if f.holds(F)]
    worst = max(found, key=lambda name: found[name].least)
    who = join_and([_short(name) for name in hidden]) if hidden else "no machine"
    said = f"Over {count(Z)} GPUs, {who} can hide the AllToAll of experts that are {count(F)} wide"
    if len(hidden) == len(found):
        return f"{said}."
    level = "NVLink" if found[worst].bound == "NVLink" else "their NICs"
    return (
        f"{said}. {_short(worst)} would need F = {count(round(found[worst].least))}, "
        f"{count(found[worst].least / F)} times as wide, because of {level}."
    )


def _short(name: str) -> str:
    return f"{DOMAINS[name][0]}s in domains of {DOMAINS[name][1]}"


MOE = Explorer(
    key="gpus.moe",
    title="Expert parallelism in small and large domains",
    question="How wide must an expert be to hide the AllToAll behind its compute?",
    controls={
        "F": Slider("width F of an expert", 512, 32768, 2048, "log", step=128),
        "Z": Slider("GPUs Z", 2, _MOST, 64, "pow2"),
        "k": Slider("experts per token k", 1, 16, 8),
        "E": Slider("experts E", 16, _MOST, 256, "pow2"),
        "shared": Slider("shared experts", 0, 2, 1),
        "gated": Switch("gated MLP, three matrices", True),
        "out": Choice("dtypes: dispatch, combine", tuple(_OUT), "fp8, bf16"),
        "once": Switch("deduplicate copies per GPU and domain", True),
    },
    view=_moe,
)
