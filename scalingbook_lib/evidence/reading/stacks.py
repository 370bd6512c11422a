"""Whose software does a row's resemble? Its kin, whose rules fill in what the row does not say.

`stacks.csv` has the words by which software is known, in what a row says of its family, engine, source, name
and notes. A family that the library's own tables have is its own kin: rules may know more of it.
"""

import re
from dataclasses import dataclass

from scalingbook_lib.evidence.reading.cells import Cells, text
from scalingbook_lib.evidence.resources import rows

COLUMNS = "family", "engine", "source", "name", "notes"  # where software is named, the surest first
COMMONEST = {
    ("training", True): "MaxText",
    ("training", False): "Megatron",
}  # by whether its chips form a torus


@dataclass(frozen=True, slots=True)
class Stack:
    """Software, the family of published runs by whose rules it is read, and whether the row names it."""

    name: str
    family: str
    known: bool = True


def kin(what: str, row: Cells) -> Stack:
    """The software of a row of "training" or "inference"; to what is unknown no family's rules apply."""
    stacks, said = (
        [one for one in rows("stacks") if one["what"] == what],
        [text(row, name) for name in COLUMNS],
    )
    named = next((one for cell in said for one in stacks if re.search(one["words"], cell.lower())), None)
    own = next((one["family"] for one in rows(f"{what}_families") if one["family"] == said[0]), "")
    if named is None:
        return Stack(own or "unknown", own, known=bool(own))
    return Stack(named["stack"], own or named["family"])
