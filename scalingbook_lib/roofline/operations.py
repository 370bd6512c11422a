"""How many FLOPs and how many bytes is each operation?

Counts are exact; the time follows from them and from two rates of the chip.
"""

from typing import Literal, TypedDict, Unpack

from scalingbook_lib.chips import Chip
from scalingbook_lib.roofline.time import Roofline, at_least_one
from scalingbook_lib.units import BF16, DType


class Against(TypedDict, total=False):
    """What an operation is held against, where it is not the chip's matrix unit and its HBM.

    `maths` is the type that the matrix unit computes in (by default, that of the activations);
    `flops_per_s` names another unit's rate, `bytes_per_s` another memory's or link's; `latency_s` is the
    least time that the operation takes however small it is; `over` is 'memory' or 'network'.
    """

    maths: DType | None
    flops_per_s: float | None
    bytes_per_s: float | None
    latency_s: float
    over: Literal["memory", "network"]


def operation(
    flops: float, nbytes: float, chip: Chip, dtype: DType = BF16, **against: Unpack[Against]
) -> Roofline:
    """Any operation that does `flops` and moves `nbytes` between the chip and its HBM."""
    return Roofline(
        flops=flops,
        bytes=nbytes,
        flops_per_s=against.get("flops_per_s") or chip.flops_per_s(against.get("maths") or dtype),
        bytes_per_s=against.get("bytes_per_s") or chip.hbm_bytes_per_s,
        latency_s=against.get("latency_s", 0.0),
        over=against.get("over", "memory"),
    )


def stored(dtype: DType, weights: DType | None, out: DType | None) -> tuple[float, float, float]:
    """Bytes an element of the activations, the weights and the output."""
    return dtype.bytes, (weights or dtype).bytes, (out or dtype).bytes
