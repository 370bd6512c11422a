"""Whose software does a row's resemble? Its kin, whose rules fill in what the row does not say.

`stacks.csv` has the words by which software is known, in what a row says of its family, engine, name, source
and notes. A family that the library's own tables name is its own kin: rules may know more of it.
"""

import re
from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.scoring.cells import Cells, text
from scalingbook_lib.machines.chips import Chip

COLUMNS = "family", "engine", "source", "name", "notes"  # where software is named, the surest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Software, and the family of published runs by whose rules it is read."""

    name: str
    family: str
    known: bool = True  # whether any words of the row name it


def kin(what: str, row: Cells, chip: Chip) -> Stack:
    """The software of a row of "training" or "serving"; unknown software is read as its chip's commonest."""
    named, own = _named(what), text(row, "family")
    families = {one["family"] for one in resources.rows(f"{_TABLES[what]}_families")}
    said = (text(row, column).lower() for column in COLUMNS)
    found = next((one for cell in said for one in named if re.search(one["words"], cell)), None)
    if found is None:
        wanted = {"training": "MaxText" if chip.torus else "Megatron"}.get(what, "vLLM")
        found = next(one for one in named if one["stack"] == wanted)
        return Stack(
            name=f"unknown, as {wanted}", family=own if own in families else found["family"], known=False
        )
    family = own if own in families else found["family"]
    return Stack(name=found["stack"], family=family)


_TABLES = {"training": "training", "serving": "inference"}


@cache
def _named(what: str) -> list[resources.Row]:
    return [row for row in resources.rows("stacks") if row["what"] == what]
