"""The efficiency of a chip and the slowness of software: two factors that all published runs share.

A fit is one flat record of values. A chip's key is "H100, 8 bits": the share of peak that its matmuls reach,
with a prior from measured kernels (`calibrated.kernels`). Software's key is "MaxText: slowness": its time
relative to the average of all software; each release has a further factor. Chapters: Training; Inference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from scalingbook_lib.calibrated import kernels, records
from scalingbook_lib.calibrated.records import Values
from scalingbook_lib.machines.chips import CATALOG, OTHERS, Chip
from scalingbook_lib.units import BF16, FP4, FP8

TPU_MATMUL_SHARE = 0.86  # large square matmul kernels: 0.82 on TPU7x, 0.90 on v6e
_CHIPS = CATALOG | {one.name: one for one in OTHERS}
_TYPES = {16: BF16, 8: FP8, 4: FP4}


@dataclass(frozen=True)
class Record:
    """Fitted values: `values` from all published runs, `leave_one_out` from fits without some of them.

    `leave_one_out` has predicted over published by a run's id, for each way to leave it out: with one in five
    "rows", or with all of its "source", "software" or "chip".
    """

    date: str
    values: Values
    leave_one_out: Mapping[str, Mapping[str, float]]

    def name(self, chip: Chip, precision: str, software: str) -> str:
        """The name of an efficiency of these values; "by its kin" where no run of the chip was fitted."""
        kin = "" if figure_key(chip, precision) in self.values else ", by its kin"
        return f"{chip.name}, {precision}, {software or 'any software'}, {self.date}{kin}"


@cache
def record(what: str) -> Record:
    """The values of "training" or of "inference" that `tools.calibrate` recorded."""
    return Record(**records.record(f"{what}_efficiencies"))


def bits(precision: str) -> int:
    """The bits of the dtype of weight matmuls: 16, 8 or 4."""
    return next((n for n in _TYPES if str(n) in precision), 16)


def figure_key(chip: Chip, precision: str) -> str:
    """The key of a chip's matmul efficiency: 'H100, 8 bits'."""
    return f"{chip.name}, {bits(precision)} bits"


def kernel_share(chip: Chip, precision: str) -> float:
    """The share of peak that a chip's measured matmul kernels reach.

    A variant with less power scales by the cube root, because power is proportional to clock · voltage².
    """
    if chip.torus:
        return TPU_MATMUL_SHARE
    found = kernels.products(chip, _TYPES[bits(precision)])
    return found.flops * _power_scale(chip, found.name.split(" | ")[0])


def matmul_share(values: Values, chip: Chip, precision: str) -> float:
    """The fitted matmul efficiency of a chip.

    Without a fit, its kernels' share times the ratio of fit to kernels on the nearest measured chip.
    """
    known = values.get(figure_key(chip, precision))
    if known:
        return known
    own = kernel_share(chip, precision)
    near = kernels.nearest_measured_chip(
        [name for name, one in _CHIPS.items() if figure_key(one, precision) in values], chip
    )
    if not near:
        return own
    kin = _CHIPS[near]
    return own * values[figure_key(kin, precision)] / kernel_share(kin, precision)


def read_factor(values: Values, chip: Chip) -> float:
    """The rate at which a chip reads weights relative to all chips: fitted, the nearest chip's, or 1."""
    own = [name for name in (chip.name, *_CHIPS) if f"{name}: reads" in values]
    near = chip.name if chip.name in own else kernels.nearest_measured_chip(own, chip)
    return values[f"{near}: reads"] if near else 1.0


def _power_scale(chip: Chip, other: str) -> float:
    kin = _CHIPS.get(other)
    if not kin or not kin.power_w or not chip.power_w or not kernels.is_variant(chip, other):
        return 1.0
    return (chip.power_w / kin.power_w) ** (1 / 3)


def software_factor(values: Values, named: Iterable[str], what: str) -> float:
    """The product of the factors of software and of its release; 1, the average software, without any."""
    return prod(values.get(f"{name}: {what}", 1.0) for name in dict.fromkeys(named))
