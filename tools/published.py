"""Write the reference pages on accuracy: `python -m tools.published [training]`.

A page is its template, `<name>_page.md`, with every {name} filled in by `<name>_page.py`; beside it are its
figure, if it has one, and the data files that the page links. `make fidelity` writes all of them, and tests
check that they are up to date.
"""

import csv
import io
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from scalingbook_lib.evidence.measured.published import Source
from scalingbook_lib.evidence.scores import Score
from tools.environment import ROOT
from tools.scatter import Scatter

type Cells = Iterator[tuple[str, ...]]
type Records = Iterable[Mapping[str, object]]

NAMES = "training", "serving", "compiled", "fidelity", "predictions"
MISSING = "–"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A reference page: the values and tables of its template, its figure if it has one, its data files."""

    name: str
    stem: str
    values: Callable[[], dict[str, str]]
    tables: Mapping[str, Callable[[], Cells]]
    figure: Callable[[], Scatter] | None
    data: Mapping[str, Callable[[], Records]]

    def text(self) -> str:
        """Return the template with every {name} filled in."""
        template = Path(__file__).with_name(f"{self.name}_page.md").read_text(encoding="utf-8")
        tables = {name: table(rows()) for name, rows in self.tables.items()}
        return template.format(**self.values(), **tables)

    def files(self) -> dict[Path, str]:
        """Return the text of the page, of its figure and of its data files, by path."""
        data = {ROOT / "data" / f"{name}.csv": csv_text(rows()) for name, rows in self.data.items()}
        drawn = {ROOT / f"{self.stem}.svg": self.figure().svg()} if self.figure else {}
        return {ROOT / f"{self.stem}.md": self.text()} | drawn | data

    def write(self) -> None:
        """Write all files of the page."""
        for path, text in self.files().items():
            path.write_text(text, encoding="utf-8")


def load(name: str) -> Page:
    """Return the page with that name."""
    return import_module(f"tools.{name}_page").PAGE


def csv_text(rows: Records) -> str:
    """Rows as the text of a CSV file, with four significant digits of each number."""
    found = list(rows)
    file = io.StringIO()
    lines = csv.DictWriter(file, list(found[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows({name: _csv_cell(value) for name, value in row.items()} for row in found)
    return file.getvalue()


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows as a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def share(value: float | None, digits: int = 1) -> str:
    """'4.5%', or a dash without a value."""
    return MISSING if value is None else f"{value:.{digits}%}"


def in_words(count: int) -> str:
    """Return a small count as a word: 'seven'."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if count < len(words) else str(count)


def error_and_coverage(error: float | None, inside: float | None) -> str:
    """Return a mean error with the share of rows inside the band: '4.5% (82%)'."""
    return share(error) if inside is None else f"{share(error)} ({share(inside, 0)})"


def sources(scores: Iterable[Score]) -> Cells:
    """Return the source of each family of runs."""
    for name, run in sorted({s.run.family: s.run for s in scores}.items()):
        source: Source = run.source
        yield name, f"[{source.text}]({source.url})", run.note


def worst_predicted(scores: Iterable[Score], many: int = 10) -> list[Score]:
    """Return the runs with the largest errors."""
    return sorted(scores, key=lambda s: -abs(s.error))[:many]


def main(names: Sequence[str]) -> int:
    """Write these pages and return how many failed."""
    failed = 0
    for name in names:
        try:
            load(name).write()
            print(f"{name}: written")
        except Exception:
            traceback.print_exc()
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or NAMES))
