"""What published training and inference runs have in common: a row, its family and its id.

A table is two files of `evidence/data`: `<what>_runs.csv` has a row per run, `<what>_families.csv` what a
family of runs shares. The column `use` says which rows are usable. Chapters: Training; Inference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from scalingbook_lib.evidence.resources import Row, grouped, rows
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.models import Transformer
from scalingbook_lib.units import Result


@dataclass(frozen=True, kw_only=True, eq=False)  # one object per row, compared by identity
class PublishedRun(Result):
    """A model on chips, of which tp · pp hold at least one replica, and what its source prints."""

    id: str
    family: str
    model: Transformer
    chip: Chip
    chips: int
    tp: int
    pp: int
    printed: Mapping[str, str]  # by a short name: {"s": "12.91", "mfu": "0.5937"}
    source: Source
    software: tuple[str, ...] = ()  # its name and its release, as in `calibrated.factors`
    note: str = ""  # what was assumed rather than read

    @property
    def experts(self) -> bool:
        """Whether the model has experts."""
        return self.model.experts is not None


@cache
def families(what: str) -> dict[str, Row]:
    """What the runs of a family share, by its name; `what` is "training" or "inference"."""
    return {row["family"]: row for row in rows(f"{what}_families")}


@cache
def refused(what: str) -> dict[str, tuple[str, ...]]:
    """The ids of the excluded rows, by the reason in the column `use`."""
    excluded = [row for row in rows(f"{what}_runs") if row["use"] not in ("", "held-out")]
    groups = grouped(excluded, lambda row: row["use"])
    return {reason: tuple(row["run_id"] for row in group) for reason, group in groups.items()}


def find[Run: PublishedRun](id: str, runs: Iterable[Run], what: str) -> Run:
    """The run with that id; raises a KeyError that says why there is none."""
    for run in runs:
        if run.id == id:
            return run
    why = (reason for reason, ids in refused(what).items() if id in ids)
    raise KeyError(f"no usable run {id!r}: {next(why, 'the table has no such row')}")
