"""What do kernels attain on each chip and type? One table, fitted on all measured products and attention.

`products(chip, dtype)` and `attention(chip)` are what to compute with; a chip that nobody measured takes the
figures of its nearest kin, and says whose. `fit_products` is how the frozen `kernel_fits.json` was made
(`tools.kernel_fits`), on `data/products.csv`. Chapters: Rooflines, Training, Inference.
"""

import re
from collections.abc import Sequence
from functools import cache, partial
from math import log
from statistics import linear_regression
from typing import NamedTuple

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.fitting import Expected, Values, far, fitted
from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.roofline.attained import Attending, Attention, Products
from scalingbook_lib.units import BF16, DType

NOISE, NOISE_BEST = 0.1, 0.02  # of rows; where a chip has few, they are the best of thousands of shapes
FEW = 4
LIKE = {"fp16": "bf16", "mxfp8": "fp8", "int8": "fp8", "nvfp4": "fp4", "int4": "fp4", "fp32": "bf16"}
"""Types that were measured, for those that were not: what computes in as many bits."""
WIDE = {  # no pass over the activations: nothing is written narrower
    "launch_s": Expected(3e-6, 0.5, 1e-7, 1e-3),
    "flops": Expected(0.75, 0.15, 0.1, 1.0),
    "hbm": Expected(0.78, 0.15, 0.1, 1.05),  # small matrices stay in the L2
}
NARROW = {
    "launch_s": Expected(1e-5, 0.5, 1e-7, 1e-3),
    "flops": Expected(0.65, 0.2, 0.1, 1.0),
    "hbm": Expected(0.75, 0.15, 0.1, 1.05),
    "passes": Expected(4.0, 0.5, 0.1, 20.0),
}


GENERATIONS = {
    **{"H200": "H100", "GH200": "H100", "B300": "B200", "GB200": "B200", "B200": "GB200", "GB300": "GB200"},
    **{"MI325X": "MI300X", "MI355X": "MI300X", "Gaudi3": "Gaudi2", "Trainium2": "Trainium1"},
    "half a TPU7x": "TPU7x",
}
"""Chips with the arithmetic of another, beside another memory; half of one; later ones of few runs."""


PROMPT = {
    "launch_s": Expected(2e-5, 0.5, 1e-7, 1e-3),
    "flops": Expected(0.55, 0.15, 0.1, 1.0),
    "ramp_s": Expected(1e-12, 0.5, 1e-14, 1e-10),  # tokens for each FLOP/s of bf16
}
TOKEN = {
    "token_launch_s": Expected(1e-5, 0.5, 1e-7, 1e-3),
    "hbm": Expected(0.88, 0.1, 0.1, 1.0),
    "late_s": Expected(5e-6, 1.0, 1e-9, 1e-3),
    "half_s": Expected(5e-6, 1.0, 1e-9, 1e-3),
}


class Timed(NamedTuple):
    """A measured product of one chip: X[B, D] · W[D, F]."""

    chip: Chip
    dtype: DType
    B: int
    D: int
    F: int
    seconds: float


def measured_as(dtype: DType | str) -> str:
    """The type whose kernels stand for those of this type."""
    name = dtype if isinstance(dtype, str) else dtype.name
    return LIKE.get(name, name)


def fit_products(rows: Sequence[Timed]) -> Values:
    """The figures that make the errors of these products least, each drawn to what most chips attain."""

    noise = NOISE if len(rows) > FEW else NOISE_BEST

    def errors(values: Values) -> list[float]:
        one = Products(**values)  # type: ignore[arg-type]
        return [far(log(one.seconds(r.B, r.D, r.F, r.chip, r.dtype) / r.seconds), noise) for r in rows]

    return fitted(NARROW if rows[0].dtype.bytes < BF16.bytes else WIDE, errors)


class Attended(NamedTuple):
    """Measured attention, of whole prompts or of one token of each sequence."""

    chip: Chip
    of: Attending
    decode: bool
    seconds: float


def fit_attention(rows: Sequence[Attended]) -> Values:
    """The figures that make the errors of prompts, and of tokens, least."""
    prompts, tokens = ([row for row in rows if row.decode == decode] for decode in (False, True))

    def errors(of: Sequence[Attended], values: Values) -> list[float]:
        return [far(log(attended_s(made(values, row.chip), row) / row.seconds), NOISE) for row in of]

    return fitted(PROMPT, partial(errors, prompts)) | fitted(TOKEN, partial(errors, tokens))


def made(values: Values, chip: Chip) -> Attention:
    """The attention of these figures; faster chips need longer sequences, as the ramp is a time."""
    v = {name: one.value for name, one in (PROMPT | TOKEN).items()} | values
    ramp = v.pop("ramp_s") * chip.bf16_flops_per_s
    return Attention(**v, ramp=ramp, name=chip.name)


def attended_s(one: Attention, row: Attended) -> float:
    """The time of a row."""
    return (one.token_s if row.decode else one.prompt_s)(row.of, row.chip)


def copy_s(nbytes: float, chip: Chip) -> float:
    """So many bytes read or written, at the share of the HBM's rate that products reach."""
    one = products(chip, BF16)
    return one.launch_s + nbytes / (one.hbm * chip.hbm_bytes_per_s)


def software(said: str) -> str:
    """Whose kernels somebody speaks of, of those that were measured; "" where nobody says."""
    found = re.search("vllm|trt-?llm|tensorrt", said.lower())
    return ("vllm" if found[0] == "vllm" else "trtllm") if found else ""


@cache
def products(chip: Chip, dtype: DType, by: str = "") -> Products:
    """What the matrix products of a chip attain: its own line, its variant's, or that of all joined alike.

    By some software, where its kernels were measured: what starts before a product differs by 50 µs. Of all
    joined alike a chip takes no share of the peak where its maker's measured chips tell one.
    """
    found = resources.record("kernel_fits")["products"]
    name = _line(found, chip, measured_as(dtype), by)
    line = found[name] | (_fed(found, chip, dtype) if name.startswith("GPU") else {})
    return Products(**line, name=name)


def _fed(lines: dict[str, Values], chip: Chip, dtype: DType) -> Values:
    """The share that a maker's measured chips tell of its others: 1 / e = a + b · (peak of one core).

    A core that multiplies twice as fast is not fed twice as fast. Too few lines of that maker tell nothing.
    """
    peaks = {
        f"{one.name} | {name}": peak / (one.cores or 1)
        for one in CATALOGUE.values()
        if one.vendor == chip.vendor
        for name, peak in one.rates().items()
    }
    known = [(peak, 1 / lines[name]["flops"]) for name, peak in peaks.items() if name in lines]
    if len(known) <= FEW or not chip.cores or dtype.name not in chip.rates():
        return {}
    slope, least = linear_regression(*zip(*known, strict=True))
    return {"flops": 1 / (least + slope * chip.flops_per_s(dtype) / chip.cores)}


@cache
def attention(chip: Chip) -> Attention:
    """What fused attention attains on a chip."""
    found = resources.record("kernel_fits")["attention"]
    return made(found.get(chip.name) or found[kin(list(found), chip) or "GPU"], chip)


def kin(names: Sequence[str], chip: Chip) -> str | None:
    """The first of these chips that differs in memory or power alone."""
    like = GENERATIONS.get(chip.name)
    return next((name for name in names if name == like or is_variant(chip, name)), None)


def is_variant(chip: Chip, other: str) -> bool:
    """Whether the first words of their names agree: the chips differ in memory or power alone."""
    return not chip.torus and re.split("[ ,]", chip.name)[0] == re.split("[ ,]", other)[0]


def _line(lines: dict[str, Values], chip: Chip, dtype: str, by: str) -> str:
    """The chip's line; else a variant's; else that of all chips joined alike, in this type or in bf16."""
    own = [name.split(" | ")[0] for name in lines if name.endswith(f" | {dtype}")]
    alike = "TPU" if chip.torus else "GPU"
    asked = [f"{name} | {dtype}" for name in (chip.name, kin(own, chip), alike)] + [f"{alike} | bf16"]
    # another software on this chip is nearer than this software on another
    wanted = (one for name in asked for one in (f"{name} | {by}", name))
    return next(one for one in wanted if one in lines)
