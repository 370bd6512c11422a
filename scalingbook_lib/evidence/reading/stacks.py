"""Whose software does a row's resemble? Its kin, whose rules fill in what the row does not say.

`stacks.csv` has the words by which software is known, in what a row says of its family, engine, source, name
and notes. A family that the library's own tables have is its own kin: rules may know more of it.
"""

import re
from dataclasses import dataclass

from scalingbook_lib.evidence.reading.cells import Cells, text
from scalingbook_lib.evidence.resources import rows
from scalingbook_lib.machines.chips import Chip

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


def kin(what: str, row: Cells, chip: Chip) -> Stack:
    """The software of a row of "training" or "inference"; what is unknown is read as its chip's commonest."""
    known = [one for one in rows("stacks") if one["what"] == what]
    said = [text(row, column).lower() for column in COLUMNS]
    named = next((one for cell in said for one in known if re.search(one["words"], cell)), None)
    usual = COMMONEST.get((what, bool(chip.torus)), "vLLM")
    found = named or next(one for one in known if one["stack"] == usual)
    own = any(one["family"] == text(row, "family") for one in rows(f"{what}_families"))
    family = text(row, "family") if own else found["family"]
    return Stack(found["stack"] if named else f"unknown, as {usual}", family, bool(named or own))
