"""Predicted times of kernels and collectives in any table, and parameter counts of model configurations.

Times follow from `calibrated.kernels` and `calibrated.fabrics`. The interval factors cover 80% of the
library's rows of other systems. Chapters: Rooflines; GPUs; Transformers.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from scalingbook_lib import roofline
from scalingbook_lib.calibrated import kernels as fitted
from scalingbook_lib.collectives import FORMULAS
from scalingbook_lib.evidence import fabric_fit
from scalingbook_lib.evidence.reading.cells import (
    Cells,
    UnpredictedRow,
    first,
    needed,
    number,
    precision,
    text,
    whole,
)
from scalingbook_lib.evidence.reading.chip import chip
from scalingbook_lib.evidence.reading.model import model_from_config_row
from scalingbook_lib.evidence.scoring.report import Ideal, Interval, RowPrediction
from scalingbook_lib.machines import Chip
from scalingbook_lib.roofline.attained import Attending
from scalingbook_lib.units import BF16, MiB, dtype

LARGE_ROWS, LARGE_BYTES = 512, MiB
FACTORS = {
    "products m >= 512": 1.19,
    "products m < 512": 1.2,
    "attention prompt": 1.17,
    "attention decode": 1.27,
    "copies": 1.2,
    "collectives >= 1 MiB": 1.22,
    "collectives < 1 MiB": 1.25,
}
UNMEASURED_LIBRARY = 1.25  # for libraries that were not measured: cuDNN's and FlashAttention's on an H100
OPERATIONS = {
    "attention": "attention|attn|fmha",
    "products": "gemm|matmul|linear|dot",
    "copies": "copy|triad",
}
DTYPE_NAMES = {"nvfp4": "fp4", "mxfp8": "fp8"}


class PredictedKernel(NamedTuple):
    """One kernel: its class, predicted seconds, FLOPs and bytes.

    `math_s` is the time of its FLOPs at the documented rate, 0 if only bytes count. `wider` multiplies the
    interval.
    """

    kind: str
    seconds: float
    flops: float
    nbytes: float
    math_s: float = 0.0
    wider: float = 1.0


def _prediction(
    kind: str, chip: str, measured: float, predicted: float, ideal: Ideal | None = None, *, wider: float = 1.0
) -> RowPrediction:
    return RowPrediction(
        kind=kind,
        chip=chip,
        measured=Interval(measured, measured),
        predicted=Interval(predicted, predicted),
        factor=wider * FACTORS.get(kind, 1.0),
        ideal=ideal,
    )


def kernel(row: Cells) -> RowPrediction:
    """The time in seconds of a matmul, attention or copy, as printed or from a rate; raises `Refused`."""
    target, op = chip(text(row, "chip", "system")), first(OPERATIONS, text(row, "op"))
    if op is None:
        raise UnpredictedRow(f"op is {text(row, 'op')[:40]!r}; gemm and attention are known")
    one = {"attention": _attention, "products": _product, "copies": _copy}[op](row, target)
    latency, reached, moved = (number(row, name) for name in ("latency_us", "tflops", "hbm_GBps"))
    measured = latency / 1e6 if latency else one.flops / reached / 1e12 if reached else 0.0
    measured = measured or (one.nbytes / moved / 1e9 if moved else 0.0)
    if not measured:
        raise UnpredictedRow("the row prints no latency_us, tflops or hbm_GBps")
    math, memory = one.math_s / measured, one.nbytes / target.hbm_bytes_per_s / measured
    ideal = Ideal(precision(text(row, "dtype")), max(math, memory), math or memory)
    return _prediction(one.kind, target.name, measured, one.seconds, ideal, wider=one.wider)


def _product(row: Cells, target: Chip) -> PredictedKernel:
    """A matmul in the row's dtype, or in bf16 if only the weights have it or the chip lacks it."""
    m, n, k = (needed(row, letter) for letter in "mnk")
    said = text(row, "dtype").lower()
    name = precision(said)
    kind = dtype(DTYPE_NAMES.get(name, name))
    alone = re.search("_?wo$|weight|a16|awq|gptq", said) or kind.name not in target.rates()
    computed = BF16 if alone else kind
    line = fitted.products(
        target, replace(kind, name="fp8_block") if "block" in said else computed, _kernel_library(row)
    )
    bound = roofline.matmul(m, k, n, target, computed, weights=kind, out=BF16)
    told = f"products m {'>=' if m >= LARGE_ROWS else '<'} {LARGE_ROWS}"
    seconds = line.seconds(m, k, n, target, computed, weights=kind)
    return PredictedKernel(told, seconds, bound.flops, bound.bytes, bound.math_s)


def _attention(row: Cells, target: Chip) -> PredictedKernel:
    """Prefill attention has half of all pairs of positions; decode attention reads the cache."""
    B, T, N, H = (needed(row, column) for column in ("batch", "seq", "heads", "head_dim"))
    kv_bytes = dtype(precision(text(row, "kv_dtype", "dtype"))).bytes
    of, one = Attending(B, T, N, whole(row, "kv_heads") or N, H, kv_bytes), fitted.attention(target)
    if re.search("generation|decod", text(row, "op")):
        return PredictedKernel("attention decode", one.token_s(of, target), of.token_flops, of.cache_bytes)
    math_s = of.prompt_flops / target.bf16_flops_per_s
    wider = 1.0 if _kernel_library(row) else UNMEASURED_LIBRARY
    return PredictedKernel(
        "attention prompt", one.prompt_s(of, target), of.prompt_flops, of.cache_bytes, math_s, wider
    )


def _kernel_library(row: Cells) -> str:
    """The measured kernel library that the row names."""
    return fitted.kernel_library(
        " ".join(text(row, column) for column in ("software", "op", "source", "notes"))
    )


def _copy(row: Cells, target: Chip) -> PredictedKernel:
    """A copy reads and writes, at the share of HBM bandwidth that matmuls reach."""
    size = re.search(r"([\d,]+)-byte", text(row, "notes"))
    if not size:
        raise UnpredictedRow("the row of a copy does not say how many bytes")
    nbytes = 2 * float(size[1].replace(",", ""))
    return PredictedKernel("copies", fitted.copy_s(nbytes, target), 0.0, nbytes)


def collective(row: Cells) -> RowPrediction:
    """The time in seconds of a collective on switches, on a torus, or through the host."""
    one = fabric_fit.measured_collective(row, chip(text(row, "chip", "system")))
    ideal = FORMULAS[one.what](one.nbytes, *one.networks).bandwidth_s / one.seconds
    told = f"collectives {'>=' if needed(row, 'size_bytes') >= LARGE_BYTES else '<'} 1 MiB"
    return _prediction(told, one.chip.name, one.seconds, fabric_fit.predicted_s(one), Ideal("", ideal, ideal))


def parameters(row: Cells) -> RowPrediction:
    """The counted parameters against those of the reference code, or else the published ones.

    Published counts may include multi-token prediction layers, a vision encoder, both or neither; the closest
    counts.
    """
    published, m = number(row, "total_params_computed", "published_params"), model_from_config_row(row)
    if not published:
        raise UnpredictedRow("the row has no total_params_computed and no published_params")
    all_of = (m.params + a + b for a in (0, m.next_params) for b in (0, m.vision_params))
    counted = min(all_of, key=lambda n: abs(n - published))
    return _prediction("parameters", "", published, float(counted))
