"""The files of the ten mysteries, each with one fault: `data/mysteries`, which the wheel contains.

`python -m tools.mysteries` makes them. Chapter: Profiling (Ten mysteries).

>>> text("long-context.sh").splitlines()[2].split()[2]
'MaxText.train'
>>> rows("ranks.csv")[0]["rank"]
0.0
"""

import csv
import gzip
from pathlib import Path

FOLDERS = (
    Path(__file__).parent / "mystery_files",
    Path(__file__).parents[1] / "data" / "mysteries",
)  # in a wheel; in the repository


def names() -> tuple[str, ...]:
    """The names of the files."""
    return tuple(sorted({path.name for folder in FOLDERS for path in folder.glob("*.*")}))


def path(name: str) -> Path:
    """The path of a file. Raises a FileNotFoundError that lists the files."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"no mystery {name!r}; the files are: {', '.join(names())}")


def text(name: str) -> str:
    """The text of a file, decompressed."""
    content = path(name).read_bytes()
    return (gzip.decompress(content) if name.endswith(".gz") else content).decode()


def rows(name: str) -> list[dict[str, float]]:
    """The rows of a table by the names of its columns."""
    found = csv.DictReader(text(name).splitlines())
    return [{column: float(value) for column, value in row.items()} for row in found]
