"""A reader of the catalog's tables, in which one row is one number of one chip with its source.

A row either names a source of `sources.csv` and quotes what it `says`, or carries its own text, address and
date; `but` lists differing values in other sources. Values are in base units with a prefix, as sources print
them: `197 T`, `16 Gi`.
"""

import csv
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from scalingbook_lib.machines.chip import Chip, Source
from scalingbook_lib.machines.torus import Torus

type Row = dict[str, str]

_TEXTS = {"vendor", "status", "memory", "joined"}
_LIKE = "like"  # the row of a variant that names the chip whose other numbers it shares, price excepted
_PREFIX = {"": 1, "T": 1e12, "G": 1e9, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
_SMALL_2D = ((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_SMALL_3D = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
_PAIRS_2D = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
# Twisted tori, which v4 and later can be wired as, have the same links; `Torus.twistable` lists the shapes.
_WIRING = {
    "TPU v2": Torus(dims=2, pod_chips=256, small=_SMALL_2D, wrap_at=16),
    "TPU v3": Torus(dims=2, pod_chips=1024, small=(*_SMALL_2D, (16, 32), (32, 32)), wrap_at=32),
    "TPU v4": Torus(dims=3, pod_chips=4096, small=_SMALL_3D, cube=4),
    "TPU v5e": Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
    "TPU v5p": Torus(dims=3, pod_chips=8960, small=_SMALL_3D, cube=4),
    "TPU v6e": Torus(dims=2, pod_chips=256, small=_PAIRS_2D, wrap_at=16),
    "TPU7x": Torus(dims=3, pod_chips=9216, small=_SMALL_3D, cube=4),
    "TPU 8t": Torus(dims=3, pod_chips=9600, small=_SMALL_3D, cube=4),  # assumed to be wired as TPU7x
    "Trainium2": Torus(dims=2, pod_chips=16, small=((4, 4),), wrap_at=4),
}


def read(
    name: str, vendor: str = "", *, known: Mapping[str, Chip] | None = None, **shared: Any
) -> tuple[Chip, ...]:
    """The chips of one table, in the order of its rows; a row `like` refers to one of these or of `known`."""
    found = dict(known or {})
    read_here = []
    for chip, rows in groupby(_rows(name), key=lambda row: row["chip"]):
        found[chip] = _chip(chip, list(rows), found, vendor=vendor, **shared)
        read_here.append(found[chip])
    return tuple(read_here)


def _chip(name: str, rows: list[Row], known: Mapping[str, Chip], **shared: Any) -> Chip:
    own = [row for row in rows if row["figure"] != _LIKE]
    figures: dict[str, Any] = {
        row["figure"]: row["value"] if row["figure"] in _TEXTS else _number(row["value"]) for row in own
    }
    sources = {row["figure"]: _source(row) for row in own}
    if like := next((row for row in rows if row["figure"] == _LIKE), None):
        if like["value"] not in known:
            raise ValueError(
                f"{name}: no chip above is called {like['value']!r}; name one of {', '.join(known)}"
            )
        base = known[like["value"]]
        variant = replace(_source(like), text=f"{_source(like).text}; as the {base.name}")
        inherited = dict.fromkeys(base.figures(), variant) | sources
        return replace(base, name=name, **({"usd_per_hour": None} | figures), sources=inherited)
    # bf16 may be missing: V100 has none, and for some chips it is not published
    figures = {"bf16_flops_per_s": None} | figures
    figures["torus"] = _WIRING[name] if "torus" in figures else None
    return Chip(name=name, **shared | figures, sources=sources)


def _number(text: str) -> float:
    """The value in base units, an int if it is written as one, because memory sizes are exact."""
    digits, _, prefix = text.partition(" ")
    try:
        return (int(digits) if digits.isdigit() else float(digits or "nan")) * _PREFIX[prefix]
    except (KeyError, ValueError):
        told = f"a prefix after a space ({', '.join(filter(None, _PREFIX))}), as in '989 T'"
        raise ValueError(f"{text!r} is not a number of the table: write digits and {told}") from None


def _source(row: Row) -> Source:
    if not row["source"]:
        return Source(text=row["says"], as_of=row["read"], url=row["url"], disagreement=row["but"])
    if row["source"] not in _SOURCES:
        raise ValueError(
            f"{row['chip']}, {row['figure']}: sources.csv has no source {row['source']!r}; add one with its "
            "text, its address and the day on which you read it"
        )
    cited = _SOURCES[row["source"]]
    return replace(cited, text=": ".join(filter(None, (cited.text, row["says"]))), disagreement=row["but"])


def _rows(name: str) -> Iterator[Row]:
    # also works from the zip archive that a page loads
    text = pkgutil.get_data(__package__ or "", f"{name}.csv")
    assert text
    return csv.DictReader(text.decode().splitlines())


_SOURCES = {
    row["source"]: Source(text=row["text"], as_of=row["read"], url=row["url"]) for row in _rows("sources")
}
