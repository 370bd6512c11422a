"""Dated predictions of runs that nobody had published when they were written.

Each prediction is a JSON file of `data/predictions`, written once by `tools.predictions` and never changed.
`evidence.score` compares them with a table whose rows name a prediction and its measured value. Chapter:
Comparing accelerators.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from math import isclose, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

FOLDERS = (  # where the files are in an installed package, and in a clone
    Path(__file__).parent / "dated_predictions",
    Path(__file__).parents[2] / "data" / "predictions",
)
KINDS = {"training": "plan", "serving": "serve"}
"""The kinds of predictions, and the command of `scalingbook` that makes each."""
UNIT = "tokens/s per chip"
COVERAGE = 0.8


class PredictionError(ValueError):
    """A file that is not a prediction; the message names the file, the field and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One prediction: `value` within `low` to `high` for `input`, the arguments of `scalingbook`.

    `specifications` are those of the chip on that `date`, in base units, and `assumed` lists what its vendor
    has not said. `commit` is the last one that changed the code behind the prediction.
    """

    id: str
    kind: str
    model: str
    machine: str
    chip: str
    input: tuple[str, ...]
    plan: str
    value: float
    low: float
    high: float
    unit: str
    coverage: float
    date: str
    commit: str
    assumed: tuple[str, ...]
    specifications: Mapping[str, Any]

    @property
    def factor(self) -> float:
        """The band as a factor, up or down."""
        return self.high / self.value

    @property
    def command(self) -> str:
        """The command that printed the prediction."""
        return " ".join(("scalingbook", *self.input))


def read(path: Path) -> Prediction:
    """The prediction in a file; raises a `PredictionError` that names the field which breaks the schema."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PredictionError(f"{path.name} cannot be read as JSON: {error}") from error
    names = [field.name for field in fields(Prediction)]
    if not isinstance(found, dict) or sorted(found) != sorted(names):
        there = ", ".join(sorted(found)) if isinstance(found, dict) else type(found).__name__
        raise PredictionError(f"{path.name} has {there}; a prediction has exactly {', '.join(names)}")
    for name, rule in _broken(found, path.stem):
        raise PredictionError(f"{path.name}: {name} is {found[name]!r}; it must be {rule}")
    values: dict[str, Any] = {
        **found,
        "input": tuple(found["input"]),
        "assumed": tuple(found["assumed"]),
        "specifications": MappingProxyType(found["specifications"]),
    }
    return Prediction(**values)


def _broken(found: Mapping[str, Any], stem: str) -> list[tuple[str, str]]:
    """The fields that break a rule, with the rule."""
    value, low, high = (found[name] for name in ("value", "low", "high"))
    numbers = all(isinstance(one, float) and isfinite(one) for one in (value, low, high))
    texts = ("model", "machine", "chip", "plan")
    rules = [
        ("id", f"the name of the file, {stem!r}", found["id"] == stem),
        ("kind", f"one of {', '.join(KINDS)}", found["kind"] in KINDS),
        *((name, "a text", isinstance(found[name], str) and bool(found[name])) for name in texts),
        ("input", "a list of arguments, the command first", _is_input(found["input"], found["kind"])),
        ("value", "a finite number between low and high", numbers and 0 < low < value < high),
        (
            "low",
            "value²/high: the band is one factor, up and down",
            numbers and isclose(low * high, value**2),
        ),
        ("unit", repr(UNIT), found["unit"] == UNIT),
        ("coverage", f"{COVERAGE}", found["coverage"] == COVERAGE),
        ("date", "a day, as in 2026-11-29", _is_day(found["date"])),
        ("commit", "40 hexadecimal digits", bool(re.fullmatch("[0-9a-f]{40}", str(found["commit"])))),
        ("assumed", "a list of texts", _are_texts(found["assumed"])),
        ("specifications", "those of the chip", _is_chip(found["specifications"], found["chip"])),
    ]
    return [(name, rule) for name, rule, holds in rules if not holds]


def _is_input(found: Any, kind: str) -> bool:
    return _are_texts(found) and len(found) > 2 and found[0] == KINDS.get(kind)


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _is_chip(found: Any, chip: str) -> bool:
    return isinstance(found, dict) and found.get("name") == chip and "sources" in found


def _is_day(found: Any) -> bool:
    try:
        return date.fromisoformat(found).isoformat() == found
    except (TypeError, ValueError):
        return False


@cache
def predictions() -> Mapping[str, Prediction]:
    """Every prediction of the book, by its id; none where the library was installed without the files."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    paths = sorted(folder.glob("*.json")) if folder else []
    return {path.stem: read(path) for path in paths}
