"""Which efficiency does a chip have in inference? The frozen table, and a rule for chips that it never saw.

Chapter: Inference.
"""

from collections.abc import Iterator
from functools import cache
from statistics import median

from scalingbook_lib.evidence.calibration import Key, Table, read
from scalingbook_lib.evidence.inference.calibrated import DATE, ROWS
from scalingbook_lib.evidence.inference.fit import BARE_ENGINES, EXPECTED, efficiency, expected, key
from scalingbook_lib.evidence.measured.inference_runs import RUNS
from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType

HOST = "fixed_s", "sequence_s", "host_s"
TABLE: Table = read(ROWS)
"""What was fitted, by chip and type of the products: see `fit`."""


BARE_LINES = frozenset(key(run) for run in RUNS if run.engine in BARE_ENGINES)


@cache
def calibrated(chip: Chip, compute: DType = BF16, engine: str = "") -> Efficiency:
    """The efficiency of a chip whose layers compute in that type, by the frozen table and its rule.

    Without an `engine`, what is lost to it is that of one which schedules requests between steps; "gpt-fast",
    and what else is in `fit.BARE_ENGINES`, lose less.
    """
    return of(TABLE, chip, compute, engine)


def of(table: Table, chip: Chip, compute: DType, engine: str = "") -> Efficiency:
    """By any table. A class without a value of its own takes the median of the nearest kin that have it.

    Kin are, in this order: the chip in its other types; variants of it (the A100 of 330 W); all chips that
    are joined alike (tori, or switches). Where there is no kin at all, a class is as `fit` expects it. What
    is lost to an engine is no property of other chips, nor of an engine of the other kind: it is as expected
    where the chip has no line of that kind.
    """
    values = {name: _value(table, chip, compute.name, name, engine) for name in EXPECTED}
    seen = (chip.name, compute.name) in table
    return efficiency(values, chip, f"{chip.name}, {compute}, {DATE}{'' if seen else ', by its kin'}")


def _value(table: Table, chip: Chip, compute: str, name: str, engine: str) -> float:
    bare = engine in BARE_ENGINES
    kin = _near(table, chip, compute) if name in HOST else _kin(table, chip, compute)
    for lines in kin:
        if name in HOST:
            lines = [line for line in lines if (line in BARE_LINES) == bare]
        have = [table[line][name] for line in lines if name in table[line]]
        if have:
            return median(have)
    return expected(name, chip, engine).value


def _near(table: Table, chip: Chip, compute: str) -> Iterator[list[Key]]:
    yield [line for line in table if line == (chip.name, compute)]
    yield [line for line in table if line[0] == chip.name]


def _kin(table: Table, chip: Chip, compute: str) -> Iterator[list[Key]]:
    yield from _near(table, chip, compute)
    yield [line for line in table if not chip.torus and line[0].split(",")[0] == chip.name.split(",")[0]]
    yield [line for line in table if line[0].startswith("TPU") == bool(chip.torus)]
