"""Explorer: time of a decode step and throughput over the batch size, and the critical batch."""

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
    Scale,
    Slider,
    View,
    pluralize,
    sig3,
)
from scalingbook_lib import models, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.models.arithmetic import kv_cache
from scalingbook_lib.models.arithmetic.experts import params_read
from scalingbook_lib.rules import DecodeStep
from scalingbook_lib.units import BF16, FP8, INT4, INT8, DType, count, percent, si

MODELS = ("Llama 2 13B", "Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Mixtral 8x7B")
WEIGHTS = {"bf16": BF16, "int8": INT8, "int4": INT4}
COMPUTE = ("bf16", "8 bits")
_MOST = 2048
_SIZES = sorted({round(2 ** (k / 4)) for k in range(45)})


def eight_bits(chip: str) -> DType:
    """The 8-bit dtype that the chip multiplies in: int8, or fp8 if it has no int8."""
    return INT8 if chips.find(chip).int8_ops_per_s else FP8


def ruled(model: str, chip: str, n: int, *, weights: str, compute: str, S: int, B: int) -> DecodeStep:
    """The decode step by the rule: no KV cache if S is 0; only experts that some token activates are read."""
    m, c = models.find(model), chips.find(chip)
    cache = kv_cache(m, S, BF16).nbytes if S else 0.0
    math = BF16 if compute == "bf16" else eight_bits(chip)
    return rules.decode_step(
        params_read(m, B),
        c,
        n,
        batch=B,
        cache_bytes=cache,
        weights=WEIGHTS[weights],
        compute=math,
        active=m.active_params,
    )


def _batch(*, model: str, chip: str, n: int, weights: str, compute: str, S: int, B: int) -> View:
    steps = [ruled(model, chip, n, weights=weights, compute=compute, S=S, B=b) for b in _SIZES]
    one = ruled(model, chip, n, weights=weights, compute=compute, S=S, B=B)
    knee, sparse = crossing(model, chip, weights, compute)
    experts = [Readout("critical batch of the experts", sparse, "", f"B = {count(round(sparse))}")]
    return View(
        _verdict(one, knee),
        (_times(steps, one, knee), _rates(steps, one, knee)),
        (
            Readout("critical batch", knee, "", f"B = {count(round(knee))}"),
            *(experts if models.find(model).experts else []),
            Readout("step time", one.total_s, "s"),
            Readout("tokens/s per chip", one.tokens_per_s / n),
            Readout.percent("share of peak compute", one.matmul_s / one.total_s),
        ),
        columns=2,
    )


def crossing(model: str, chip: str, weights: str, compute: str) -> tuple[float, float]:
    """The critical batch size in tokens: for all weights, and for the experts alone."""
    m, math = models.find(model), BF16 if compute == "bf16" else eight_bits(chip)
    on = chips.find(chip)
    found = rules.critical_batch(on, sparsity=m.sparsity, weights=WEIGHTS[weights], compute=math)
    return found.dense_tokens * m.params / m.active_params, found.tokens


def _times(steps: list[DecodeStep], one: DecodeStep, knee: float) -> Chart:
    marks = [
        Curve("weights", _SIZES, [s.weights_s for s in steps], 0),
        Curve("compute", _SIZES, [s.matmul_s for s in steps], 1),
        Curve("step", _SIZES, [s.total_s for s in steps], 4, dashed=True),
        Points("", [one.batch], [one.total_s], [si(one.total_s, "s")], 4),
    ]
    if one.kv_s:
        marks.append(Curve("cache", _SIZES, [s.kv_s for s in steps], 2))
    refs = [RefLine("critical batch", knee)] if knee <= _MOST else []
    x, y = (
        Scale("sequences, B", "", "pow2", 1, _MOST),
        Scale("time in a step", "s", "log", max(s.total_s for s in steps) / 3000),
    )
    return Chart(x, y, (*marks, *refs), title="Time of a decode step (both axes logarithmic)")


def _rates(steps: list[DecodeStep], one: DecodeStep, knee: float) -> Chart:
    n = one.chips
    limit = 1 / (one.matmul_s / one.batch) / n
    marks = [
        Curve("tokens/s", _SIZES, [s.tokens_per_s / n for s in steps], 0),
        Points("", [one.batch], [one.tokens_per_s / n], [count(round(one.tokens_per_s / n))], 0),
        RefLine("peak compute", limit, axis="y"),
        *([RefLine("critical batch", knee)] if knee <= _MOST else []),
    ]
    return Chart(
        Scale("sequences, B", "", "pow2", 1, _MOST),
        Scale("tokens/s per chip"),
        marks,
        title="Throughput",
    )


def _verdict(one: DecodeStep, knee: float) -> str:
    many = pluralize(one.batch, "sequence")
    ratio = one.weights_s / one.matmul_s
    if one.kv_s > max(one.weights_s, one.matmul_s):
        share = percent(one.kv_s / one.total_s)
        said = f"Reading the KV cache takes {share} of the step"
        return f"{many}: memory-bound. {said}, longer than reading the weights or computing."
    if ratio > 1:
        return (
            f"{many}: memory-bound. Reading the weights takes {sig3(ratio)} times as long as multiplying "
            f"by them. The critical batch size is {count(round(knee))}."
        )
    return (
        f"{many}: compute-bound. Computing takes {sig3(1 / ratio)} times as long as reading the weights. "
        f"The critical batch size is {count(round(knee))}."
    )


BATCH = Explorer(
    key="inference.batch",
    title="The critical batch size of a decode step",
    question="How many sequences does a decode step need to become compute-bound?",
    controls={
        "model": Choice("model", MODELS),
        "chip": Chips("chip", CHIPS, "TPU v5e"),
        "n": Slider("chips", 1, 256, 8, "pow2"),
        "weights": Choice("weight dtype", tuple(WEIGHTS)),
        "compute": Choice("compute dtype", COMPUTE),
        "S": Slider("context length", 0, 32768, 0, step=1024),
        "B": Slider("sequences, B", 1, _MOST, 32, "log"),
    },
    view=_batch,
)
