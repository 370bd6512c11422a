"""Tests that every sentence is shown, and that symbols and terms are explained."""

import re

import pytest

from scalingbook_book.chapters.explorers import catalog
from tools import pages
from tools.environment import ROOT
from tools.reference import letters, terms

PROSE = sorted([*ROOT.glob("*.md"), *ROOT.glob("chapters/*.md"), *ROOT.glob("solutions/*.md")])
ROOMS = sorted(ROOT.glob("scalingbook_book/chapters/**/*.py"))
COMMENT = re.compile(r"^%.*", re.MULTILINE)
THE_REFERENCE = re.compile(r"\bthe\s+reference\b", re.IGNORECASE)
ERRATA = "errata.md"


def prose(path):
    """What is no cell and no block of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def named(path):
    text = prose(path) if path.suffix == ".md" else path.read_text(encoding="utf-8")
    return len(THE_REFERENCE.findall(text))


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_line_of_a_page_is_a_comment(path):
    lost = COMMENT.findall(prose(path))
    assert not lost, f"MyST shows no line that begins with %; break the line elsewhere: {lost}"


def test_corrections_of_other_texts_are_only_in_the_errata():
    found = {path.relative_to(ROOT).as_posix(): named(path) for path in (*PROSE, *ROOMS)}
    quarrels = {name: count for name, count in found.items() if count and name != ERRATA}
    assert quarrels == {}, f"say what holds, and let {ERRATA} say what others print"


# Letters


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_a_letter_has_one_meaning_on_a_page(page):
    known = letters.meanings(page.name)
    strange = {s for s in letters.used(page.text) if s not in known and letters.of(s) not in known}
    assert not strange, f"say in data/letters.csv what these mean on {page.name}: {sorted(strange)}"
    assert {s: rows for s, rows in known.items() if len(rows) > 1} == {}, "two rows claim this page"


@pytest.mark.parametrize("path", sorted(ROOT.glob("solutions/*.md")), ids=lambda path: path.stem)
def test_a_letter_of_a_solution_has_a_meaning_on_its_chapter_s_pages(path):
    known = {symbol for page in pages.of(path.stem) for symbol in letters.meanings(page.name)}
    strange = {s for s in letters.used(prose(path)) if s not in known and letters.of(s) not in known}
    assert not strange, f"use the chapter's letters in {path.name}, or words, for {sorted(strange)}"


def test_a_meaning_of_one_page_is_used_there():
    found = {page.name: letters.used(page.text) for page in pages.every()}
    for path in ROOT.glob("solutions/*.md"):
        found[path.stem] = found[path.stem] | letters.used(prose(path))
    found = {name: used | {letters.of(symbol) for symbol in used} for name, used in found.items()}
    idle = [
        (symbol, row.pages)
        for row in letters.rows()
        for symbol in row.each
        if row.pages != "*" and not any(symbol in used for name, used in found.items() if row.names(name))
    ]
    assert idle == []


def test_the_tables_of_the_notation_page_are_the_rows():
    text = letters.PAGE.read_text(encoding="utf-8")
    assert letters.page(text) == text, "run python -m tools.reference.letters"


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("$T_\\text{math} > 2BDF/C$ and `$x$`", {"T_\\text{math}", "B", "D", "F", "C"}),
        ("$A[I_X, J] \\cdot B[J, K]$, so $A$ moves; $\\bar A[I, J]$", set()),
        ("$$\\max_i n_i + e^{s - m}\\;\\text{ bytes of } W_\\text{in}[D, F]$$", {"n_i", "s", "m"}),
        ("$A[I, K]\\{U_X\\}$ and $p_{ij}$", {"p_{ij}"}),
        ("```python\ncost = '$q$'\n```", set()),
    ],
)
def test_symbols_are_recognized_in_formulas(source, used):
    assert letters.used(source) == used


# Terms

CONTROLS = [c for one in catalog().values() for c in one.controls.values()]
ON_A_CONTROL = {said.casefold() for c in CONTROLS for said in (c.label, *getattr(c, "options", ()))}
EMPHASIS = {  # no terms, and on no control
    *("and", "row", "weights", "flops/s", "fills", "drains", "three times"),
    *("bundles are not cycles", "deferring the allgather", "switches", "core", "resident", "ragged"),
    *("sequences", "data ways"),
}
NO_TERMS = ON_A_CONTROL | EMPHASIS


def test_every_term_in_bold_has_an_entry():
    known = {form for entry in terms.entries() for name in entry for form in terms.forms(terms.bare(name))}
    missing = {page.name: terms.said_in_bold(page.text) - known - NO_TERMS for page in pages.every()}
    assert {name: found for name, found in missing.items() if found} == {}, "define them in glossary.md"


def test_every_entry_has_a_section_that_says_the_word():
    places, sections = terms.places(), terms.sections()
    assert [place.term for place in places] == [entry[0] for entry in terms.entries()]
    silent = [p for p in places if p.said.casefold() not in " ".join(sections[p.section].split()).casefold()]
    assert silent == []


def test_a_term_leads_to_where_it_is_in_bold():
    everywhere = {said for page in pages.every() for said in terms.bold(page.text)} - NO_TERMS
    strays = [
        p
        for p in terms.places()
        if terms.forms(p.said) & everywhere
        and not terms.forms(p.said) & terms.bold(terms.sections()[p.section])
    ]
    assert strays == []
