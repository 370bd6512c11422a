"""How does the sheet look? As two tables in a notebook, as one page of paper, as lines of text elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from scalingbook_lib.chapters.conclusion.sheet.formulas import FORMULAS, Formula
from scalingbook_lib.chapters.conclusion.sheet.numbers import NUMBERS, Number
from scalingbook_lib.units import Told

_FORMULA_HEADS = ("question", "formula", "holds if", "for example")
_NUMBER_HEADS = ("number", "is", "with it")

_TITLE = "Scaling large models on one page"
_LETTERS = (
    "C FLOPs/s of one chip · W_hbm, W_ici bytes/s of its HBM, and into it along one torus axis · W_1 "
    "one link, one way · W into one GPU under a switch · n chips · n_ax torus axes used at once · M "
    "bytes of the array, or seconds between failures · B tokens, or sequences that decode · D model "
    "width · F width of the MLP · L layers · K key/value heads · H size of a head · P parameters · T "
    "tokens of a sequence · E experts, k for each token · e bytes of a cached value · w bytes of a "
    "weight · M_kv bytes of one sequence's cache · X data ways · n_X, n_Y torus axes of the data and "
    "tensor ways · p stages · m microbatches"
)
_STYLE = """
@page { size: landscape; margin: 8mm }
body { font: 8.5pt/1.25 "Helvetica Neue", Arial, sans-serif; max-width: 277mm; margin: 0 auto; color: #111 }
h1 { font-size: 12pt; margin: 0 0 1.5mm }
table { border-collapse: collapse; width: 100%; margin-bottom: 2mm }
th, td { text-align: left; vertical-align: top; padding: .35mm 2mm .35mm 0; border-bottom: .1mm solid #bbb }
th { border-bottom: .3mm solid #111 }
td:first-child { font-weight: 600 }
"""


@dataclass(frozen=True, slots=True)
class Page(Told):
    """The formulas and the numbers of one sheet."""

    formulas: tuple[Formula, ...]
    numbers: tuple[Number, ...]

    def html(self) -> str:
        """Both tables, to be shown within a page."""
        formulas = ((f.question, f.formula, f.holds, f.said()) for f in self.formulas)
        numbers = ((n.name, n.said(), n.use) for n in self.numbers)
        return _table(_FORMULA_HEADS, formulas) + _table(_NUMBER_HEADS, numbers)

    def document(self) -> str:
        """A whole document, which prints on one sheet of A4 or Letter paper held sideways."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{_TITLE}</title><style>{_STYLE}</style></head>"
            f"<body><h1>{_TITLE}</h1>{self.html()}<p>{_LETTERS}</p></body></html>"
        )

    def _repr_html_(self) -> str:
        whole = b64encode(self.document().encode()).decode()
        link = (
            f'<a download="sheet.html" href="data:text/html;base64,{whole}">Save the sheet for printing</a>'
        )
        return f"{self.html()}<p>{link}</p>"

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.formulas, *self.numbers)))


def page() -> Page:
    """The whole sheet."""
    return Page(FORMULAS, NUMBERS)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return f'<table class="dataframe">{_row("th", heads)}{"".join(_row("td", row) for row in rows)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
