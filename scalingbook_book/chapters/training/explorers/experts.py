"""Is the way to the experts longer than their work? Tokens exchanged over a torus and over switches."""

from dataclasses import dataclass
from functools import lru_cache

from scalingbook_book.reader.explorers.parts import (
    DOMAINS,
    RACKS,
    Bars,
    Chart,
    Chips,
    Choice,
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
)
from scalingbook_lib import models
from scalingbook_lib.machines import Machine, Slice, chips
from scalingbook_lib.steps import limits
from scalingbook_lib.steps.limits import RoutedLayer
from scalingbook_lib.units import BF16, FP8, DType, count, si

MODELS = ("Mixtral 8x22B", "Qwen3 235B-A22B", "gpt-oss 120B", "DeepSeek-V3")
_CUBES = {8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8", 512: "8x8x8"}
_SQUARES = {8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
TORI = {"TPU v5p": _CUBES, "TPU7x": _CUBES, "TPU v5e": _SQUARES, "TPU v6e": _SQUARES}
JOINED = (*TORI, *DOMAINS)
_OUT = {"bf16 both ways": BF16, "fp8 out, bf16 back": FP8}


def joined(name: str, Z: int) -> Machine | None:
    """Z chips of that kind, a torus as near to a cube as there is; None where there is none."""
    if name not in TORI:
        return cluster(name, Z)
    shape = TORI[name].get(Z)
    return Slice.of(chips.find(name), shape) if shape else None


@dataclass(frozen=True)
class ExpertSetting:
    """A model with experts, and how its tokens travel: what the controls say."""

    model: models.Transformer
    experts: models.Experts
    out: DType
    once: bool

    @property
    def sizes(self) -> list[int]:
        """Over how many chips the experts can be shared evenly."""
        return [z for z in _CUBES if self.experts.E % z == 0]

    @lru_cache(maxsize=8192)  # noqa: B019 - a setting is a value, and the curves ask for the same ones
    def needed(self, name: str, Z: int) -> float:
        """The width that hides the exchange; infinite where there is no such torus."""
        e, on = self.experts, joined(name, Z)
        if on is None:
            return float("inf")
        how = {"gated": self.model.gated, "dispatch": self.out, "once": self.once}
        return limits.expert_parallel(on, Z, k=e.k, E=e.E, **how).least


def setting(model: str, out: str, once: bool) -> ExpertSetting:
    """The setting of these controls."""
    found = models.find(model)
    assert found.experts
    return ExpertSetting(found, found.experts, _OUT[out], once)


def _experts(*, model: str, name: str, Z: int, tokens: int, out: str, once: bool) -> View:
    s = setting(model, out, once)
    on = joined(name, Z)
    if on is None:
        raise ValueError(f"{name} comes in at most {max(TORI[name])} chips: take fewer, or another machine")
    if Z not in s.sizes:
        raise ValueError(
            f"{s.experts.E} experts cannot be shared evenly by {Z} chips: take at most {max(s.sizes)}"
        )
    layer = limits.routed_layer(on, s.model, tokens, once=s.once, dispatch=s.out)
    least = s.needed(name, Z)
    return View(
        _verdict(s, on, layer, least),
        (_bars(on, layer), _chart(s, name, Z, least)),
        (
            Readout("experts on each chip", s.experts.E / Z, "", count(s.experts.E / Z)),
            Readout("width F of an expert", s.experts.F, "", count(s.experts.F)),
            Readout("needed", least, "", count(round(least))),
            Readout("exchange over products", least / s.experts.F, "×"),
        ),
    )


def _bars(on: Machine, layer: RoutedLayer) -> Bars:
    labels = ("experts' products", "exchange, both ways", "AllGather + ReduceScatter")
    times = (layer.products_s, layer.exchange_s, layer.gathered_s)
    title = f"Forward pass of one layer on {on.name}"
    return Bars(Scale("time", "s"), labels, (Series("time", times, 0),), title=title)


def _chart(s: ExpertSetting, name: str, Z: int, least: float) -> Chart:
    shown = list(dict.fromkeys(("TPU v5p", "TPU v6e", "H100", RACKS, name)))
    return Chart(
        Scale("chips Z that share the experts", "", "pow2", 8, max(s.sizes) if len(s.sizes) > 1 else 16),
        Scale("width F that hides the exchange", "", "log"),
        (
            # dots and no lines: between two sizes there is no slice
            *(
                Points(one, s.sizes, [s.needed(one, z) for z in s.sizes], color=i)
                for i, one in enumerate(shown)
            ),
            RefLine(f"F of {s.model.name}", s.experts.F, axis="y"),
            Points("", [Z], [least], [count(round(least))], shown.index(name)),
        ),
    )


def _verdict(s: ExpertSetting, on: Machine, layer: RoutedLayer, least: float) -> str:
    who = f"{s.model.name} on {on.name}: "
    said = (
        f"{who}tokens travel {si(layer.exchange_s, 's')} a layer for {si(layer.products_s, 's')} of products"
    )
    if layer.gathered_s < layer.exchange_s:
        said += f", and gathering every token everywhere would take less, {si(layer.gathered_s, 's')}"
    if least <= s.experts.F:
        return f"{said}; the exchange can be hidden."
    return f"{said}; only experts {least / s.experts.F:.3g} times as wide would hide it."


EXPERTS = Explorer(
    key="training.experts",
    title="To the experts and back",
    question="How wide must an expert be for its products to take as long as bringing it the tokens?",
    controls={
        "model": Choice("model", MODELS, "DeepSeek-V3"),
        "name": Chips("machine", JOINED, "TPU v5p"),
        "Z": Slider("chips Z that share the experts", 8, 512, 64, "pow2"),
        "tokens": Slider("tokens of each chip", 64, 65536, 4096, "pow2"),
        "out": Choice("tokens travel in", tuple(_OUT), "bf16 both ways"),
        "once": Switch("no copy twice to a chip", False),
    },
    view=_experts,
)
