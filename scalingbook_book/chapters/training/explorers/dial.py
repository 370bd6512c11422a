"""Explorer of FSDP with TP: communication over compute by tokens per chip, for any overlap of the two."""

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
    """N chips, layers of width F, torus axes for FSDP and for TP, a fraction of the links' rate."""

    chip: Chip
    N: int
    F: int
    data_axes: int
    tensor_axes: int
    links: float
    whole: bool

    @property
    def axes(self) -> int:
        """The number of all axes, for a scheme that uses them alone."""
        return self.data_axes + self.tensor_axes

    def data(self, b: float) -> float:
        """FSDP over all chips: communication time over compute time."""
        return rules.data_parallel_tokens(self.chip, axes=self.axes, links=self.links) / b

    def tensor(self) -> float:
        """TP over all chips: communication time over compute time."""
        return self.N / rules.tensor_parallel_degree(self.F, self.chip, axes=self.axes, links=self.links)

    def mixed(self, b: float, dial: float) -> FsdpWithTensor:
        """The best degrees X and Y; integers that divide N if `whole`."""
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
        """Tokens per chip above which the best degrees hide their communication."""
        return rules.fsdp_with_tensor_tokens(self.F, self.chip, dial=dial, links=self.links, **self._shared())


def _dial(*, b: int, dial: float, N: int, F: int, chip: str, axes: str, links: float, whole: bool) -> View:
    s = DialSetting(chips.find(chip), N, F, *AXES[axes], links, whole)
    if s.axes > (s.chip.torus.dims if s.chip.torus else 0):
        raise ValueError(f"{chip} has a torus with only 2 axes; set the axes to FSDP 1, TP 1")
    here = s.mixed(b, dial)
    alone = rules.data_parallel_tokens(s.chip, axes=s.axes, links=links)
    return View(
        _verdict(b, dial, s, here),
        (_chart(b, dial, s, here),),
        (
            Readout(
                "best degrees, FSDP × TP",
                here.X,
                "",
                f"{count(round(here.X, 1))} × {count(round(here.Y, 1))}",
            ),
            Readout("FSDP time over compute", here.data, "×"),
            Readout("TP time over compute", here.tensor, "×"),
            Readout("FSDP with TP needs", s.knee(dial), "", f"{count(round(s.knee(dial)))} tokens per chip"),
            Readout("FSDP alone needs", alone, "", f"{count(round(alone))} tokens per chip"),
            Readout.percent("fraction of the peak, at most", 1 / here.slowdown(dial)),
        ),
    )


def _chart(b: int, dial: float, s: DialSetting, here: FsdpWithTensor) -> Chart:
    low, high = ([s.mixed(x, end).ratio(end) for x in _TOKENS] for end in (0.0, 1.0))
    mixed = [s.mixed(x, dial).ratio(dial) for x in _TOKENS]
    return Chart(
        Scale("tokens per chip", "", "log", _TOKENS[0], _TOKENS[-1]),
        Scale("communication over compute", "×", "log", 0.05, 50),
        (
            Band("λ from 0 to 1", _TOKENS, low, high, 2),
            Curve("FSDP alone", _TOKENS, [s.data(x) for x in _TOKENS], 0),
            Curve("TP alone", _TOKENS, [s.tensor()] * len(_TOKENS), 1),
            Curve("FSDP with TP", _TOKENS, mixed, 2),
            RefLine("hidden below", 1, axis="y"),
            Points("", [b], [here.ratio(dial)], [f"{here.ratio(dial):.3g}"], 2),
        ),
    )


def _verdict(b: int, dial: float, s: DialSetting, here: FsdpWithTensor) -> str:
    ratio = here.ratio(dial)
    degrees = f"FSDP {count(round(here.X, 1))} with TP {count(round(here.Y, 1))}"
    said = (
        f"At {count(b)} tokens per chip, the communication of {degrees} takes "
        f"{ratio:.3g} times as long as compute"
    )
    if ratio <= 1:
        alone = (
            "that of FSDP alone could be hidden, too"
            if s.data(b) <= 1
            else f"with FSDP alone, the ratio would be {s.data(b):.3g}"
        )
        return f"{said}, so the communication can be hidden; {alone}."
    knee = count(round(s.knee(dial)))
    return f"{said}. The step is network-bound below {knee} tokens per chip at λ = {dial:.2g}."


DIAL = Explorer(
    key="training.dial",
    title="FSDP, TP or both: tokens per chip and overlap",
    question="How many tokens must each chip have so that compute hides the communication?",
    controls={
        "b": Slider("tokens per chip", 16, 16384, 512, "log"),
        "dial": Slider("λ: 0 overlapped, 1 serialized", 0.0, 1.0, 0.0, step=0.05),
        "N": Slider("chips n", 8, 8960, 64, "log", step=8),
        "F": Slider("layer width F", 4096, 65536, 28672, "log", step=256),
        "chip": Chips("chip", TORI, "TPU v5p"),
        "axes": Choice("torus axes", tuple(AXES), "FSDP 2, TP 1"),
        "links": Slider("fraction of the links' rate", 0.5, 1.0, 1.0, step=0.05),
        "whole": Switch("integer degrees that divide n", False),
    },
    view=_dial,
)
