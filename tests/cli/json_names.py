"""The names in the JSON of the commands: those that a command prints, and those that docs/json.md lists."""

import re
from collections.abc import Iterator

from tools.environment import ROOT

DOCUMENT = ROOT / "docs" / "json.md"
MAPS = ("by_part", "by_state", "efficiency_shares", "by_layers", "terms_s", "shares", "mesh", "sources")
"""Objects whose keys the library chooses, so that they differ; `*` stands for them."""
SHARED = {
    "plan.*": "Fields of a plan",
    "layout.*": "Fields of a layout",
    "chips[].*": "Fields of a chip",
    "findings[].*": "Fields of a finding",
    "*": "Fields of a chip",
    "here.*": "Fields of errors",
    "roofline.*": "Fields of errors",
    "constant.*": "Fields of errors",
}
"""The section that lists the fields of an object with this name, or with a name that ends with it."""
_ROW = re.compile(r"^\| `([^`]+)` \|\s*([^|]*?)\s*\| ([^|]+) \|$")


def names_of(values: object) -> tuple[str, ...]:
    """The paths of all names in a command's JSON, such as `search.best[].plan.tp`."""
    return tuple(dict.fromkeys(_paths(values, "")))


def _paths(value: object, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            named = "*" if at.endswith(MAPS) else name
            yield from _paths(inner, f"{at}.{named}" if at else named)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{at}[]")
    else:
        yield at


def sections() -> dict[str, list[tuple[str, str, str]]]:
    """The rows (name, unit, meaning) of every section of the page."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for part in DOCUMENT.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, *lines = part.splitlines()
        found[title] = [(m[1], m[2], m[3]) for line in lines if (m := _ROW.match(line))]
    return found


def documented(command: str) -> list[str]:
    """The names of a command's section, with those of the shared fields in it."""
    tables = sections()
    names = []
    for name, _, _ in tables[command]:
        ends = (name, ".".join(name.split(".")[-2:]))
        section = next((SHARED[end] for end in ends if end in SHARED), None)
        names += [name] if section is None else [name[:-1] + field for field, _, _ in tables[section]]
    return names
