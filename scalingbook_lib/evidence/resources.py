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
def others() -> tuple[Chip, ...]:
    """Chips that strangers' tables name and the catalogue does not have: the rows of `other_chips.csv`."""
    return tuple(map(_other, rows("other_chips")))


def _other(row: Row) -> Chip:
    """Its peaks; a rate that is not printed is one that the chip does not have."""
    said = {name: float(cell) for name, cell in row.items() if cell.replace(".", "", 1).isdigit()}
    rates = {"bf16": "bf16_tflops", "fp16": "bf16_tflops", "fp8": "fp8_tflops"}
    figures: dict[str, Any] = {
        f"{name}_flops_per_s": said[column] * 1e12 for name, column in rates.items() if column in said
    }
    if "int8_tops" in said:
        figures["int8_ops_per_s"] = said["int8_tops"] * 1e12
    figures |= {"hbm_bytes": int(said["hbm_gib"]) * GiB, "hbm_bytes_per_s": said["hbm_gb_per_s"] * GB}
    figures |= {"link_bytes_per_s": said["link_gb_per_s"] * GB, "links": int(said["links"])}
    figures |= {
        "link_achieved_fraction": 0.8,
        "hop_s": 1e-6,
        "dcn_bytes_per_s": said["network_gb_per_s"] * GB,
    }
    figures |= {name: int(said[name]) for name in ("chips_per_host", "domain_chips")}
    figures["power_w"] = said.get("power_w")
    same = Source(text=row["source"], as_of=row["as_of"])
    full_mesh, sources = bool(row["full_mesh"]), dict.fromkeys(figures, same)
    return Chip(name=row["chip"], vendor=row["vendor"], full_mesh=full_mesh, sources=sources, **figures)


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
