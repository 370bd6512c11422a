"""Explorer of a training plan: whether it keeps the chips busy, and which term limits it."""

import math

from scalingbook_book.reader.explorers.parts import (
    DOMAINS,
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
    cluster,
    pluralize,
)
from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.steps import limits
from scalingbook_lib.steps.limits import Audit
from scalingbook_lib.units import binary, count, percent

MODELS = ("Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Mixtral 8x22B", "Qwen3 235B-A22B", "DeepSeek-V3")
_LEAST, _MOST = 2**16, 2**26
_TOKENS = [2.0**e for e in range(16, 27)]


def plan(machine: str, model: str, *, n: int, tokens: float, tp: int, pp: int, ep: int, m: int) -> Audit:
    """The plan audited; a plan that does not exist raises a ValueError that says why."""
    shape = models.find(model)
    most = shape.experts.E if shape.experts else 1
    if ep > most:
        raise ValueError(f"{model} has {pluralize(most, 'expert')} per layer; set EP to at most {most}")
    if tp * pp * ep > n:
        raise ValueError(
            f"TP {tp} · PP {pp} · EP {ep} requires {count(tp * pp * ep)} chips, but there are only "
            f"{count(n)}; lower a degree or use more GPUs"
        )
    return limits.audit(cluster(machine, n), shape, tokens=tokens, tp=tp, pp=pp, ep=ep, m=m)


def _plan(*, machine: str, model: str, n: int, tokens: int, tp: int, pp: int, ep: int, m: int) -> View:
    here = plan(machine, model, n=n, tokens=tokens, tp=tp, pp=pp, ep=ep, m=m)
    state, alone = arithmetic.training_state(models.find(model)).total / n, here.math_s / here.upper_s
    return View(
        _verdict(here, state, cluster(machine, n).chip.hbm_bytes),
        (_bars(here), _chart(here, tokens)),
        (
            Readout("tokens per GPU", here.tokens_per_chip, "", count(here.tokens_per_chip)),
            Readout("tokens needed for DP", *_needed(here)),
            Readout("replicas (DP)", here.dp),
            Readout.percent("pipeline bubble", here.bubble),
            Readout.percent("utilization (upper bound)", here.utilization),
            Readout.percent("without overlap", alone),
            Readout("training state per GPU", state, "", binary(state)),
        ),
    )


_NAMES = {
    "compute": "compute",
    "data": "DP: weights",
    "tensor": "TP: activations",
    "expert": "EP: tokens",
    "pipeline": "PP: sends",
}
_COLORS = {"compute": 0, "data": 1, "tensor": 2, "expert": 3, "pipeline": 4}


def _bars(here: Audit) -> Bars:
    return Bars(
        Scale("time of a forward pass", "s"),
        list(_NAMES.values()),
        (Series("time", [here.terms[name] for name in _NAMES], 0),),
        refs=(RefLine("compute", here.math_s),),
        title="Time of each term",
    )


def _chart(here: Audit, tokens: int) -> Chart:
    """All terms grow with the tokens, except the weights, which are moved once per step."""
    curves = [
        Curve(
            _NAMES[name], _TOKENS, [s if name == "data" else s * (t / tokens) for t in _TOKENS], _COLORS[name]
        )
        for name, s in here.terms.items()
        if s
    ]
    return Chart(
        Scale("tokens per step", "tokens", "pow2", _LEAST, _MOST),
        Scale("time of a forward pass", "s", "log"),
        (*curves, RefLine("your batch", tokens), *_crossing(here, tokens)),
    )


def _crossing(here: Audit, tokens: int) -> tuple[Points, ...]:
    """The batch at which compute takes as long as moving the weights."""
    at = tokens * here.data_s / here.math_s
    return (Points("", [at], [here.data_s], [count(round(at))], 1),) if _LEAST <= at <= _MOST else ()


def _needed(here: Audit) -> tuple[float, str, str]:
    """Tokens per GPU above which compute hides data parallelism."""
    least = here.tokens_per_chip * here.data_s / here.math_s
    return least, "", f"{count(math.ceil(round(least, 6)))} tokens"


def _verdict(here: Audit, state: float, hbm: float) -> str:
    ways = {"TP": here.tp, "PP": here.pp, "EP": here.ep}
    split = ", ".join(f"{name} {n}" for name, n in ways.items() if n > 1) or "only DP"
    said = f"{here.machine}, {split}, {count(round(here.tokens_per_chip))} tokens per GPU: "
    said += _bound(here)
    if state > hbm:
        said += (
            f" But the weights, gradients and optimizer state do not fit: they take {binary(state)} per "
            f"GPU, which has {binary(hbm)}."
        )
    return said


def _bound(here: Audit) -> str:
    if here.bound == "compute":
        rest = f", with a pipeline bubble of {percent(here.bubble)}" if here.bubble > 0.005 else ""
        return f"compute-bound{rest}. Utilization is at most {percent(here.utilization)} of the peak."
    longer = here.terms[here.bound] / here.math_s
    what = {
        "data": "communicating the weights (DP) takes",
        "tensor": "communicating the activations (TP) takes",
        "expert": "the AllToAll of tokens (EP) takes",
        "pipeline": "sending activations (PP) takes",
    }[here.bound]
    much = f"{count(longer)} times as long as" if longer >= 1.005 else "slightly longer than"
    return f"{what} {much} the compute. Utilization is at most {percent(here.utilization)} of the peak."


PLAN = Explorer(
    key="gpus.plan",
    title="A parallelism plan, term by term",
    question="Which term keeps a training step from being compute-bound?",
    controls={
        "machine": Chips("machine", tuple(DOMAINS)),
        "model": Choice("model", MODELS, "Llama 3 70B"),
        "n": Slider("GPUs", 64, 16384, 4096, "pow2"),
        "tokens": Slider("tokens per step", _LEAST, _MOST, 2**22, "pow2", "tokens"),
        "tp": Slider("TP", 1, 64, 8, "pow2"),
        "pp": Slider("PP", 1, 16, 2, "pow2"),
        "ep": Slider("EP", 1, 256, 1, "pow2"),
        "m": Slider("microbatches", 1, 256, 32, "pow2"),
    },
    view=_plan,
)
