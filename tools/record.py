"""Record the TPU compiler's output in the library: `python -m tools.record`.

This takes half an hour on two cores; `python -m tools.record lines` makes a single record. It needs libtpu,
but no TPU.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scalingbook_lib.evidence import resources
from tools.environment import ROOT

FOLDER = Path(resources.__file__).parent / "data"


def _lines() -> list[dict[str, Any]]:
    from tools import recorded

    return [dataclasses.asdict(line) for line in recorded.lines()]


def _cycles() -> list[dict[str, Any]]:
    from scalingbook_lib.evidence.compiled import cycles
    from tools import recorded

    asked = [(topology, kind) for kind in ("bf16", "int8") for topology in cycles.TARGETS]
    known = (ask for ask in asked if ask != ("tpu7x:1x1x1", "int8"))  # no int8 rate is documented for it
    return [
        {"topology": topology, "dtype": kind, "cycles": recorded.table(topology, kind, cycles.ROWS)}
        for topology, kind in known
    ]


def _bundles() -> list[dict[str, Any]]:
    from tools import recorded

    return [
        {
            "title": kernel.title,
            "bundles": kernel.bundles,
            "capacity": dict(kernel.capacity),
            "used": {unit: " ".join(map(str, used)) for unit, used in kernel.used.items()},
        }
        for kernel in recorded.bundles()
    ]


def _programs() -> list[dict[str, Any]]:
    from tools.compiled import facts

    return list(facts.rows())


def _profiling() -> list[dict[str, Any]]:
    from tools.compiled import profiled

    return list(profiled.rows())


RECORDS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "lines": _lines,
    "cycles": _cycles,
    "bundles": _bundles,
    "programs": _programs,
    "profiling": _profiling,
}


def path_of(name: str) -> Path:
    """Return the path of a record: in the library, or in `data` if the library does not read it."""
    return (ROOT / "data" if name == "programs" else FOLDER) / f"compiled_{name}.json"


def lines(rows: Iterable[dict[str, Any]]) -> str:
    """Return a record as JSON text, one line per row."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def write(name: str) -> Path:
    """Make one record and return its path."""
    path = path_of(name)
    path.write_text(lines(RECORDS[name]()), encoding="utf-8")
    return path


if __name__ == "__main__":
    for asked in sys.argv[1:] or RECORDS:
        print(write(asked))
