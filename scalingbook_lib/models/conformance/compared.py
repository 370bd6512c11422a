"""Which rows of somebody else's calculator differ from the conformance vectors, and by which known slip.

A `Slip` is a mistake that calculators make, with the value that it would give. A number that differs is
explained by the slip whose value it has, to a part in two thousand. Chapter: Transformers.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from scalingbook_lib import git_lfs
from scalingbook_lib.models import catalog
from scalingbook_lib.models.conformance import slips
from scalingbook_lib.models.conformance.slips import NEAR
from scalingbook_lib.models.conformance.vectors import published
from scalingbook_lib.models.parts import ModelError, printable
from scalingbook_lib.units import Result

EQUAL = 1e-9  # relative: a number that was stored as a float
MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Difference(Result):
    """A row that differs: what the file says, what is right, and the slip that explains it ('' if none)."""

    model: str
    quantity: str
    theirs: float
    right: float
    slip: str

    @property
    def factor(self) -> float:
        """Their number over the right one."""
        return self.theirs / self.right if self.right else float("inf")

    def __str__(self) -> str:
        why = self.slip or "by no known slip"
        return f"{self.model}, {self.quantity}: {self.theirs:,.6g} for {self.right:,.6g}: {why}"


@dataclass(frozen=True, slots=True)
class Conformance(Result):
    """The rows of a file that agree, those that differ, those without a vector, and the vectors not given."""

    agree: int
    rounded: int
    differ: tuple[Difference, ...]
    unknown: tuple[tuple[str, str], ...]
    models: int

    @property
    def conforms(self) -> bool:
        """Whether every row agrees that has a vector, and there is one."""
        return not self.differ and self.agree + self.rounded > 0

    def __str__(self) -> str:
        agree = self.agree + self.rounded
        total = agree + len(self.differ)
        rows, models = _counted(total, "row"), _counted(self.models, "model")
        what = f"{agree:,} of {rows} of {models} agree with the vectors"
        rounded = f", {self.rounded:,} after rounding" if self.rounded else ""
        explained = sum(bool(one.slip) for one in self.differ)
        differ = (
            f"; {len(self.differ):,} differ, of which a known slip explains {explained:,}"
            if self.differ
            else ""
        )
        missing = len(self.unknown)
        unknown = (
            f"; {_counted(missing, 'row')} {'has' if missing == 1 else 'have'} no vector" if missing else ""
        )
        return f"{what}{rounded}{differ}{unknown}"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def conform(text: str) -> Conformance:
    """Compare a file, CSV with the columns model, quantity and value, or JSON like the table itself."""
    if git_lfs.is_pointer(text):
        raise ModelError("file", *git_lfs.refusal("it").split("; "))
    right, agree, rounded = published(), 0, 0
    names = _names(list(right))
    differ: list[Difference] = []
    unknown: list[tuple[str, str]] = []
    seen: set[str] = set()
    for model, quantity, value in _rows(text):
        name = model if model in right else names.get(catalog.normalize_name(model), "")
        row = right.get(name, {}).get(quantity)
        if row is None:
            unknown.append((model, quantity))
            continue
        seen.add(name)
        error = abs(value - row["value"]) / abs(row["value"]) if row["value"] else abs(value)
        if error <= EQUAL:
            agree += 1
        elif error <= NEAR:
            rounded += 1
        else:
            differ.append(Difference(name, quantity, value, row["value"], slips.slip(name, quantity, value)))
    return Conformance(agree, rounded, tuple(differ), tuple(unknown), len(seen))


def _names(models: list[str]) -> dict[str, str]:
    """The models by their normalized names, with their maker and without, unless two models have one."""
    found = defaultdict[str, set[str]](set)
    for name in models:
        for one in (name, name.rsplit("/", 1)[-1]):
            found[catalog.normalize_name(one)].add(name)
    return {key: named.pop() for key, named in found.items() if len(named) == 1}


def _rows(text: str) -> Iterator[tuple[str, str, float]]:
    """The rows of a file; ModelError where it is neither of both forms."""
    given = _json_rows(text) if text.lstrip()[:1] in "{[" else _csv_rows(text)
    for count, (model, quantity, value) in enumerate(given):
        if count >= MOST_ROWS:
            raise ModelError("file", f"it has more than {MOST_ROWS:,} rows", "give the rows of the vectors")
        try:
            number = float(str(value).replace(",", "").replace("_", ""))
        except ValueError as error:
            broke = f"{printable(value)} is not a number"
            raise ModelError(f"{model}, {quantity}", broke, "write one without a unit") from error
        if not abs(number) < 1e300:
            raise ModelError(
                f"{model}, {quantity}", f"{printable(value)} is not a number", "write a finite one"
            )
        yield model, quantity, number


def _csv_rows(text: str) -> Iterator[tuple[str, str, object]]:
    reader = csv.DictReader(StringIO(text, newline=""))
    needed = {"model", "quantity", "value"}
    if not needed <= set(reader.fieldnames or ()):
        broke = f"its columns are {', '.join(map(str, reader.fieldnames or ())) or 'missing'}"
        raise ModelError("file", broke, "write a CSV with the columns model, quantity, value")
    for row in reader:
        yield str(row["model"] or ""), str(row["quantity"] or "").strip(), row["value"]


def _json_rows(text: str) -> Iterator[tuple[str, str, object]]:
    """The rows of a table like the vectors' own, or of an object by model and quantity."""
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError("file", "it is no JSON", "give a CSV or a JSON file") from error
    models = read.get("models", read) if isinstance(read, dict) else read
    if isinstance(models, dict):
        models = [{"model": name, "rows": own} for name, own in models.items()]
    if not isinstance(models, list):
        raise ModelError("file", "it has no models", 'write {"models": [{"model": ..., "rows": [...]}]}')
    for one in models:
        rows = one.get("rows") if isinstance(one, dict) else None
        if isinstance(rows, dict):
            rows = [{"quantity": quantity, "value": value} for quantity, value in rows.items()]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ModelError("file", "a model has no rows", 'write {"model": ..., "rows": [...]}')
        for row in rows:
            yield str(one.get("model")), str(row.get("quantity")), row.get("value")
