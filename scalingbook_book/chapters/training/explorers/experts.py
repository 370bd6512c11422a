"""Explorer of expert parallelism: AllToAlls against the experts' compute, over a torus and over switches."""

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
_OUT = {"bf16 both": BF16, "fp8 dispatch, bf16 combine": FP8}


def joined(name: str, Z: int) -> Machine | None:
    """Z chips of that kind, as the slice nearest to a cube; None if there is no such slice."""
    if name not in TORI:
        return cluster(name, Z)
    shape = TORI[name].get(Z)
    return Slice.of(chips.find(name), shape) if shape else None


@dataclass(frozen=True)
class ExpertSetting:
    """A mixture-of-experts model, and how its tokens are sent."""

    model: models.Transformer
    experts: models.Experts
    out: DType
    once: bool

    @property
    def sizes(self) -> list[int]:
        """The numbers of chips over which the experts can be divided evenly."""
        return [z for z in _CUBES if self.experts.E % z == 0]

    @lru_cache(maxsize=8192)  # noqa: B019 - a setting is a value, and the curves ask for the same ones
    def needed(self, name: str, Z: int) -> float:
        """The expert width that hides both AllToAlls; infinite if there is no such slice."""
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
        raise ValueError(f"{name} has at most {max(TORI[name])} chips; choose fewer chips or another machine")
    if Z not in s.sizes:
        raise ValueError(
            f"{s.experts.E} experts cannot be divided evenly over {Z} chips; choose at most {max(s.sizes)}"
        )
    layer = limits.routed_layer(on, s.model, tokens, once=s.once, dispatch=s.out)
    least = s.needed(name, Z)
    return View(
        _verdict(s, on, layer, least),
        (_bars(on, layer), _chart(s, name, Z, least)),
        (
            Readout("experts per chip", s.experts.E / Z, "", count(s.experts.E / Z)),
            Readout("expert width F", s.experts.F, "", count(s.experts.F)),
            Readout("width needed", least, "", count(round(least))),
            Readout("AllToAlls over compute", least / s.experts.F, "×"),
        ),
    )


def _bars(on: Machine, layer: RoutedLayer) -> Bars:
    labels = ("experts' matmuls", "dispatch + combine (AllToAll)", "AllGather + ReduceScatter")
    times = (layer.products_s, layer.exchange_s, layer.gathered_s)
    title = f"Forward pass of one layer on {on.name}"
    return Bars(Scale("time", "s"), labels, (Series("time", times, 0),), title=title)


def _chart(s: ExpertSetting, name: str, Z: int, least: float) -> Chart:
    shown = list(dict.fromkeys(("TPU v5p", "TPU v6e", "H100", RACKS, name)))
    return Chart(
        Scale("EP degree Z", "", "pow2", 8, max(s.sizes) if len(s.sizes) > 1 else 16),
        Scale("expert width F that hides the AllToAlls", "", "log"),
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
    said = (
        f"{s.model.name} on {on.name}: dispatch and combine take {si(layer.exchange_s, 's')} per layer, "
        f"and the experts' matmuls {si(layer.products_s, 's')}"
    )
    if least <= s.experts.F:
        said += ", so the AllToAlls can be hidden."
    else:
        wider = f"{least / s.experts.F:.3g} times as wide"
        said += f". To hide the AllToAlls, the experts would have to be {wider}."
    if layer.gathered_s < layer.exchange_s:
        said += f" Gathering all tokens on all chips would be faster: {si(layer.gathered_s, 's')}."
    return said


EXPERTS = Explorer(
    key="training.experts",
    title="Expert parallelism: dispatch and combine",
    question="How wide must an expert be so that its matmuls hide the dispatch and combine of tokens?",
    controls={
        "model": Choice("model", MODELS, "DeepSeek-V3"),
        "name": Chips("machine", JOINED, "TPU v5p"),
        "Z": Slider("EP degree Z", 8, 512, 64, "pow2"),
        "tokens": Slider("tokens per chip", 64, 65536, 4096, "pow2"),
        "out": Choice("dtype of dispatch and combine", tuple(_OUT), "bf16 both"),
        "once": Switch("deduplicated dispatch", False),
    },
    view=_experts,
)
