"""Which efficiency does a chip have in inference? The frozen table, and a rule for chips that it never saw.

Chapter: Inference.
"""

from functools import cache
from statistics import median

from scalingbook_lib.evidence import tables
from scalingbook_lib.evidence.inference.fit import BARE_ENGINES, EXPECTED, efficiency, expected, key
from scalingbook_lib.evidence.measured.inference_runs import runs
from scalingbook_lib.evidence.tables import Key, Table, frozen
from scalingbook_lib.inference.efficiency import Efficiency
from scalingbook_lib.machines.chips import Chip
from scalingbook_lib.units import BF16, DType

HOST = "fixed_s", "sequence_s", "host_s"


@cache
def _bare_lines() -> frozenset[Key]:
    """The lines of the table that runs without a scheduler gave."""
    return frozenset(key(run) for run in runs() if run.engine in BARE_ENGINES)


@cache
def calibrated(chip: Chip, compute: DType = BF16, engine: str = "") -> Efficiency:
    """The efficiency of a chip whose layers compute in that type, by the frozen table and its rule.

    Without an `engine`, what is lost to it is that of one which schedules requests between steps; "gpt-fast",
    and what else is in `fit.BARE_ENGINES`, lose less.
    """
    return of(frozen("inference").table, chip, compute, engine)


def of(table: Table, chip: Chip, compute: DType, engine: str = "") -> Efficiency:
    """By any table. A class without a value of its own takes the median of the nearest kin that have it.

    Kin are, in this order: the chip in its other types; variants of it (the A100 of 330 W); all chips that
    are joined alike (tori, or switches). Where there is no kin at all, a class is as `fit` expects it. What
    is lost to an engine is no property of other chips, nor of an engine of the other kind: it is as expected
    where the chip has no line of that kind.
    """
    values = {name: _value(table, chip, compute, name, engine) for name in EXPECTED}
    kin = "" if (chip.name, compute.name) in table else ", by its kin"
    return efficiency(values, chip, f"{chip.name}, {compute}, {frozen('inference').date}{kin}")


def _value(table: Table, chip: Chip, compute: DType, name: str, engine: str) -> float:
    same = tables.same(table, chip)
    kin = [[line for line in same if line[1] == compute.name], same]
    if name in HOST:
        bare = engine in BARE_ENGINES
        kin = [[line for line in lines if (line in _bare_lines()) == bare] for lines in kin]
    else:
        kin += [tables.variants(table, chip), tables.alike(table, chip)]
    near = tables.nearest(table, kin, name)
    return median(near.values()) if near else expected(name, chip, engine).value
