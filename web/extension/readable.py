"""The text of a section for search results, without code, TeX source, citation keys and labels."""

import re
from collections.abc import Mapping
from html import unescape

from docutils import nodes
from sphinx import addnodes

_SHOWN = re.compile(r'class="(?:fig|explorer)"')
_TABLE = 'class="side-by-side"'
_NOT_READ = nodes.literal_block | nodes.raw | nodes.comment | addnodes.glossary
_MARK = "\4"  # around the label of a section whose title is not known yet
_CITATION = re.compile(r"([a-z]+)(\d{4})\w*")

_GREEK: dict[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "lambda": "λ", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "eta": "η", "ell": "ℓ",
}  # fmt: skip
_SIGNS = {
    "cdot": " · ", "times": " × ", "to": " → ", "ge": " ≥ ", "le": " ≤ ", "ll": " ≪ ", "approx": " ≈ ",
    "pm": " ± ", "sum": " Σ", "prod": " Π", "star": "*", "top": "ᵀ", "otimes": " ⊗ ", "dots": "…",
    "bmod": " mod ", "leftarrow": " ← ", "xrightarrow": " → ", "Leftrightarrow": " ⇔ ",
    "Longleftrightarrow": " ⇔ ", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
}  # fmt: skip
_NO_SIGN = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|(?:text|display)style|underbrace|(?:begin|end)\{\w+\})(?![A-Za-z])|[&$]"
)
_SPACE = re.compile(r"\\(?:q?quad(?![A-Za-z])|[,;:! ])|\\\\|~")
_GROUP = r"(?:\{([^{}]*)\}|(\w))"
_UPRIGHT = r"\\(?:text|mathrm|mathbf|operatorname|overline|bar)\s*"
_FRACTION = re.compile(rf"\\[td]?frac\s*{_GROUP}\s*{_GROUP}")
_RAISED = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")
_LOWERED = str.maketrans("0123456789ijkmnt", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₘₙₜ")


def section_anchor(section: nodes.Element) -> str:
    """Return the label of a section, or the anchor of its title if it has none; '' without any.

    docutils 0.22 lists the anchor of the title last, and older versions list it first.
    """
    title = next(iter(section.findall(nodes.title)), None)
    own = nodes.make_id(title.astext()) if title is not None else ""
    labels = [id for id in section["ids"] if id != own]
    return next(reversed(labels or section["ids"]), "")


def text(node: nodes.Node) -> str:
    """Return the words of a node: prose, tables, formulas, figure captions; no code and no output."""
    if isinstance(node, nodes.Text):
        return node.astext().replace("\u00ad", "")
    if isinstance(node, nodes.math | nodes.math_block):
        return formula(node.astext())
    if isinstance(node, nodes.container) and "cell" in node["classes"]:
        return _caption(node)
    if isinstance(node, nodes.raw) and _TABLE in node.astext():
        return _html_table(node.astext())
    if isinstance(node, addnodes.pending_xref):
        return _reference(node)
    return "" if isinstance(node, _NOT_READ) else _joined(node)


def _joined(node: nodes.Node) -> str:
    inline = isinstance(node, nodes.TextElement)
    apart = "" if inline else " · " if isinstance(node, nodes.row) else " "
    parts = [text(child) for child in node.children]
    told = re.sub(r"\s+", " ", apart.join(parts if inline else filter(None, parts)))
    return told if inline and not isinstance(node, nodes.paragraph) else told.strip()


def _reference(ref: addnodes.pending_xref) -> str:
    """Return the visible text of a reference; a section's title is filled in later by `filled`."""
    if ref.get("refdomain") == "cite":
        return _cited(ref["reftarget"]) if ref["reftype"] == "t" else ""
    if ref.get("reftype") == "ref" and not ref.get("refexplicit"):
        return f"{_MARK}{ref['reftarget'].lower()}{_MARK}"
    return _joined(ref)


def filled(told: str, titles: Mapping[str, str]) -> str:
    """Return a section's text with the titles of sections it refers to, known after all pages are read."""
    return tidy(re.sub(f"{_MARK}(.*?){_MARK}", lambda m: titles.get(m[1], ""), told))


def _cited(key: str) -> str:
    found = _CITATION.fullmatch(key)
    return f"{found[1].title()} {found[2]}" if found else ""


def tidy(told: str) -> str:
    """Return the text with normalized spaces, and none before punctuation."""
    return re.sub(r"\s+(?=[.,;:!?)](?:\s|$))", "", re.sub(r"\s+", " ", told)).strip()


def formula(source: str) -> str:
    r"""Return a formula in Unicode: `T_math = FLOPs/C` for `T_\text{math} = \frac{\text{FLOPs}}{C}`."""
    told = _NO_SIGN.sub("", source.replace(r"\{", "\1").replace(r"\}", "\2"))
    told = re.sub(rf"([_^]){_UPRIGHT}(?=\{{)", r"\1", _SPACE.sub(" ", told))
    before = ""
    while told != before:  # the innermost braces first
        before = told
        told = re.sub(rf"{_UPRIGHT}{_GROUP}", _first, told)
        told = _FRACTION.sub(lambda m: f"{_bracketed(m[1] or m[2])}/{_bracketed(m[3] or m[4])}", told)
        told = re.sub(rf"\\sqrt\s*{_GROUP}", lambda m: f"√({_first(m)})", told)
        told = re.sub(rf"\^{_GROUP}", lambda m: _raised(_first(m)), told)
        told = re.sub(rf"_{_GROUP}", lambda m: _lowered(_first(m)), told)
    told = re.sub(r"\^(?=\\(?:star|top))", "", told)
    told = re.sub(r"\\([A-Za-z]+) ?", lambda m: _GREEK.get(m[1]) or _SIGNS.get(m[1], m[1]), told)
    told = re.sub(r"[{}\\]", "", told).translate({1: "{", 2: "}", 3: "_"})
    return re.sub(r"\s+", " ", told).strip()


def _bracketed(part: str) -> str:
    part = part.strip()
    return f"({part})" if re.search(r"[\s+·×/−-]|\\(?:cdot|times)", part) else part


def _first(found: re.Match[str]) -> str:
    """Return the content of braces, or a single letter without braces."""
    return (found[1] or found[2] or "").strip()


def _raised(part: str) -> str:
    known = all(ord(letter) in _RAISED for letter in part)
    return part.translate(_RAISED) if known else f"^{_bracketed(part)}"


def _lowered(part: str) -> str:
    return part.translate(_LOWERED) if len(part) == 1 and ord(part) in _LOWERED else f"\3{part}"


def _caption(cell: nodes.container) -> str:
    """Return the caption of a figure or an explorer; "" for any other output."""
    if not any(_SHOWN.search(raw.astext()) for raw in cell.findall(nodes.raw)):
        return ""
    plain = (b for b in cell.findall(nodes.literal_block) if "text_plain" in b["classes"])
    return next((block.astext() for block in plain), "")


def _html_table(source: str) -> str:
    rows = re.findall(r"<tr>(.*?)</tr>", source, re.S)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows)
    return " ".join(unescape(" · ".join(row)) for row in cells)
