"""How does the sheet look? As two tables in a notebook or a file of HTML, as lines of text elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from scalingbook_lib.sheet.formulas import FORMULAS, Formula
from scalingbook_lib.sheet.numbers import NUMBERS, Number
from scalingbook_lib.told import Told

_FORMULA_HEADS = ("question", "formula", "holds if", "for example")
_NUMBER_HEADS = ("number", "is", "with it")


@dataclass(frozen=True, slots=True)
class Page(Told):
    """The formulas and the numbers of one sheet."""

    formulas: tuple[Formula, ...]
    numbers: tuple[Number, ...]

    def html(self) -> str:
        """Both tables, to be shown or written into a file and printed."""
        formulas = ((f.question, f.formula, f.holds, f.said()) for f in self.formulas)
        numbers = ((n.name, n.said(), n.use) for n in self.numbers)
        return _table(_FORMULA_HEADS, formulas) + _table(_NUMBER_HEADS, numbers)

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.formulas, *self.numbers)))


def page() -> Page:
    """The whole sheet."""
    return Page(FORMULAS, NUMBERS)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return f'<table class="dataframe">{_row("th", heads)}{"".join(_row("td", row) for row in rows)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
