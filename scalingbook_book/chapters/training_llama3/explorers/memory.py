"""Explorer of the number of chips that hold a run's state and checkpoints, sharded over all of them."""

from dataclasses import dataclass

from scalingbook_book.reader.explorers.parts import (
    ALL_CHIPS,
    Bars,
    Chart,
    Chips,
    Choice,
    Curve,
    Explorer,
    Points,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    View,
    pluralize,
)
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import Policy
from scalingbook_lib.units import BF16, FP32, DType, binary, count, percent, si

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Llama 2 7B", "Qwen3 32B", "DeepSeek-V3")
_STATE: dict[str, tuple[DType | None, DType | None]] = {
    "10 (fp32 moments)": (None, None),
    "12 (with gradients)": (BF16, None),
    "16 (with an fp32 master copy)": (BF16, FP32),
}
_KEPT: dict[str, Policy | None] = {
    "arrays [B, D]": None,
    "layer inputs": "full",
    "weight matmuls": "dots_no_batch",
    "all matmuls": "dots",
    "everything": "all",
}
_T = 4096


@dataclass(frozen=True)
class PodMemory:
    """Bytes of all chips together, by part."""

    terms: dict[str, float]

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self.terms.values())

    @property
    def activations(self) -> float:
        """The activations that are saved for the backward pass."""
        return self.terms["activations"]


def held(model: str, tokens: int, arrays: int, state: str, keeps: str) -> PodMemory:
    """The least that the run must hold somewhere, with sequences of 4,096 tokens."""
    m, (gradients, master) = models.find(model), _STATE[state]
    made = arithmetic.training_state(m, gradients=gradients, master=master)
    policy = _KEPT[keeps]
    waits = (
        rules.pooled(m, tokens, arrays=arrays).checkpoints
        if policy is None
        else arithmetic.activations(m, tokens // _T, _T, policy, flash=True).nbytes
    )
    return PodMemory({**{term.name: term.value for term in made.terms}, "activations": waits})


def _memory(*, model: str, chip: str, n: int, tokens: int, arrays: int, state: str, keeps: str) -> View:
    all_of = held(model, tokens, arrays, state, keeps)
    hbm = chips.find(chip).hbm_bytes
    least = max(-(-all_of.total // hbm), 1)
    return View(
        _verdict(model, chip, n, all_of=all_of, hbm=hbm, least=least),
        (_bars(all_of, chip, n, hbm), _curves(all_of, chip, n, hbm)),
        (
            Readout("all chips together", all_of.total, "B"),
            Readout("per chip", all_of.total / n, "B"),
            Readout.percent("fraction of HBM", all_of.total / n / hbm),
            Readout("minimum chips", least),
            Readout(
                "activations",
                all_of.activations / all_of.total,
                "",
                f"{percent(all_of.activations / all_of.total)} of the bytes",
            ),
        ),
        columns=2,
    )


def _bars(all_of: PodMemory, chip: str, n: int, hbm: float) -> Bars:
    parts = {**all_of.terms, "all": all_of.total}
    return Bars(
        Scale("bytes per chip", "B", "log", 1e6),
        list(parts),
        (Series("bytes", [v / n for v in parts.values()], 0),),
        refs=(RefLine(f"HBM of {chip}", hbm),),
        title=f"Memory per chip on {count(n)} chips",
    )


def _curves(all_of: PodMemory, chip: str, n: int, hbm: float) -> Chart:
    sizes = [2.0**e for e in range(3, 15)]
    fixed = all_of.total - all_of.activations
    return Chart(
        Scale("chips", "", "pow2", sizes[0], sizes[-1]),
        Scale("bytes per chip", "B", "log", 1e7, 1e13),
        (
            Curve("all", sizes, [all_of.total / s for s in sizes], 0),
            Curve("state alone", sizes, [fixed / s for s in sizes], 1),
            RefLine(f"HBM of {chip}", hbm, axis="y"),
            Points("", [n], [all_of.total / n], [si(all_of.total / n, "B")], 0),
        ),
        title="Memory per chip by number of chips",
    )


def _verdict(model: str, chip: str, n: int, *, all_of: PodMemory, hbm: float, least: float) -> str:
    each = all_of.total / n
    said = (
        f"{model} needs {si(all_of.total, 'B')}, of which {percent(all_of.activations / all_of.total)} "
        "is for "
    )
    said += f"activations. That is {si(each, 'B')} on each of the {count(n)} {chip} chips"
    if each > hbm:
        return f"{said}, but a chip has only {binary(hbm)}. At least {count(int(least))} chips are needed."
    return (
        f"{said}, or {percent(each / hbm)} of a chip's memory. {pluralize(int(least), 'chip')} would be "
        "enough."
    )


MEMORY = Explorer(
    key="training_llama3.memory",
    title="Minimum number of chips by memory",
    question="How many chips can hold the weights, the optimizer state and the saved activations?",
    controls={
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "chip": Chips("chip", ALL_CHIPS, "TPU v5p"),
        "n": Slider("chips", 8, 16384, 8960, "log", step=8),
        "tokens": Slider("tokens per step", 2**18, 2**26, 2**22, "pow2"),
        "arrays": Slider("arrays saved per layer", 1, 16, 4),
        "state": Choice("bytes per parameter", tuple(_STATE), next(iter(_STATE))),
        "keeps": Choice("saved activations", tuple(_KEPT), next(iter(_KEPT))),
    },
    view=_memory,
)
