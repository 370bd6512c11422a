"""How do recorded figures enter the library? Tables and records in `data`, read when somebody asks.

They travel with the library, also where it is one archive: in a browser's page, or in a notebook's cell.
"""

import csv
import json
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Chip, Source
from scalingbook_lib.units import GB, GiB

COLLECTED = "2026-11-21"  # the day on which tables that have no day in each row were read

type Row = dict[str, str]  # a row of a table, by its columns; "" where the source does not say

VARIANTS = {
    "A100-40G": replace(chips.A100, name="A100 40GB", hbm_bytes=40 * GiB, hbm_bytes_per_s=1555 * GB),
    "A100-80G (330W)": replace(chips.A100, name="A100, 330 W", power_w=330),  # gpt-fast's, of 400 W
    "H100-96G-HBM2e-500W": replace(  # torchtitan's
        chips.H100, name="H100 96GB, 500 W", hbm_bytes=96 * GiB, hbm_bytes_per_s=2400 * GB, power_w=500
    ),
    "half a TPU7x": chips.HALF_TPU7X,  # what JAX calls a device
}
"""Chips that only these tables name."""


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


def chip(name: str) -> Chip:
    """The chip that a table names: 'H100-SXM', 'TPUv5p', or one of `VARIANTS`."""
    known = VARIANTS.get(name)
    return known or chips.find(name.removesuffix("-SXM").removesuffix("-80G"))


def source(row: Row) -> Source:
    """Who says so."""
    return Source(text=row["source"], as_of=row.get("as_of", COLLECTED), url=row["source_url"])


def number(text: str) -> int | None:
    """A count; None where the source does not say."""
    return int(text) if text else None


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
