"""How do recorded figures enter the library? Tables and records in `data`, read when somebody asks.

They travel with the library, also where it is one archive: in a browser's page, or in a notebook's cell.
"""

import csv
import json
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from io import StringIO
from typing import Any

from scalingbook_lib.machines.chips import Source

COLLECTED = "2026-11-21"  # the day on which tables that have no day in each row were read

type Row = dict[str, str]  # a row of a table, by its columns; "" where the source does not say


@cache
def rows(table: str) -> tuple[Row, ...]:
    """The rows of a table, in its order."""
    return tuple(csv.DictReader(StringIO(_text(f"{table}.csv"), newline="")))


@cache
def record(name: str) -> Any:
    """What a program wrote down: nested lists and mappings."""
    return json.loads(_text(f"{name}.json"))


def _text(file: str) -> str:
    found = pkgutil.get_data(__package__ or "", f"data/{file}")  # also from the archive that a page loads
    return (found or b"").decode()


def source(row: Mapping[str, str]) -> Source:
    """Who says so."""
    text, url = row.get("source") or "a table without sources", row.get("source_url") or ""
    return Source(text=text, as_of=row.get("as_of", COLLECTED), url=url)


def grouped[T, K](items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Those that have the same key, in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def lazily(module: str, made: Mapping[str, Callable[[], Any]]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose values are made when they are first asked for."""

    def found(name: str) -> Any:
        if name not in made:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = made[name]()
        setattr(sys.modules[module], name, value)  # from now on it is there
        return value

    return found
