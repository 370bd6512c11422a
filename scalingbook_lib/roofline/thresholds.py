"""The intensity, batch, tile or shard size above which an operation is compute-bound.

The module covers a matmul against HBM or any other bandwidth, a tiled matmul that re-reads its operands, and
a matmul sharded over one axis, comparing compute with links only (`sharded_matmul` compares every sharding
with all terms). Chapter: Rooflines.
"""

import math
from dataclasses import dataclass
from typing import Literal, Unpack

from scalingbook_lib import rules
from scalingbook_lib.machines.chips import Axis, Chip
from scalingbook_lib.roofline.time import Against, Roofline, operation
from scalingbook_lib.units import BF16, DType, Result, binary, count, percent, require_min


def attainable(intensity: float, chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """The FLOP/s that an operation of this intensity can reach: min(intensity · bytes/s, peak)."""
    # FLOPs/byte times bytes/s
    return min(chip.flops_per_s(dtype), intensity * (bytes_per_s or chip.hbm_bytes_per_s))


@dataclass(frozen=True, slots=True)
class RuleOfThumb(Result):
    """The critical batch size in tokens by the rule of thumb, and the exact one."""

    batch: float
    exact: float

    @property
    def error(self) -> float:
        """The relative error of the rule: -0.5 if it gives half of the exact batch, -1 if none is enough."""
        return self.batch / self.exact - 1

    def __str__(self) -> str:
        if math.isinf(self.exact):
            return f"the rule says {self.batch:,.0f} tokens, but no batch is large enough for this layer"
        off = f"{percent(abs(self.error))} too {'low' if self.error < 0 else 'high'}"
        return (
            f"the rule says {self.batch:,.0f} tokens, the exact batch is {self.exact:,.0f}: the rule is {off}"
        )


def rule_of_thumb_batch(
    D: float,
    F: float,
    chip: Chip,
    dtype: DType = BF16,
    *,
    weights: DType | None = None,
    out: DType | None = None,
    maths: DType | None = None,
    bytes_per_s: float | None = None,
) -> RuleOfThumb:
    """R w / 2 tokens, the critical batch of very wide layers ("240 on v5e"), and the exact critical batch."""
    exact = rules.matmul_critical_batch(
        D, F, chip, dtype, weights=weights, out=out, maths=maths, bytes_per_s=bytes_per_s
    )
    rule = rules.critical_batch(
        chip, weights=weights or dtype, compute=maths or dtype, bytes_per_s=bytes_per_s
    )
    return RuleOfThumb(rule.tokens, exact)


@dataclass(frozen=True, slots=True)
class TiledMatmul(Result):
    """A matmul that re-reads its inputs tile by tile, and the on-chip memory that one tile needs."""

    roofline: Roofline
    tiles: int
    vmem_bytes: float
    vmem_fraction: float | None

    @property
    def fits(self) -> bool | None:
        """Whether a tile fits the chip's VMEM; None if the chip's VMEM is not documented."""
        return None if self.vmem_fraction is None else self.vmem_fraction <= 1

    def __str__(self) -> str:
        share = {None: "", True: ", which fits", False: ", which does not fit"}[self.fits]
        return f"{self.roofline}; {count(self.tiles)} tiles, each in {binary(self.vmem_bytes)} of VMEM{share}"


def tiled_matmul(
    B: int,
    D: int,
    F: int,
    chip: Chip,
    dtype: DType = BF16,
    *,
    rows: int,
    columns: int,
    depth: int,
    **against: Unpack[Against],
) -> TiledMatmul:
    """X[B, D] · W[D, F] → Y[B, F] in tiles of `rows` of B and `columns` of F, in steps of `depth` along D.

    VMEM holds two buffers of each input tile (one is used while the other fills) and an fp32 accumulator.
    """
    require_min(1, B=B, D=D, F=F, rows=rows, columns=columns, depth=depth)
    # hong1981io: with larger tiles, each input is read fewer times
    tiles, steps = math.ceil(B / rows) * math.ceil(F / columns), math.ceil(D / depth)
    inputs = dtype.bytes * depth * (rows + columns)  # one step's tiles of X and of W
    nbytes = tiles * steps * inputs + dtype.bytes * B * F  # every tile of Y reads its inputs again
    vmem_bytes = 2 * inputs + 4 * rows * columns
    fraction = vmem_bytes / chip.vmem_bytes if chip.vmem_bytes else None
    return TiledMatmul(operation(2 * B * D * F, nbytes, chip, dtype, **against), tiles, vmem_bytes, fraction)


def square_tile(chip: Chip, dtype: DType = BF16, bytes_per_s: float | None = None) -> float:
    """The side in elements above which square tiles are compute-bound: a · ridge.

    A tile of side b does 2 b² d FLOPs for 2 a b d bytes.
    """
    return dtype.bytes * rules.ridge(chip, dtype, bytes_per_s)


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
    """X[B, D] · W[D, F] → Y[B, F] with one dimension sharded over `axis`: compute against links.

    Sharding B or F needs no communication. Sharding D leaves every chip with a partial sum of all of Y, which
    takes an all-reduce, or with `keep_sharded` a reduce-scatter, which is half of it. HBM and hop latency are
    left out. Raises a ValueError if `split` is not one of the three dimensions.
    """
    require_min(1, B=B, D=D, F=F)
    if split not in ("B", "D", "F"):
        raise ValueError(f"split={split!r} is not a dimension of this matmul; write 'B', 'D' or 'F'")
    n = axis.size
    # an all-reduce is a reduce-scatter and an all-gather
    crossings = {"D": 1 if keep_sharded else 2}.get(split, 0)
    nbytes = crossings * (1 - 1 / n) * (out or dtype).bytes * B * F  # each chip already holds 1/n of them
    return operation(2 * B * D * F / n, nbytes, chip, dtype, bytes_per_s=axis.bytes_per_s, over="network")


def break_even_contraction(
    chip: Chip, axis: Axis, dtype: DType = BF16, *, keep_sharded: bool = False, out: DType | None = None
) -> float:
    """The D above which a matmul with D sharded is compute-bound: 2 C / W for bf16 on a line of two chips.

    B and F cancel, because compute and partial sums are both proportional to B · F.
    """
    one = split_matmul(1, 1, 1, chip, axis, split="D", dtype=dtype, keep_sharded=keep_sharded, out=out)
    # both for D = 1: the bytes do not grow with D, the FLOPs do
    return one.memory_s / one.math_s
