"""Which dimension of a matmul can be split over chips, and when do the links limit?

One axis, and links against arithmetic only; `sharded_matmul` weighs every sharding with all its terms.
"""

from typing import Literal

from scalingbook_lib.machines.chips import Axis, Chip
from scalingbook_lib.roofline.operations import operation
from scalingbook_lib.roofline.time import Roofline, at_least_one
from scalingbook_lib.units import BF16, DType


def split_matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    axis: Axis,
    *,
    split: Literal["B", "D", "F"],
    dtype: DType = BF16,
    keep_sharded: bool = False,
    out: DType | None = None,
) -> Roofline:
    """X[B, D] · W[D, F] → Y[B, F] with one dimension split over `axis`: each chip's math against its links.

    Splitting B or F needs no link. Splitting D leaves every chip with a partial sum of all of Y: an
    all-reduce, or with `keep_sharded` the reduce-scatter that is half of it. HBM and hop latency left out.
    """
    at_least_one(B=B, D=D, F=F)
    if split not in ("B", "D", "F"):
        raise ValueError(f"split={split!r} is no dimension of this matmul; write 'B', 'D' or 'F'")
    n = axis.size
    crossings = {"D": 1 if keep_sharded else 2}.get(split, 0)
    nbytes = crossings * (1 - 1 / n) * (out or dtype).bytes * B * F  # each chip already holds 1/n of them
    return operation(2 * B * D * F / n, nbytes, chip, dtype, bytes_per_s=axis.bytes_per_s, over="network")


def break_even_contraction(
    chip: Chip, axis: Axis, dtype: DType = BF16, *, keep_sharded: bool = False, out: DType | None = None
) -> float:
    """The D above which a matmul with D split is compute-bound: for two bf16 chips on a line, 2 C / W.

    B and F cancel: arithmetic and partial sums both grow with their product.
    """
    one = split_matmul(1, 1, 1, chip, axis, split="D", dtype=dtype, keep_sharded=keep_sharded, out=out)
    return one.memory_s / one.math_s
