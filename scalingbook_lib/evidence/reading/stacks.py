"""Finds the software of a row; its rules fill in what the row does not say.

`stacks.csv` has patterns that tell the software from the cells of a row that may name it (`COLUMNS`). A
family in the library's own tables takes precedence, because its rules may be more specific.
"""

import re
from dataclasses import dataclass

from scalingbook_lib.evidence.reading.cells import Cells, text
from scalingbook_lib.evidence.resources import rows

COLUMNS = "family", "software", "framework", "engine", "source", "name", "notes"
"""The columns that name software, the most reliable first."""


@dataclass(frozen=True, slots=True)
class SoftwareStack:
    """Software, the family of published runs whose rules apply, and what is known of it.

    `fitted_as` is the software under whose name its factors are fitted: vLLM for all continuous batching.
    `known` is whether the row names the software, and `measured` whether a published run of it is in the fit.
    Software that is not measured is predicted like other software with its factors.
    """

    name: str
    family: str
    fitted_as: str
    known: bool = True
    measured: bool = True


def software_of(what: str, row: Cells) -> SoftwareStack:
    """The software of a row of "training" or "inference" runs; unknown software has no family."""
    stacks, said = (
        [one for one in rows("stacks") if one["what"] == what],
        [text(row, name) for name in COLUMNS],
    )
    found = ((cell.lower(), one) for cell in said for one in stacks if re.search(one["words"], cell.lower()))
    cell, named = next(found, ("", None))
    own = next((one["family"] for one in rows(f"{what}_families") if one["family"] == said[0]), "")
    if named is None:
        return SoftwareStack(own or "unknown", own, own or "unknown", known=bool(own))
    measured = not (named["unmeasured"] and re.search(named["unmeasured"], cell))
    fitted_as = named["as"] or named["stack"]
    return SoftwareStack(named["stack"], own or named["family"], fitted_as, measured=measured)
