"""The measured efficiency of matmul and attention kernels on each chip and dtype.

`products(chip, dtype)` and `attention(chip)` are the models to compute with; a chip without measurements
takes those of its nearest variant, and names it. `fit_products` made the recorded `kernel_fits.json`
(`tools.kernel_fits`) from `data/products.csv`. Chapters: Rooflines, Training, Inference.
"""

import re
from collections.abc import Sequence
from functools import cache, partial
from math import log
from statistics import linear_regression
from typing import NamedTuple

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.fitting import Prior, Values, fitted, pseudo_huber
from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.roofline.attained import Attending, Attention, Products
from scalingbook_lib.units import BF16, DType

NOISE, NOISE_BEST = 0.1, 0.02  # a chip's few rows are the best of thousands of shapes
MIN_POINTS = 4
SUBSTITUTE_DTYPES = {
    "fp16": "bf16",
    "mxfp8": "fp8",
    "int8": "fp8",
    "nvfp4": "fp4",
    "int4": "fp4",
    "fp32": "bf16",
}
"""The measured dtype that stands for one without measurements: one with as many bits."""
PRIORS_16_BIT = {  # no pass over the activations, because nothing is quantized
    "launch_s": Prior(3e-6, 0.5, 1e-7, 1e-3),
    "flops": Prior(0.75, 0.15, 0.1, 1.0),
    "hbm": Prior(0.78, 0.15, 0.1, 1.05),  # small matrices stay in L2
}
PRIORS_NARROW = {
    "launch_s": Prior(1e-5, 0.5, 1e-7, 1e-3),
    "flops": Prior(0.65, 0.2, 0.1, 1.0),
    "hbm": Prior(0.75, 0.15, 0.1, 1.05),
    "passes": Prior(4.0, 0.5, 0.1, 20.0),
}


SAME_ARCHITECTURE = {
    **{"H200": "H100", "GH200": "H100", "B300": "B200", "GB200": "B200", "B200": "GB200", "GB300": "GB200"},
    **{"MI325X": "MI300X", "MI355X": "MI300X", "Gaudi3": "Gaudi2", "Trainium2": "Trainium1"},
    "half a TPU7x": "TPU7x",
}
"""Chips with the compute of another and a different memory, half of one, and new ones with few runs."""


PREFILL_PRIORS = {
    "launch_s": Prior(2e-5, 0.5, 1e-7, 1e-3),
    "flops": Prior(0.55, 0.15, 0.1, 1.0),
    "ramp_s": Prior(1e-12, 0.5, 1e-14, 1e-10),  # tokens per FLOP/s of bf16
}
DECODE_PRIORS = {
    "token_launch_s": Prior(1e-5, 0.5, 1e-7, 1e-3),
    "hbm": Prior(0.88, 0.1, 0.1, 1.0),
    "late_s": Prior(5e-6, 1.0, 1e-9, 1e-3),
    "half_s": Prior(5e-6, 1.0, 1e-9, 1e-3),
}


class MeasuredMatmul(NamedTuple):
    """A measured matmul X[B, D] · W[D, F] on one chip."""

    chip: Chip
    dtype: DType
    B: int
    D: int
    F: int
    seconds: float


def kernel_dtype(dtype: DType | str) -> str:
    """The name of the dtype whose measured kernels stand for this dtype."""
    name = dtype if isinstance(dtype, str) else dtype.name
    return SUBSTITUTE_DTYPES.get(name, name)


def fit_products(rows: Sequence[MeasuredMatmul]) -> Values:
    """The values that minimize the errors of these matmuls, regularized toward what most chips reach."""

    noise = NOISE if len(rows) > MIN_POINTS else NOISE_BEST

    def errors(values: Values) -> list[float]:
        one = Products(**values)  # type: ignore[arg-type]
        return [
            pseudo_huber(log(one.seconds(r.B, r.D, r.F, r.chip, r.dtype) / r.seconds), noise) for r in rows
        ]

    return fitted(PRIORS_NARROW if rows[0].dtype.bytes < BF16.bytes else PRIORS_16_BIT, errors)


class AttentionTime(NamedTuple):
    """Measured attention of whole prompts, or of one new token per sequence (`decode`)."""

    chip: Chip
    of: Attending
    decode: bool
    seconds: float


def fit_attention(rows: Sequence[AttentionTime]) -> Values:
    """The values that minimize the errors of prefill attention and of decode attention."""
    prompts, tokens = ([row for row in rows if row.decode == decode] for decode in (False, True))

    def errors(of: Sequence[AttentionTime], values: Values) -> list[float]:
        return [
            pseudo_huber(
                log(predicted_attention_s(attention_from(values, row.chip), row) / row.seconds), NOISE
            )
            for row in of
        ]

    return fitted(PREFILL_PRIORS, partial(errors, prompts)) | fitted(DECODE_PRIORS, partial(errors, tokens))


def attention_from(values: Values, chip: Chip) -> Attention:
    """The `Attention` model with these values; its ramp is a time, so faster chips need longer sequences."""
    v = {name: one.value for name, one in (PREFILL_PRIORS | DECODE_PRIORS).items()} | values
    ramp = v.pop("ramp_s") * chip.bf16_flops_per_s
    return Attention(**v, ramp=ramp, name=chip.name)


def predicted_attention_s(one: Attention, row: AttentionTime) -> float:
    """The predicted time of a row in seconds."""
    return (one.token_s if row.decode else one.prompt_s)(row.of, row.chip)


def copy_s(nbytes: float, chip: Chip) -> float:
    """The time in seconds to read or write `nbytes`, at the share of HBM bandwidth that matmuls reach."""
    one = products(chip, BF16)
    return one.launch_s + nbytes / (one.hbm * chip.hbm_bytes_per_s)


def kernel_library(said: str) -> str:
    """The measured kernel library that `said` names: "vllm", "trtllm", or "" for none."""
    found = re.search("vllm|trt-?llm|tensorrt", said.lower())
    return ("vllm" if found[0] == "vllm" else "trtllm") if found else ""


@cache
def products(chip: Chip, dtype: DType, library: str = "") -> Products:
    """The matmul model of a chip: its own, its variant's, or that of all GPUs or TPUs.

    `library` selects the kernels of one library where they were measured, because launch overheads differ by
    50 µs. For the model of all GPUs, the share of peak is extrapolated from the vendor's measured chips where
    possible.
    """
    found = resources.record("kernel_fits")["products"]
    name = _table_key(found, chip, kernel_dtype(dtype), library)
    line = found[name] | (_extrapolated_share(found, chip, dtype) if name.startswith("GPU") else {})
    return Products(**line, name=name)


def _extrapolated_share(lines: dict[str, Values], chip: Chip, dtype: DType) -> Values:
    """The share of peak extrapolated from the vendor's measured chips: 1 / share = a + b · (peak per core).

    A core with twice the compute is not fed data twice as fast. {} with too few measured chips.
    """
    peaks = {
        f"{one.name} | {name}": peak / (one.cores or 1)
        for one in CATALOGUE.values()
        if one.vendor == chip.vendor
        for name, peak in one.rates().items()
    }
    known = [(peak, 1 / lines[name]["flops"]) for name, peak in peaks.items() if name in lines]
    if len(known) <= MIN_POINTS or not chip.cores or dtype.name not in chip.rates():
        return {}
    slope, least = linear_regression(*zip(*known, strict=True))
    return {"flops": 1 / (least + slope * chip.flops_per_s(dtype) / chip.cores)}


@cache
def attention(chip: Chip) -> Attention:
    """The fitted efficiency of fused attention on a chip."""
    found = resources.record("kernel_fits")["attention"]
    return attention_from(
        found.get(chip.name) or found[nearest_measured_chip(list(found), chip) or "GPU"], chip
    )


def nearest_measured_chip(names: Sequence[str], chip: Chip) -> str | None:
    """The first of these chips that has the same architecture and differs only in memory or power."""
    like = SAME_ARCHITECTURE.get(chip.name)
    return next((name for name in names if name == like or is_variant(chip, name)), None)


def is_variant(chip: Chip, other: str) -> bool:
    """Whether the first words of two names agree, so that the chips differ only in memory or power."""
    return not chip.torus and re.split("[ ,]", chip.name)[0] == re.split("[ ,]", other)[0]


def _table_key(lines: dict[str, Values], chip: Chip, dtype: str, library: str) -> str:
    """The key of a chip's row, else of a variant's, else of all GPUs or TPUs in this dtype or in bf16."""
    own = [name.split(" | ")[0] for name in lines if name.endswith(f" | {dtype}")]
    alike = "TPU" if chip.torus else "GPU"
    asked = [f"{name} | {dtype}" for name in (chip.name, nearest_measured_chip(own, chip), alike)] + [
        f"{alike} | bf16"
    ]
    # another library on this chip is closer than this library on another chip
    wanted = (one for name in asked for one in (f"{name} | {library}", name))
    return next(one for one in wanted if one in lines)
