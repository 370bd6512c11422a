"""Which efficiency does a chip have in training? The frozen table, and a rule for chips that it never saw.

Chapter: Training.
"""

from collections.abc import Iterator
from functools import cache
from math import exp, log

from scalingbook_lib.evidence.calibration import Key, Table, read
from scalingbook_lib.evidence.training.calibrated import DATE, ROWS
from scalingbook_lib.evidence.training.fit import EXPECTED, efficiency, expected
from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.training.efficiency import MATH, Efficiency

TABLE: Table = read(ROWS)
"""What was fitted, by chip and type: see `fit`."""


@cache
def calibrated(chip: Chip, precision: str = "bf16", kernel: str = "attention") -> Efficiency:
    """The efficiency of a chip whose products are of that type, by the frozen table and its rule."""
    return of(TABLE, chip, precision, kernel)


def of(table: Table, chip: Chip, precision: str, kernel: str = "attention") -> Efficiency:
    """By any table. A class without a value of its own takes the mean of the nearest kin that has it.

    Kin are, in this order: the same type of the same width; variants of the chip (H100 of 500 W); all chips
    that are joined alike (tori, or switches), first in types of that width, then in all. The mean is
    geometric. A variant's matrix unit runs as the cube root of its power, which grows as clock · voltage².
    Where there is no kin at all, a class is as `fit` expects it.
    """
    values = {name: _value(table, chip, precision, name) for name in EXPECTED}
    seen = (chip.name, precision) in table
    return efficiency(
        values, kernel, chip, f"{chip.name}, {precision}, {DATE}{'' if seen else ', by its kin'}"
    )


def _value(table: Table, chip: Chip, precision: str, name: str) -> float:
    for kin in _kin(table, chip, precision):
        have = [table[key][name] * _power(chip, key[0], name) for key in kin if name in table[key]]
        if have:
            return min(exp(sum(map(log, have)) / len(have)), EXPECTED[name].high)
    return expected(name, bool(chip.torus)).value


def _kin(table: Table, chip: Chip, precision: str) -> Iterator[list[Key]]:
    width = _width(precision)
    same = [key for key in table if key[0] == chip.name]
    variants = [key for key in table if _variant(chip, key[0])]
    alike = [key for key in table if key[0].startswith("TPU") == bool(chip.torus)]
    yield [key for key in same if key[1] == precision]
    for kin in (same, variants, alike):
        yield [key for key in kin if _width(key[1]) == width]
    yield alike


def _variant(chip: Chip, other: str) -> bool:
    return not chip.torus and chip.name.split()[0] == other.split()[0]


def _power(chip: Chip, other: str, name: str) -> float:
    kin = CATALOGUE.get(other)
    if name not in MATH or not kin or not kin.power_w or not chip.power_w or not _variant(chip, other):
        return 1.0
    return (chip.power_w / kin.power_w) ** (1 / 3)


def _width(precision: str) -> str:
    return "".join(letter for letter in precision if letter.isdigit())
