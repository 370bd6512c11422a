"""Chips defined by the reader: a JSON file of numbers, or a catalog chip with some numbers replaced.

```json
{"name": "RTX 4090 48GB", "like": "RTX 4090", "hbm_bytes": "48GiB",
 "flops_per_s": {"bf16": "165 TFLOPs", "fp8": "330 TFLOPs"}, "link_bytes_per_s": "31.5 GB/s"}
```

Names and units are those of `Chip`: FLOP/s are dense, and a link is one link in one direction. Without `like`
a file needs a name, a rate for one data type, and the bytes and the bandwidth of the memory; without
`link_bytes_per_s` the chip cannot be combined with others.

>>> own = with_figures(chips.find("rtx 4090"), {"hbm_bytes": "48GiB"})
>>> own.name, own.hbm_bytes / 2**30
('RTX 4090 with hbm_bytes=48GiB', 48.0)
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from scalingbook_lib import git_lfs
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chip import Chip, Joined, Source
from scalingbook_lib.units import DTYPES, dtype, matrix_unit_dtype, parse

RATES = "flops_per_s"
LIKE, SOURCE = "like", "source"
_FIGURES = {one.name for one in fields(Chip)} - {"name", "sources", "torus", "status"}
_TEXTS = {"vendor", "memory", "joined"}
_WHOLE = {"links", "chips_per_host", "domain_chips", "cores", "matrix_units", "matrix_side"}
_JOINS = get_args(Joined.__value__)
_EXAMPLE = (
    '{"name": "mine", "flops_per_s": {"bf16": "165T"}, "hbm_bytes": "24GiB", "hbm_bytes_per_s": "1TB/s"}'
)
MOST_CHARACTERS = 100_000


class ChipFileError(ValueError):
    """An error for a number or a file that does not describe a chip; the message says what to write."""


def is_benchmark_record(path: Path) -> bool:
    """Whether a JSON file holds measurements, as `scalingbook measure` writes them, not numbers of a chip."""
    stored = _stored(path)
    return isinstance(stored, dict) and "rows" in stored


def read(path: Path) -> Chip:
    """The chip of a file. Raises a ChipFileError if a number is missing, unknown or cannot be read."""
    stored = _stored(path)
    if not isinstance(stored, dict):
        raise ChipFileError(
            f"{path.name} does not hold a JSON object; write the numbers of one chip, as in {_EXAMPLE}"
        )
    given = {str(name): value for name, value in stored.items()}
    name, source = str(given.pop("name", path.stem)), str(given.pop(SOURCE, f"the file {path.name}"))
    like = given.pop(LIKE, None)
    figures = _figures(given, path.name)
    stated = Source(text=source, as_of=_today())
    if like is not None:
        base = chips.find(str(like))
        return replace(base, name=name, **figures, sources={**base.sources, **dict.fromkeys(figures, stated)})
    lacking = [one for one in ("hbm_bytes", "hbm_bytes_per_s") if one not in figures]
    if not any(one.endswith(("flops_per_s", "ops_per_s")) for one in figures):
        lacking.append(RATES)
    if lacking:
        raise ChipFileError(
            f"{path.name} lacks {', '.join(lacking)}; write them, as in {_EXAMPLE}, or name a "
            'chip that it is like, as in "like": "H100"'
        )
    alone = "link_bytes_per_s" not in figures  # a chip without links: a machine of one
    assumed: dict[str, Any] = {
        "vendor": "",
        "bf16_flops_per_s": None,
        "link_bytes_per_s": figures["hbm_bytes_per_s"],
        "links": 1,
        "link_achieved_fraction": 0.8,
        "chips_per_host": 1 if alone else figures.get("domain_chips", 8),
    }
    assumed["domain_chips"] = assumed["chips_per_host"]
    every = assumed | figures
    sources = dict.fromkeys((one.name for one in fields(Chip)), stated)
    for one in assumed.keys() - figures.keys():
        sources[one] = Source(text=f"assumed, because {path.name} does not state it", as_of=stated.as_of)
    return Chip(name=name, **every, sources=sources)


def with_figures(chip: Chip, given: Mapping[str, object]) -> Chip:
    """The chip with these numbers replaced; its name lists them."""
    if not given:
        return chip
    figures = _figures(given, "a number")
    stated = Source(text="given by the caller", as_of=_today())
    name = f"{chip.name} with {', '.join(f'{name}={value}' for name, value in given.items())}"
    return replace(chip, name=name, **figures, sources={**chip.sources, **dict.fromkeys(figures, stated)})


def assignments(written: Iterable[str]) -> dict[str, str]:
    """The numbers of assignments such as 'hbm_bytes=48GiB', by name.

    Raises a ChipFileError if one has no value or is given twice.
    """
    found: dict[str, str] = {}
    for text in written:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ChipFileError(
                f"{text!r} is not an assignment; write a name and value, as in hbm_bytes=48GiB"
            )
        if name in found:
            raise ChipFileError(f"{name} is given twice; write it once")
        found[name] = value
    return found


def _figures(given: Mapping[str, object], where: str) -> dict[str, Any]:
    """The numbers by the field names of `Chip`, in base units."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == RATES and isinstance(value, Mapping):
            for kind, rate in value.items():
                found |= _rate(str(kind), rate, where)
        elif name == RATES:
            raise ChipFileError(
                f"{where}: {RATES} is {str(value)[:40]!r}, without a data type; write an object by type, "
                'as in {"bf16": "165T"}, or a field of one, as in bf16_flops_per_s'
            )
        elif name in DTYPES:
            found |= _rate(name, value, where)
        elif name in _TEXTS:
            found[name] = _text(name, value, where)
        elif name in _FIGURES:
            found[name] = _number(name, value, where)
        else:
            near = get_close_matches(name, (*_FIGURES, *DTYPES, RATES), 3, 0.5)
            raise ChipFileError(
                f"{where}: {name[:40]!r} is not a number of a chip; write one of "
                f"{', '.join(near or sorted(one for one in _FIGURES if _required(one)))}"
            )
    return found


def _required(name: str) -> bool:
    return next(one.default is MISSING for one in fields(Chip) if one.name == name)


def _rate(kind: str, value: object, where: str) -> dict[str, float]:
    name = matrix_unit_dtype(dtype(kind)).name
    field = f"{name}_ops_per_s" if name.startswith("int") else f"{name}_flops_per_s"
    if field not in _FIGURES:
        raise ChipFileError(
            f"{where}: no known matrix unit multiplies {kind}; write "
            f"{', '.join(d for d in DTYPES if d != kind)}"
        )
    return {field: _number(field, value, where)}


def _text(name: str, value: object, where: str) -> str:
    if name == "joined" and value not in _JOINS:
        raise ChipFileError(f"{where}: joined is {value!r}; write one of {', '.join(_JOINS)}")
    return str(value)


def _number(name: str, value: object, where: str) -> float:
    """A number in base units; a text may have a prefix and the unit that its name ends in."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ChipFileError(f"{where}: {name} is {str(value)[:40]!r}; write a number, as in {_example(name)}")
    try:
        read_ = parse(str(value))
    except ValueError as error:
        raise ChipFileError(f"{where}: {name}: {error}") from error
    unit = read_.unit.removesuffix("/s") if name.endswith("_per_s") else read_.unit
    if unit not in ("", *_units(name)) or not read_.value > 0:
        raise ChipFileError(f"{where}: {name} is {value!r}; write it as in {_example(name)}")
    if name in _WHOLE and read_.value % 1:
        raise ChipFileError(f"{where}: {name} is {value!r}; write a whole number, as in 8")
    return int(read_.value) if read_.value.is_integer() else read_.value


def _units(name: str) -> tuple[str, ...]:
    stem = name.removesuffix("_per_core").removesuffix("_per_s")
    return (
        ("B",)
        if stem.endswith("bytes")
        else ("FLOP",)
        if stem.endswith("ops")
        else ("s",) * (name == "hop_s")
    )


def _example(name: str) -> str:
    if name.endswith("bytes_per_s"):
        return "900 GB/s"
    if name.endswith("ops_per_s"):
        return "165 TFLOPs"
    return "24GiB" if "bytes" in name else "8" if name in _WHOLE else "0.8"


def _stored(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ChipFileError(
            f"{str(path)[:80]!r} cannot be read; write the path of a chip's JSON file"
        ) from error
    if git_lfs.is_pointer(text):
        raise ChipFileError(git_lfs.refusal(path.name))
    try:
        return json.loads(text) if len(text) <= MOST_CHARACTERS else None
    except (ValueError, RecursionError) as error:
        raise ChipFileError(
            f"{str(path)[:80]!r} cannot be read as JSON; write the path of a chip's JSON file, as in "
            f"{_EXAMPLE}"
        ) from error


def _today() -> str:
    return datetime.now(tz=UTC).date().isoformat()
