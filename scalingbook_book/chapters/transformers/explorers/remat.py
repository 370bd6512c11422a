"""Explorer of activations by checkpointing policy: what is saved, and what is recomputed."""

from scalingbook_book.reader.explorers.parts import (
    CHIPS,
    MODELS,
    Bars,
    Chips,
    Choice,
    Explorer,
    Readout,
    RefLine,
    Scale,
    Series,
    Slider,
    Switch,
    View,
)
from scalingbook_lib import models
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.models.arithmetic import POLICIES, Activations, Policy
from scalingbook_lib.units import count, percent, si

_WORDS: dict[Policy, str] = {
    "all": "everything",
    "dots": "all matmuls",
    "dots_no_batch": "weight matmuls",
    "full": "layer inputs",
}
_POLICY: dict[str, Policy] = {_WORDS[policy]: policy for policy in POLICIES}


def _remat(
    *, name: str, keeps: str, sequences: int, T: int, flash: bool, causal: bool, chip: str, n: int
) -> View:
    model = models.find(name)
    made = {
        words: arithmetic.activations(model, sequences, T, policy, flash=flash, causal=causal)
        for words, policy in _POLICY.items()
    }
    hbm = n * chips.find(chip).hbm_bytes
    now = made[keeps]
    return View(
        _verdict(keeps, made, hbm, f"{n} {chip}"),
        (_kept(made, hbm, f"HBM of {n} {chip}"), _again(made), _arrays(now)),
        (
            Readout("kept", now.nbytes, "B", si(now.nbytes, "B")),
            Readout("arrays [B, T, D] per layer", now.units, "", f"{now.units:.4g}"),
            Readout("kept per token", now.nbytes / now.tokens, "B", si(now.nbytes / now.tokens, "B")),
            Readout.percent("kept / HBM", now.nbytes / hbm),
            Readout("recomputed", now.extra_flops, "FLOPs", si(now.extra_flops, "FLOPs")),
            Readout.percent("more FLOPs", now.extra_share),
        ),
        columns=2,
    )


def _kept(made: dict[str, Activations], hbm: float, words: str) -> Bars:
    series = Series("kept", [one.nbytes for one in made.values()], 0)
    return Bars(Scale("bytes kept", "B", "log"), list(made), (series,), refs=(RefLine(words, hbm),))


def _again(made: dict[str, Activations]) -> Bars:
    series = Series("FLOPs", [100 * one.extra_share for one in made.values()], 2)
    return Bars(Scale("extra FLOPs", "%", high=50), list(made), (series,))


def _arrays(now: Activations) -> Bars:
    series = Series("kept", [term.value for term in now.terms], 0)
    title = f"Kept for {count(now.tokens)} tokens: {_WORDS[now.policy]}"
    return Bars(Scale("bytes", "B"), now.names, (series,), title=title)


def _verdict(keeps: str, made: dict[str, Activations], hbm: float, where: str) -> str:
    now = made[keeps]
    said = f"Keeping {keeps} takes {si(now.nbytes, 'B')} ({now.units:.3g} arrays [B, T, D] per layer) "
    said += f"and costs {percent(now.extra_share)} more FLOPs. "
    if now.nbytes <= hbm:
        return f"{said}It fits: it needs {percent(now.nbytes / hbm)} of the HBM of {where}."
    said += f"It does not fit: it needs {now.nbytes / hbm:.3g} times the HBM of {where}"
    fitting = [words for words, one in made.items() if one.nbytes <= hbm]
    if not fitting:
        return f"{said}, and no other policy fits either. Use fewer tokens or more chips."
    cheapest = min(fitting, key=lambda words: made[words].extra_flops)
    return (
        f"{said}. Keeping only {cheapest} would fit and cost {percent(made[cheapest].extra_share)} more "
        "FLOPs."
    )


REMAT = Explorer(
    key="transformers.remat",
    title="Activation checkpointing: which policy fits?",
    question="How much memory do activations take under each policy, and what does recomputing them cost?",
    controls={
        "name": Choice("model", MODELS, "Llama 3 8B"),
        "keeps": Choice("keep", tuple(_POLICY), "weight matmuls"),
        "sequences": Slider("sequences B", 1, 1024, 16, "pow2"),
        "T": Slider("sequence length T", 256, 2**17, 4096, "pow2", "tokens"),
        "flash": Switch("FlashAttention (scores are never written to HBM)", False),
        "causal": Switch("count only causal pairs", False),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
        "n": Slider("chips", 1, 4096, 16, "pow2"),
    },
    view=_remat,
)
