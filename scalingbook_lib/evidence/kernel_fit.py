"""The fits of matmul and attention kernels to their measured times.

`fit_products` and `fit_attention` made the recorded `kernel_fits.json` (`tools.kernel_fits`), which
`calibrated.kernels` computes with. Chapters: Rooflines; Training; Inference.
"""

from collections.abc import Sequence
from functools import partial
from math import log
from typing import NamedTuple

from scalingbook_lib.calibrated.kernels import attention_from
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.evidence.fitting import Prior, fitted, pseudo_huber
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.roofline.attained import Attending, Attention, Grouped, Products
from scalingbook_lib.units import BF16, DType

NOISE, NOISE_BEST = 0.1, 0.02  # a chip's few rows are the best of thousands of shapes
MIN_POINTS = 4
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
GROUPED_PRIORS = {
    "launch_s": Prior(1e-5, 0.5, 1e-7, 1e-3),
    "flops": Prior(0.65, 0.2, 0.1, 1.0),
    "hbm": Prior(0.78, 0.15, 0.1, 1.05),
    "apart": Prior(0.3, 0.7, 0.01, 1.0),
}
GROUPED_TILE = 128.0  # rows of a tile, as in CUTLASS's and DeepGEMM's kernels of Hopper and later
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
ATTENTION_DEFAULTS = {name: one.value for name, one in (PREFILL_PRIORS | DECODE_PRIORS).items()}


class MeasuredMatmul(NamedTuple):
    """A measured matmul X[B, D] · W[D, F] on one chip."""

    chip: Chip
    dtype: DType
    B: int
    D: int
    F: int
    seconds: float


def fit_products(rows: Sequence[MeasuredMatmul]) -> Values:
    """The values that minimize the errors of these matmuls, regularized toward what most chips reach."""

    noise = NOISE if len(rows) > MIN_POINTS else NOISE_BEST

    def errors(values: Values) -> list[float]:
        one = Products(**values)  # type: ignore[arg-type]
        return [
            pseudo_huber(log(one.seconds(r.B, r.D, r.F, r.chip, r.dtype) / r.seconds), noise) for r in rows
        ]

    return fitted(PRIORS_NARROW if rows[0].dtype.bytes < BF16.bytes else PRIORS_16_BIT, errors)


class MeasuredGrouped(NamedTuple):
    """A measured grouped matmul of `rows` for each expert on one chip; with one expert, a dense one."""

    chip: Chip
    dtype: DType
    experts: int
    rows: int
    D: int
    F: int
    seconds: float


def fit_grouped(rows: Sequence[MeasuredGrouped]) -> Values:
    """The values that minimize the errors of these grouped matmuls."""

    def errors(values: Values) -> list[float]:
        one = Grouped(**values, tile=GROUPED_TILE)  # type: ignore[arg-type]
        return [pseudo_huber(log(one.seconds(*r[2:6], r.chip, r.dtype) / r.seconds), NOISE) for r in rows]

    return fitted(GROUPED_PRIORS, errors) | {"tile": GROUPED_TILE}


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
        found = ((attention_from(ATTENTION_DEFAULTS | values, row.chip), row) for row in of)
        return [pseudo_huber(log(predicted_attention_s(one, row) / row.seconds), NOISE) for one, row in found]

    return fitted(PREFILL_PRIORS, partial(errors, prompts)) | fitted(DECODE_PRIORS, partial(errors, tokens))


def predicted_attention_s(one: Attention, row: AttentionTime) -> float:
    """The predicted time of a row in seconds."""
    return (one.token_s if row.decode else one.prompt_s)(row.of, row.chip)
