"""Which efficiency does a chip have in training? The frozen table, and a rule for chips that it never saw.

Chapter: Training.
"""

from collections.abc import Iterator
from functools import cache
from math import exp, log

from scalingbook_lib.evidence import tables
from scalingbook_lib.evidence.tables import Key, Table, frozen
from scalingbook_lib.evidence.training.fit import EXPECTED, efficiency, expected
from scalingbook_lib.machines.chips import CATALOGUE, Chip
from scalingbook_lib.training.efficiency import MATH, Efficiency


@cache
def calibrated(chip: Chip, precision: str = "bf16", kernel: str = "attention") -> Efficiency:
    """The efficiency of a chip whose products are of that type, by the frozen table and its rule."""
    return of(frozen("training").table, chip, precision, kernel)


def of(table: Table, chip: Chip, precision: str, kernel: str = "attention") -> Efficiency:
    """By any table. A class without a value of its own takes the mean of the nearest kin that has it.

    Kin are, in this order: the same type of the same width; variants of the chip (H100 of 500 W); all chips
    that are joined alike (tori, or switches), first in types of that width, then in all. The mean is
    geometric. A variant's matrix unit runs as the cube root of its power, which grows as clock · voltage².
    Where there is no kin at all, a class is as `fit` expects it.
    """
    values = {name: _value(table, chip, precision, name) for name in EXPECTED}
    kin = "" if (chip.name, precision) in table else ", by its kin"
    return efficiency(values, kernel, chip, f"{chip.name}, {precision}, {frozen('training').date}{kin}")


def _value(table: Table, chip: Chip, precision: str, name: str) -> float:
    near = tables.nearest(table, _kin(table, chip, precision), name)
    if not near:
        return expected(name, chip).value
    logarithms = [log(value * _power(chip, key[0], name)) for key, value in near.items()]
    return min(exp(sum(logarithms) / len(logarithms)), EXPECTED[name].high)


def _kin(table: Table, chip: Chip, precision: str) -> Iterator[list[Key]]:
    same, alike = tables.same(table, chip), tables.alike(table, chip)
    yield [key for key in same if key[1] == precision]
    for kin in (same, tables.variants(table, chip), alike):
        yield [key for key in kin if _width(key[1]) == _width(precision)]
    yield alike


def _power(chip: Chip, other: str, name: str) -> float:
    kin = CATALOGUE.get(other)
    if name not in MATH or not kin or not kin.power_w or not chip.power_w:
        return 1.0
    return (chip.power_w / kin.power_w) ** (1 / 3) if tables.is_variant(chip, other) else 1.0


def _width(precision: str) -> str:
    return "".join(letter for letter in precision if letter.isdigit())
