"""Publish the book's facts as a Frictionless Data Package: CSV files, and a descriptor, `datapackage.json`.

The descriptor gives each column its name and type, and the package its license, version and date. Each row
names its source. `data/README.md` explains the columns.
"""

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.environment import ROOT
from web import stamp

FOLDER = "data"  # of the site; the tables of chips and of models are there already
DESCRIPTOR = "datapackage.json"
SOURCES = ("data", "scalingbook_lib/evidence/data")
EDITORIAL = {
    "letters",
    "terms",
    "ambiguous_links",
    "phrases",
    "course",
    "fitted_constants",
    "stacks",
}  # not facts
TITLES = {
    "chips": "Documented specifications of every chip",
    "models": "Shapes of every model",
    "training_families": "What the training runs of one source have in common",
    "inference_families": "What the serving runs of one source have in common",
}
ON_THE_SITE = (
    "On the site, this folder has the tables of facts and measurements, those of all chips, instances\n"
    "and models (`chips.csv`, `instances.csv`, `models.csv`), and a description of every column\n"
    "(`datapackage.json`). The other files below are in the repository.\n"
)
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
LICENSE = {
    "name": "CC-BY-4.0",
    "path": "https://creativecommons.org/licenses/by/4.0/",
    "title": "Creative Commons Attribution 4.0",
}


def write(made: Path, source: Path = ROOT) -> None:
    """Copy the CSV files below `source` into the site, and describe them and the site's own tables."""
    folder = made / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in tables(source):
        shutil.copyfile(path, folder / path.name)
    (folder / "README.md").write_text(readme(folder), encoding="utf-8")
    (folder / DESCRIPTOR).write_text(json.dumps(descriptor(folder), indent=1) + "\n", encoding="utf-8")


def tables(source: Path) -> Iterator[Path]:
    """Yield the CSV files of facts and measurements below a root."""
    for name in SOURCES:
        yield from (path for path in sorted((source / name).glob("*.csv")) if path.stem not in EDITORIAL)


def readme(folder: Path) -> str:
    """Return `data/README.md` with links to the files that the folder has, and to no others."""

    def linked(found: re.Match[str]) -> str:
        name = Path(found["path"]).name
        return f"[{found['shown']}]({name})" if (folder / name).is_file() else found["shown"]

    text = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\[(?P<shown>`[^\]]+`)\]\((?P<path>\.\./[^)]+)\)", linked, text)
    return text.replace("# Data\n", f"# Data\n\n{ON_THE_SITE}", 1)


def contents() -> dict[str, str]:
    """Return what `data/README.md` says that each file contains."""
    lines = (ROOT / "data" / "README.md").read_text(encoding="utf-8").splitlines()
    rows = (line.split("|") for line in lines if line.startswith("| "))
    return {name: row[2].strip() for row in rows for name in re.findall(r"`([\w.]+\.csv)`", row[1])}


def descriptor(folder: Path) -> dict[str, Any]:
    """Return the descriptor of all CSV files in a folder."""
    return {
        "$schema": PROFILE,
        "name": "scaling-large-models",
        "title": f"Data of {stamp.titles()[0]}",
        "description": "Chips, models, and published and own measurements of kernels, training and serving.",
        "version": stamp.VERSION,
        "created": f"{stamp.day()}T00:00:00Z",
        "licenses": [LICENSE],
        "resources": [resource(path) for path in sorted(folder.glob("*.csv")) if path.stem not in EDITORIAL],
    }


def resource(path: Path) -> dict[str, Any]:
    """Return the description of one CSV file, with the types of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    fields = [
        {"name": name, "type": kind([row[i] for row in rows[1:] if i < len(row)])}
        for i, name in enumerate(rows[0] if rows else ())
    ]
    told: dict[str, Any] = {"name": path.stem.replace("_", "-"), "path": path.name, "format": "csv"}
    if path.stem in TITLES:
        told["title"] = TITLES[path.stem]
    elif path.name in contents():
        told["description"] = contents()[path.name]
    return told | {"mediatype": "text/csv", "encoding": "utf-8", "bytes": path.stat().st_size,
                   "schema": {"fields": fields, "missingValues": [""]}}  # fmt: skip


def kind(cells: list[str]) -> str:
    """Return the narrowest type of the Table Schema standard that all filled cells of a column have."""
    filled = [cell for cell in cells if cell]
    for name, read in (("integer", int), ("number", float)):
        if filled and all(_reads(cell, read) for cell in filled):
            return name
    return "boolean" if filled and set(filled) <= {"True", "False"} else "string"


def _reads(cell: str, read: type[int] | type[float]) -> bool:
    try:
        return "_" not in cell and cell == cell.strip() and read(cell) == read(cell)
    except ValueError:
        return False
