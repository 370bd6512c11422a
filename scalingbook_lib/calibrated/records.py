"""Access to the values that tools fitted to measurements: the JSON files in `data`, read on first use.

They are part of the package, and can also be read from an archive: in the browser, or in a notebook's first
cell.
"""

import json
import pkgutil
from functools import cache
from typing import Any

type Values = dict[str, float]  # a fitted value by the name of its class


@cache
def record(name: str) -> Any:
    """The content of `data/<name>.json`, which a tool wrote."""
    return json.loads(file_text(__package__ or "", f"data/{name}.json"))


def file_text(package: str, file: str) -> str:
    """The text of a file of a package, which may be a folder or, in the browser, an archive."""
    return (pkgutil.get_data(package, file) or b"").decode()
