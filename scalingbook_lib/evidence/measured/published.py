"""What do all published runs of models have in common? A row of a table, its family, and its id.

A table is two files of `evidence/data`: `<what>_runs.csv` has a row for each run, `<what>_families.csv` what
is common to a family of them. The column `use` says which rows are usable. Chapters: Training, Inference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence.resources import Row, grouped, rows
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Result


@dataclass(frozen=True, kw_only=True, eq=False)  # one for each row, so it equals itself alone
class PublishedRun(Result):
    """A model on chips, of which tp · pp hold at least one copy, and what its source prints of it."""

    id: str
    family: str
    model: Transformer
    chip: Chip
    chips: int
    tp: int
    pp: int
    printed: Mapping[str, str]  # by a short name of the figure: {"s": "12.91", "mfu": "0.5937"}
    source: Source
    software: tuple[str, ...] = ()  # its name, and the release: the factors of `evidence.factors`
    note: str = ""  # what was assumed or recalled, not read

    @property
    def experts(self) -> bool:
        """Whether the model has experts."""
        return self.model.experts is not None


@cache
def families(what: str) -> dict[str, Row]:
    """What is common to the runs of a family, by its name; of "training", or of "inference"."""
    return {row["family"]: row for row in rows(f"{what}_families")}


@cache
def refused(what: str) -> dict[str, tuple[str, ...]]:
    """The ids of the rows that are left out, by the reason that the column `use` gives."""
    left_out = [row for row in rows(f"{what}_runs") if row["use"] not in ("", "held-out")]
    groups = grouped(left_out, lambda row: row["use"])
    return {reason: tuple(row["run_id"] for row in group) for reason, group in groups.items()}


def find[Run: PublishedRun](id: str, runs: Iterable[Run], what: str) -> Run:
    """The run of that id; a KeyError that says why there is none."""
    for run in runs:
        if run.id == id:
            return run
    why = (reason for reason, ids in refused(what).items() if id in ids)
    raise KeyError(f"no usable run {id!r}: {next(why, 'the table has no such row')}")
