"""The numbers worth knowing by heart, and the sheet of numbers and formulas.

There are a dozen numbers, from which the others follow. The sheet is two tables in a notebook, one page on
paper, and lines of text elsewhere.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from scalingbook_book.chapters.conclusion.sheet.formulas import FORMULAS, Formula, told
from scalingbook_lib import calibrated, models, rules
from scalingbook_lib.evidence import inference as served
from scalingbook_lib.evidence import training as trained
from scalingbook_lib.machines import chips
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, Result, si

_M = models.find("Llama 3 70B")
_NOW = (chips.V5E, chips.V5P, chips.V6E, chips.TPU7X, chips.A100, chips.H100, chips.H200, chips.B200)


@dataclass(frozen=True, kw_only=True)
class Number(Result):
    """One number, computed on demand, and what it is good for."""

    name: str
    values: Callable[[], tuple[float, ...]]
    unit: str
    use: str

    def said(self) -> str:
        """The number, or the smallest and the largest of several."""
        return " to ".join(told(value, self.unit) for value in self.values())

    def __str__(self) -> str:
        return f"{self.name}: {self.said()} ({self.use})"


def _rates(chip: chips.Chip, use: str) -> tuple[Number, Number]:
    """Compute rate and memory bandwidth of one chip."""
    return (
        Number(
            name=f"C of {chip.name}", values=lambda: (chip.bf16_flops_per_s,), unit="FLOPs/s",
            use=f"bf16, dense; {use}",
        ),
        Number(
            name=f"W_hbm of {chip.name}", values=lambda: (chip.hbm_bytes_per_s,), unit="B/s",
            use=f"reads its {si(chip.hbm_bytes, 'B')} in {si(chip.hbm_bytes / chip.hbm_bytes_per_s, 's')}",
        ),
    )  # fmt: skip


def _between(found: list[float]) -> tuple[float, ...]:
    return min(found), max(found)


def _products() -> tuple[float, ...]:
    """Of every chip that trained in bf16, as fitted to published steps."""
    return _between([100 * calibrated.training(chip).matmul for chip in _NOW if chip is not chips.H200])


def _bands() -> tuple[float, ...]:
    dense = [trained.prediction_interval(experts=False), served.prediction_interval(experts=False)]
    return _between(
        [*dense, trained.prediction_interval(experts=True), served.prediction_interval(experts=True)]
    )


NUMBERS = (
    *_rates(chips.V5P, "one TPU to know"),
    *_rates(chips.H100, "one GPU to know"),
    Number(name="ridge point C / W_hbm", unit="FLOPs/B",
           values=lambda: _between([rules.ridge(chip) for chip in _NOW]),
           use="also the critical batch size in bf16; A100 to v6e"),
    Number(name="W_1, one link of a torus", unit="B/s",
           values=lambda: _between([chip.link_bytes_per_s for chip in _NOW if chip.torus]),
           use="one direction; a ring has twice as much; 4 or 6 links per chip"),
    Number(name="W, all links under a switch",
           values=lambda: _between([chip.links * chip.link_bytes_per_s for chip in _NOW if not chip.torus]),
           unit="B/s", use="one direction; A100 to B200"),
    Number(name="NIC of an H100", values=lambda: (chips.H100.dcn_bytes_per_s or 0.0,), unit="B/s",
           use="one direction; a ninth of NVLink"),
    Number(name="latency of one hop in a torus", values=lambda: (chips.V5P.hop_s,), unit="s",
           use="a whole collective under a switch has a latency of 10 to 30 µs"),
    Number(name="weights of Llama 3 70B", values=lambda: (arithmetic.params(_M).nbytes(BF16),), unit="B",
           use="bf16, two bytes per parameter; the training state takes eight times as much"),
    Number(name="training Llama 3 70B on 15 trillion tokens", values=lambda: (6 * _M.params * 15e12 / 1e24,),
           unit="× 10²⁴ FLOPs",
           use="at peak rate: 438 years on one v5p"),
    Number(name="KV cache of Llama 3 70B, one token", unit="B",
           values=lambda: (arithmetic.kv_cache(_M, 1).bytes_per_token,), use="bf16; 3,052 tokens take 1 GB"),
    Number(name="fraction of C that matmuls reach", values=_products, unit="%",
           use="fitted to published training steps in bf16"),
    Number(name="error band of a prediction", values=_bands, unit="times",
           use="up or down, on software new to the fit: 1.17 for dense training, 1.42 for serving"),
)  # fmt: skip


_FORMULA_HEADS = ("quantity", "formula", "conditions", "example")
_NUMBER_HEADS = ("number", "value", "note")

_TITLE = "Scaling large models on one page"
_SYMBOLS = (
    ("C", "peak FLOPs/s of one chip"),
    ("W_hbm", "bytes/s of its HBM"),
    ("R", "ridge point, C / W_hbm"),
    ("W_1", "bytes/s of one link, one direction"),
    ("W_ici", "bytes/s into a chip along one torus axis"),
    ("W", "bytes/s into one GPU under a switch"),
    ("n", "chips"),
    ("n_ax", "torus axes used at once"),
    ("n_X, n_Y", "torus axes for data and tensor parallelism"),
    ("X", "data-parallel (FSDP) degree"),
    ("M", "bytes of the array of a collective"),
    ("B", "tokens of a batch; in decode, sequences"),
    ("D", "model width"),
    ("F", "width of the MLP, or of one expert"),
    ("L", "layers"),
    ("K, H", "key-value heads, size of a head"),
    ("P", "parameters"),
    ("E, k", "experts, and how many of them each token is routed to"),
    ("a", "bytes of a cached value"),
    ("w", "bytes of a weight"),
    ("M_kv", "bytes of one sequence's cache"),
    ("S", "tokens of the context"),
    ("p, m", "pipeline stages, microbatches"),
    ("q, s", "elements that share a scale, bits of the scale"),
    ("d, c", "side of a head's state, tokens of a chunk"),
    ("MFU", "fraction of C that a training step uses"),
    ("t_save", "seconds to write a checkpoint"),
    ("t_fail", "mean seconds between failures"),
    ("t_restart", "seconds of a restart"),
    ("e", "Euler's number, 2.718"),
)
_STYLE = """
@page { size: landscape; margin: 8mm }
body { font: 7pt/1.16 "Helvetica Neue", Arial, sans-serif; max-width: 277mm; margin: 0 auto; color: #111 }
h1 { font-size: 12pt; margin: 0 0 1.5mm }
table { border-collapse: collapse; width: 100%; margin-bottom: 2mm }
th, td { text-align: left; vertical-align: top; padding: .3mm 2mm .3mm 0; border-bottom: .1mm solid #bbb }
th { border-bottom: .3mm solid #111 }
caption { text-align: left; font-weight: 600 }
td:first-child { font-weight: 600 }
sub, sup { line-height: 0 }
"""


@dataclass(frozen=True, slots=True)
class Page(Result):
    """The formulas and the numbers of one sheet."""

    formulas: tuple[Formula, ...]
    numbers: tuple[Number, ...]

    def html(self) -> str:
        """The tables of formulas, symbols and numbers, to be shown within a page that typesets TeX."""
        pairs = [(_bent(symbol), _bent(meaning)) for symbol, meaning in _SYMBOLS]
        half = len(pairs) // 2
        symbols = ((*left, *right) for left, right in zip(pairs[:half], pairs[half:], strict=True))
        return self._tables(lambda f: f'<span class="math">${escape(f.tex)}$</span>') + _table(
            "Symbols of the formulas", ("symbol", "meaning", "symbol", "meaning"), symbols
        )

    def _tables(self, typeset: Callable[[Formula], str]) -> str:
        formulas = ((_bent(f.question), typeset(f), _bent(f.holds), _bent(f.said())) for f in self.formulas)
        numbers = ((_bent(n.name), _bent(n.said()), _bent(n.use)) for n in self.numbers)
        return _table("Formulas worth knowing", _FORMULA_HEADS, formulas) + _table(
            "Numbers worth knowing", _NUMBER_HEADS, numbers
        )

    def document(self) -> str:
        """A whole document, which prints on one sheet of A4 or Letter paper held sideways."""
        formulas = self._tables(lambda f: _bent(f.formula))
        symbols = " · ".join(f"<b>{_bent(symbol)}</b> {_bent(meaning)}" for symbol, meaning in _SYMBOLS)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{_TITLE}</title><style>{_STYLE}</style></head>"
            f"<body><h1>{_TITLE}</h1>{formulas}<p>{symbols}</p></body></html>"
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


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(_row("td", row) for row in rows)
    return f'<table class="dataframe"><caption>{title}</caption>{_row("th", heads)}{body}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _bent(text: str) -> str:
    """Text as HTML, its letters with their indices and exponents: W_hbm, e^(-R / M)."""
    lowered = re.sub(r"\b([A-Za-z])_(\w+)", r"<i>\1</i><sub>\2</sub>", escape(text))
    return re.sub(r"\^\(([^)]*)\)", r"<sup>\1</sup>", lowered)
