"""What does a chip reach, and how slow is its software? Two factors that all published runs share.

A fit has one flat record of figures. A chip's is named "H100, 8 bits": the share of its peak that its
matrix products reach, drawn to what its kernels attain (`evidence.kernels`). Software's is named "MaxText:
slowness": how many times as long it takes as all software does on average; a release of it has a figure of
its own beside that. Chapters: Training, Inference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from scalingbook_lib.evidence import kernels, resources
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.machines.chips import CATALOGUE, L40S, OTHERS, RTX_PRO_6000, Chip
from scalingbook_lib.units import BF16, FP4, FP8

TORUS_PRODUCTS = 0.86  # kernels: 0.82 on TPU7x, 0.90 on v6e, of large squares
_CHIPS = CATALOGUE | {one.name: one for one in (L40S, RTX_PRO_6000, *OTHERS)}
_TYPES = {16: BF16, 8: FP8, 4: FP4}


@dataclass(frozen=True)
class Record:
    """`values` are of all published runs; `left_out` is how runs are predicted by values that miss some.

    That is predicted over published by a run's id, for each way to leave it out: with "rows" (one in five),
    with all of its "source", of its "software", or of its "chip".
    """

    date: str
    values: Values
    left_out: Mapping[str, Mapping[str, float]]


@cache
def record(what: str) -> Record:
    """The figures of "training", or of "inference", as `tools.calibrate` froze them."""
    return Record(**resources.record(f"{what}_efficiencies"))


def bits(precision: str) -> int:
    """Of the type of the products of weights: 16, 8 or 4."""
    return next((n for n in _TYPES if str(n) in precision), 16)


def line(chip: Chip, precision: str) -> str:
    """The name of a chip's figure: 'H100, 8 bits'."""
    return f"{chip.name}, {bits(precision)} bits"


def attained(chip: Chip, precision: str) -> float:
    """What its kernels say of a chip's products; of less power, by the cube root: clock · voltage²."""
    if chip.torus:
        return TORUS_PRODUCTS
    found = kernels.products(chip, _TYPES[bits(precision)])
    return found.flops * _power(chip, found.name.split(" | ")[0])


def of_chip(values: Values, chip: Chip, precision: str) -> float:
    """Its figure; without one as its kernels say, times what its kin reach beside what theirs say."""
    known = values.get(line(chip, precision))
    if known:
        return known
    own = attained(chip, precision)
    near = kernels.kin([name for name, one in _CHIPS.items() if line(one, precision) in values], chip)
    if not near:
        return own
    kin = _CHIPS[near]
    return own * values[line(kin, precision)] / attained(kin, precision)


def reads(values: Values, chip: Chip) -> float:
    """How fast it reads weights beside what all chips reach: its own figure, its kin's, or 1."""
    own = [name for name in (chip.name, *_CHIPS) if f"{name}: reads" in values]
    near = chip.name if chip.name in own else kernels.kin(own, chip)
    return values[f"{near}: reads"] if near else 1.0


def _power(chip: Chip, other: str) -> float:
    kin = _CHIPS.get(other)
    if not kin or not kin.power_w or not chip.power_w or not kernels.is_variant(chip, other):
        return 1.0
    return (chip.power_w / kin.power_w) ** (1 / 3)


def of_software(values: Values, named: Iterable[str], what: str) -> float:
    """The product of the figures of software and of its release; 1, that of all software, without any."""
    return prod(values.get(f"{name}: {what}", 1.0) for name in dict.fromkeys(named))
