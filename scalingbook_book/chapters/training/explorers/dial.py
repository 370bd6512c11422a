"""From how many tokens a chip is training compute-bound? FSDP, TP and both, with a dial for the overlap."""

from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Band,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.rules import FsdpWithTensor
from scalingbook_lib.units import count

AXES = {"FSDP 2, TP 1": (2, 1), "FSDP 1, TP 2": (1, 2), "FSDP 1, TP 1": (1, 1)}
_TOKENS = [2 ** (4 + e / 4) for e in range(41)]  # 16 to 16,384 of each chip


@dataclass(frozen=True)
class DialSetting:
    """N chips, matrices F wide, torus axes for data and for tensors, a share of the links' rate."""

    chip: Chip
    N: int
    F: int
    data_axes: int
    tensor_axes: int
    links: float
    whole: bool

    @property
    def axes(self) -> int:
        """All axes, for a scheme that has them alone."""
        return self.data_axes + self.tensor_axes

    def data(self, b: float) -> float:
        """FSDP over all chips: its collectives over the arithmetic."""
        return rules.data_parallel_tokens(self.chip, axes=self.axes, links=self.links) / b

    def tensor(self) -> float:
        """TP over all chips."""
        return self.N / rules.tensor_parallel_degree(self.F, self.chip, axes=self.axes, links=self.links)

    def mixed(self, b: float, dial: float) -> FsdpWithTensor:
        """The best split of the chips; of whole ways where these are asked for."""
        if not self.whole:
            best = rules.best_fsdp_degree(b * self.N, self.N, self.F, **self._shared())
            return self._split(b, min(max(best, 1.0), self.N))
        splits = [self._split(b, X) for X in range(1, self.N + 1) if self.N % X == 0]
        return min(splits, key=lambda one: one.ratio(dial))

    def _shared(self) -> dict[str, int]:
        return {"data_axes": self.data_axes, "tensor_axes": self.tensor_axes}

    def _split(self, b: float, X: float) -> FsdpWithTensor:
        return rules.fsdp_with_tensor(
            b * self.N, self.N, self.F, X, self.chip, links=self.links, **self._shared()
        )

    def knee(self, dial: float) -> float:
        """Where the ideal split hides its communication."""
        return rules.fsdp_with_tensor_tokens(self.F, self.chip, dial=dial, links=self.links, **self._shared())


def _dial(*, b: int, dial: float, N: int, F: int, chip: str, axes: str, links: float, whole: bool) -> View:
    s = DialSetting(chips.find(chip), N, F, *AXES[axes], links, whole)
    if s.axes > (s.chip.torus.dims if s.chip.torus else 0):
        raise ValueError(f"{chip} has a torus of 2 axes: set the axes to FSDP 1, TP 1")
    here = s.mixed(b, dial)
    alone = rules.data_parallel_tokens(s.chip, axes=s.axes, links=links)
    return View(
        _verdict(b, dial, s, here),
        (_chart(b, dial, s, here),),
        (
            Readout("best split", here.X, "", f"{count(round(here.X, 1))} × {count(round(here.Y, 1))}"),
            Readout("FSDP's part", here.data, "×"),
            Readout("TP's part", here.tensor, "×"),
            Readout("mixed needs, at this dial", s.knee(dial), "", f"{count(round(s.knee(dial)))} tokens"),
            Readout("FSDP alone needs", alone, "", f"{count(round(alone))} tokens"),
            Readout.percent("at most, of the peak", 1 / here.slowdown(dial)),
        ),
    )


def _chart(b: int, dial: float, s: DialSetting, here: FsdpWithTensor) -> Chart:
    low, high = ([s.mixed(x, end).ratio(end) for x in _TOKENS] for end in (0.0, 1.0))
    mixed = [s.mixed(x, dial).ratio(dial) for x in _TOKENS]
    return Chart(
        Scale("tokens of each chip", "", "log", _TOKENS[0], _TOKENS[-1]),
        Scale("communication over arithmetic", "×", "log", 0.05, 50),
        (
            Band("dial from 0 to 1", _TOKENS, low, high, 2),
            Curve("FSDP alone", _TOKENS, [s.data(x) for x in _TOKENS], 0),
            Curve("TP alone", _TOKENS, [s.tensor()] * len(_TOKENS), 1),
            Curve("FSDP with TP", _TOKENS, mixed, 2),
            RefLine("hidden below", 1, axis="y"),
            Points("", [b], [here.ratio(dial)], [f"{here.ratio(dial):.3g}"], 2),
        ),
    )


def _verdict(b: int, dial: float, s: DialSetting, here: FsdpWithTensor) -> str:
    ratio = here.ratio(dial)
    split = f"{count(round(here.X, 1))} · {count(round(here.Y, 1))} ways"
    said = f"At {count(b)} tokens a chip, FSDP with TP over {split} communicates {ratio:.3g} times as long "
    if ratio <= 1:
        alone = "; so would FSDP alone" if s.data(b) <= 1 else f", where FSDP alone takes {s.data(b):.3g}"
        return f"{said}as it computes, and can hide it{alone}."
    need = count(round(s.knee(dial)))
    return f"{said}as it computes: compute-bound from {need} tokens at a dial of {dial:.2g}."


DIAL = Explorer(
    key="training.dial",
    title="FSDP, TP or both, and how much they overlap",
    question="How many tokens must each chip have, so that its arithmetic hides what it sends?",
    controls={
        "b": Slider("tokens of each chip", 16, 16384, 512, "log"),
        "dial": Slider("dial: 0 overlap, 1 in turn", 0.0, 1.0, 0.0, step=0.05),
        "N": Slider("chips N", 8, 8960, 64, "log", step=8),
        "F": Slider("width F", 4096, 65536, 28672, "log", step=256),
        "chip": Chips("chip", TORI, "TPU v5p"),
        "axes": Choice("torus axes", tuple(AXES), "FSDP 2, TP 1"),
        "links": Slider("share of the links' rate", 0.5, 1.0, 1.0, step=0.05),
        "whole": Switch("whole ways that divide N", False),
    },
    view=_dial,
)
