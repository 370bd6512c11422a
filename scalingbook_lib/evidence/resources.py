"""Access to the recorded tables and JSON files in `data`, which are read on first use.

They are part of the package, and can also be read from an archive: in the browser, or in a notebook's first
cell.
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from io import StringIO
from typing import Any

from scalingbook_lib.calibrated.records import file_text
from scalingbook_lib.machines.chips import Source

COLLECTED = "2026-11-21"  # the date of tables whose rows have none

type Row = dict[str, str]  # a row by column; "" where the source does not say


@cache
def rows(table: str) -> tuple[Row, ...]:
    """The rows of `<table>.csv`, in order."""
    return tuple(csv.DictReader(StringIO(_text(f"{table}.csv"), newline="")))


@cache
def record(name: str) -> Any:
    """The content of `<name>.json`, which a tool wrote."""
    return json.loads(_text(f"{name}.json"))


def _text(file: str) -> str:
    return file_text(__package__ or "", f"data/{file}")


def source(row: Mapping[str, str]) -> Source:
    """The source of a row."""
    text, url = row.get("source") or "a table without sources", row.get("source_url") or ""
    return Source(text=text, as_of=row.get("as_of", COLLECTED), url=url)


def grouped[T, K](items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items grouped by key, in order of first appearance."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def lazy_attributes(module: str, factories: Mapping[str, Callable[[], Any]]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose attributes are computed on first use by `factories`."""

    def found(name: str) -> Any:
        if name not in factories:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = factories[name]()
        setattr(sys.modules[module], name, value)  # computed only once
        return value

    return found
