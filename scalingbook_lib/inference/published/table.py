"""Which efficiency does a chip have in inference? The frozen table, and a rule for chips that it never saw.

Chapter: Inference.
"""

from collections.abc import Iterator
from functools import cache
from statistics import median

from scalingbook_lib.calibration import Key, Table, read
from scalingbook_lib.chips import Chip
from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.inference.published.calibrated import DATE, ROWS
from scalingbook_lib.inference.published.fit import EXPECTED, efficiency, expected
from scalingbook_lib.units import BF16, DType

HOST = "fixed_s", "sequence_s", "host_s"
TABLE: Table = read(ROWS)
"""What was fitted, by chip and type of the products: see `fit`."""


@cache
def calibrated(chip: Chip, compute: DType = BF16) -> Efficiency:
    """The efficiency of a chip whose layers compute in that type, by the frozen table and its rule."""
    return of(TABLE, chip, compute)


def of(table: Table, chip: Chip, compute: DType, engine: str = "") -> Efficiency:
    """By any table. A class without a value of its own takes the median of the nearest kin that have it.

    Kin are, in this order: the chip in its other types; variants of it (the A100 of 330 W); all chips that
    are joined alike (tori, or switches). Where there is no kin at all, a class is as
    `fit` expects it; so is what an engine loses, which is no property of chips, unless the chip has a line.
    """
    values = {name: _value(table, chip, compute.name, name, engine) for name in EXPECTED}
    seen = (chip.name, compute.name) in table
    return efficiency(values, chip, f"{chip.name}, {compute}, {DATE}{'' if seen else ', by its kin'}")


def _value(table: Table, chip: Chip, compute: str, name: str, engine: str) -> float:
    for kin in _kin(table, chip, compute, name in HOST):
        have = [table[key][name] for key in kin if name in table[key]]
        if have:
            return median(have)
    return expected(name, chip, engine).value


def _kin(table: Table, chip: Chip, compute: str, own: bool) -> Iterator[list[Key]]:
    yield [key for key in table if key == (chip.name, compute)]
    if own:
        return
    yield [key for key in table if key[0] == chip.name]
    yield [key for key in table if not chip.torus and key[0].split(",")[0] == chip.name.split(",")[0]]
    yield [key for key in table if key[0].startswith("TPU") == bool(chip.torus)]
