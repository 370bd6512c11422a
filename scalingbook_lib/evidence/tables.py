"""Which efficiencies were fitted, and what is a chip's that no run used? Frozen tables, and the order of kin.

The tables `training_efficiencies.json` and `inference_efficiencies.json` in `data`, by chip and type of the
products, are what `tools.calibrate` wrote. Chapters: Training, Inference.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence import kernels, resources
from scalingbook_lib.evidence.fitting import Values
from scalingbook_lib.machines import Chip

type Key = tuple[str, str]  # chip and type of the products
type Table = Mapping[Key, Values]


@dataclass(frozen=True)
class Frozen:
    """`table` is of all published runs; `left_out` has, for each source, the lines that it touches.

    Those were fitted without it; a line is missing where fewer than three runs are left. `tried` is what
    the fit reports besides.
    """

    date: str
    table: Table
    left_out: Mapping[str, Table]
    tried: Mapping[str, Mapping[str, float]]

    def without(self, source: str, touched: Collection[Key]) -> Table:
        """The table that never saw a source, which touches those lines."""
        rest = {line: row for line, row in self.table.items() if line not in touched}
        return rest | dict(self.left_out[source])


@cache
def frozen(what: str) -> Frozen:
    """The efficiencies of "training", or of "inference"."""
    found = resources.record(f"{what}_efficiencies")
    left_out = {source: _table(rows) for source, rows in found["left_out"].items()}
    return Frozen(found["date"], _table(found["table"]), left_out, found["tried"])


def _table(rows: Mapping[str, Values]) -> Table:
    keyed = {}
    for name, row in rows.items():
        chip, _, dtype = name.partition(" | ")
        keyed[chip, dtype] = row
    return keyed


def nearest(table: Table, kin: Iterable[list[Key]], name: str) -> dict[Key, float]:
    """The values of a class in those lines of the nearest kin that have it; none where no kin has."""
    for lines in kin:
        have = {line: table[line][name] for line in lines if name in table[line]}
        if have:
            return have
    return {}


def same(table: Table, chip: Chip) -> list[Key]:
    """The lines of the chip itself."""
    return [line for line in table if line[0] == chip.name]


def variants(table: Table, chip: Chip) -> list[Key]:
    """The lines of chips that differ in memory or power alone: the H100 of 500 W."""
    return [line for line in table if kernels.is_variant(chip, line[0])]


def alike(table: Table, chip: Chip) -> list[Key]:
    """The lines of all chips that are joined alike: by tori, or by switches."""
    return [line for line in table if line[0].startswith("TPU") == bool(chip.torus)]
