"""Explorer that maps the parallelism that a batch needs on a number of chips, by the formulas."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scalingbook_book.reader.explorers.parts import (
    TORI,
    Chart,
    Choice,
    Explorer,
    Points,
    Readout,
    Regions,
    Scale,
    Slider,
    View,
)
from scalingbook_lib import models, rules
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.training import effective_width
from scalingbook_lib.units import count, count_in_words

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B", "Gemma-2 27B")
REGIMES = (
    "FSDP, whole sequences per chip",
    "FSDP with CP",
    "FSDP with TP",
    "network-bound",
    "network-bound between pods",
    "does not fit",
)
_COLORS = (2, 0, 3, 1, 4, 5)
_CHIPS = [2 ** (e / 4) for e in range(16, 69)]  # 16 to 131,072
_TOKENS = [2 ** (e / 4) for e in range(64, 109)]  # 65,536 to 134 million


@dataclass(frozen=True)
class RegimeSetting:
    """A model on pods of one chip, sequences of T tokens, and how far its collectives are serialized."""

    model: models.Transformer
    chip: Chip
    T: int
    arrays: int
    dial: float

    @property
    def axes(self) -> int:
        """The number of torus axes."""
        return self.chip.torus.dims if self.chip.torus else 1

    @property
    def pod(self) -> int:
        """The number of chips of the largest pod."""
        return self.chip.torus.pod_chips if self.chip.torus else 1

    def pods(self, n: float) -> int:
        """The number of pods that n chips fill."""
        return max(-int(-n // self.pod), 1)

    @property
    def data(self) -> float:
        """The tokens per chip above which FSDP alone is enough."""
        return rules.data_parallel_tokens(self.chip, axes=self.axes)

    @property
    def mixed(self) -> float:
        """The tokens per chip above which FSDP with TP is enough."""
        width = effective_width(self.model)
        return rules.fsdp_with_tensor_tokens(width, self.chip, data_axes=self.axes - 1, dial=self.dial)

    def holders(self, tokens: float) -> float:
        """The least number of chips that hold the state and the activation checkpoints."""
        return rules.pooled(self.model, tokens, arrays=self.arrays).chips(self.chip)

    def between(self, n: float) -> float:
        """The tokens per step above which the AllReduce between the pods of n chips is hidden."""
        pods = self.pods(n)
        return pods * rules.cross_pod_tokens(self.chip, pods) if pods > 1 else 0.0

    def regimes(self, ns: Sequence[float], batches: Sequence[float]) -> list[list[int]]:
        """The regime of every pair: a row for each batch."""
        network = [self.between(n) for n in ns]
        data, mixed = self.data, self.mixed
        rows = []
        for B in batches:
            least = self.holders(B)
            rows.append(
                [
                    self._regime(n, B, least=least, between=b, data=data, mixed=mixed)
                    for n, b in zip(ns, network, strict=True)
                ]
            )
        return rows

    def _regime(self, n: float, B: float, *, least: float, between: float, data: float, mixed: float) -> int:
        each = B / n
        if least > n:
            return 5
        if between > B:
            return 4
        if each < mixed:
            return 3
        if each < data:
            return 2
        return 0 if each >= self.T else 1


def _regimes(*, model: str, chip: str, n: int, tokens: int, T: int, arrays: int, dial: float) -> View:
    s = RegimeSetting(models.find(model), chips.find(chip), T, arrays, dial)
    here = s.regimes([n], [tokens])[0][0]
    return View(
        _verdict(s, n, tokens, here),
        (_map(s, n, tokens),),
        (
            Readout("tokens per chip", tokens / n, "", f"{tokens / n:,.0f}"),
            Readout("FSDP alone needs", s.data, "", f"{s.data:,.0f}"),
            Readout("FSDP with TP needs", s.mixed, "", f"{s.mixed:,.0f}"),
            Readout("pods", s.pods(n)),
            Readout("minimum chips by memory", s.holders(tokens), "", count(math.ceil(s.holders(tokens)))),
        ),
    )


def _map(s: RegimeSetting, n: int, tokens: int) -> Chart:
    """A cell's regime is that of its middle."""
    middle_n = [(a * b) ** 0.5 for a, b in pairwise(_CHIPS)]
    middle_b = [(a * b) ** 0.5 for a, b in pairwise(_TOKENS)]
    return Chart(
        Scale(f"{s.chip.name} chips", "", "log", _CHIPS[0], _CHIPS[-1]),
        Scale("tokens per step", "", "log", _TOKENS[0], _TOKENS[-1]),
        (
            Regions(REGIMES, _CHIPS, _TOKENS, s.regimes(middle_n, middle_b), colors=_COLORS),
            Points("", [n], [tokens], ["you"], 0),
        ),
    )


def _verdict(s: RegimeSetting, n: int, tokens: int, regime: int) -> str:
    said = (
        f"{count_in_words(tokens)} tokens on {count_in_words(n)} {s.chip.name} are {tokens / n:,.0f} "
        "tokens per chip: "
    )
    ends = (
        "FSDP alone is compute-bound, with whole sequences on every chip.",
        f"FSDP alone is compute-bound, if several chips share a sequence of {count(s.T)} tokens.",
        "too few for FSDP alone, but enough for FSDP with TP.",
        f"too few even for FSDP with TP, which needs {s.mixed:,.0f}. The step is network-bound.",
        f"too few for {s.pods(n)} pods, because the AllReduce between the pods takes longer than the "
        "backward pass.",
        "the training state and the activation checkpoints do not fit in memory.",
    )
    return said + ends[regime]


REGIMES_MAP = Explorer(
    key="training_llama3.regimes",
    title="Parallelism by number of chips and batch size",
    question="What parallelism keeps a given number of chips compute-bound, and where does none suffice?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "chip": Choice("chip", TORI, "TPU v5p"),
        "n": Slider("chips", 16, 131072, 8960, "log", step=8),
        "tokens": Slider("tokens per step", 2**16, 2**27, 2**22, "pow2"),
        "T": Slider("tokens per sequence", 1024, 131072, 4096, "pow2"),
        "arrays": Slider("arrays [B, D] saved per layer", 1, 16, 4),
        "dial": Slider("λ: 0 overlapped, 1 serialized", 0.0, 1.0, 0.0, step=0.05),
    },
    view=_regimes,
)
