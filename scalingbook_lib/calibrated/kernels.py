"""The efficiency that matmul, grouped matmul and attention kernels reach on each chip and dtype.

`products(chip, dtype)`, `grouped(chip, dtype)` and `attention(chip)` are the models to compute with; a chip
without measurements takes those of its nearest variant, and names it. `evidence.kernel_fit` fitted the
recorded values. Chapters: Rooflines; Training; Inference.
"""

import re
from collections.abc import Sequence
from functools import cache
from statistics import linear_regression

from scalingbook_lib.calibrated import records
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.machines.chips import CATALOG, Chip
from scalingbook_lib.roofline.attained import Attention, Grouped, Products
from scalingbook_lib.units import BF16, DType

MIN_POINTS = 4  # measured chips of a vendor, beyond which the share of peak is extrapolated
GROUPED_CHIP = "H200"  # the chip on which grouped matmuls were measured
SUBSTITUTE_DTYPES = {
    "fp16": "bf16",
    "mxfp8": "fp8",
    "int8": "fp8",
    "nvfp4": "fp4",
    "int4": "fp4",
    "fp32": "bf16",
}
"""The measured dtype that stands for one without measurements: one with as many bits."""
SAME_ARCHITECTURE = {
    **{"H200": "H100", "GH200": "H100", "B300": "B200", "GB200": "B200", "B200": "GB200", "GB300": "GB200"},
    **{"MI325X": "MI300X", "MI355X": "MI300X", "Gaudi3": "Gaudi2", "Trainium2": "Trainium1"},
    "half a TPU7x": "TPU7x",
}
"""Chips with the compute of another and a different memory, half of one, and new ones with few runs."""


def kernel_dtype(dtype: DType | str) -> str:
    """The name of the dtype whose measured kernels stand for this dtype."""
    name = dtype if isinstance(dtype, str) else dtype.name
    return SUBSTITUTE_DTYPES.get(name, name)


def attention_from(values: Values, chip: Chip) -> Attention:
    """The `Attention` model with these values; its ramp is a time, so faster chips need longer sequences."""
    shares = dict(values)
    ramp = shares.pop("ramp_s") * chip.bf16_flops_per_s
    return Attention(**shares, ramp=ramp, name=chip.name)


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
    found = records.record("kernel_fits")["products"]
    name = _table_key(found, chip, kernel_dtype(dtype), library)
    line = found[name] | (_extrapolated_share(found, chip, dtype) if name.startswith("GPU") else {})
    return Products(**line, name=name)


def _extrapolated_share(lines: dict[str, Values], chip: Chip, dtype: DType) -> Values:
    """The share of peak extrapolated from the vendor's measured chips: 1 / share = a + b · (peak per core).

    A core with twice the compute is not fed data twice as fast. {} with too few measured chips.
    """
    peaks = {
        f"{one.name} | {name}": peak / (one.cores or 1)
        for one in CATALOG.values()
        if one.vendor == chip.vendor
        for name, peak in one.rates().items()
    }
    known = [(peak, 1 / lines[name]["flops"]) for name, peak in peaks.items() if name in lines]
    if len(known) <= MIN_POINTS or not chip.cores or dtype.name not in chip.rates():
        return {}
    slope, least = linear_regression(*zip(*known, strict=True))
    return {"flops": 1 / (least + slope * chip.flops_per_s(dtype) / chip.cores)}


@cache
def grouped(chip: Chip, dtype: DType) -> Grouped:
    """The grouped matmuls of a chip: the measured chip's, at the same ratio to dense matmuls.

    Formats with a scale for each block of elements multiply in the matrix unit as 16-bit ones do, so that
    these stand for them; fp8 is measured with a scale for each row.
    """
    lines = records.record("kernel_fits")["grouped"]
    of = f"{GROUPED_CHIP} | {_grouped_dtype(dtype)}"
    name = of if chip.name == GROUPED_CHIP else f"{chip.name}, as {of}"
    share = min(products(chip, dtype).flops * grouped_ratio(dtype), 1.0)
    return Grouped(**lines[of] | {"flops": share}, name=name)


def grouped_ratio(dtype: DType | str) -> float:
    """The share of peak of grouped matmuls over that of dense ones of as many rows, on the measured chip."""
    lines = records.record("kernel_fits")["grouped"]
    of = f"{GROUPED_CHIP} | {_grouped_dtype(dtype)}"
    return lines[of]["flops"] / lines[f"{of} | dense"]["flops"]


def _grouped_dtype(dtype: DType | str) -> str:
    """The measured dtype that stands for this one: fp8 for 8-bit ones with a scale for each row."""
    name = dtype if isinstance(dtype, str) else dtype.name
    return "fp8" if kernel_dtype(name) == "fp8" and not name.startswith("mx") else "bf16"


@cache
def attention(chip: Chip) -> Attention:
    """The fitted efficiency of fused attention on a chip."""
    found = records.record("kernel_fits")["attention"]
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
