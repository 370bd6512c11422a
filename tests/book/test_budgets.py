"""Is every page short enough to be finished? `python -m tools.words` says how long each is."""

from dataclasses import fields, replace

import nbformat
import pytest

from tools import pages, words
from tools.environment import ROOT
from tools.words import Length

VISIBLE, CELLS, TABLES = 30, 45, 8  # of a chapter's own page: cells shown, with those folded, and tables
WORDS = {
    "intro": 3_000,
    "rooflines": 3_800,
    "tpus": 2_900,
    "tpus_network": 2_300,
    "sharding": 4_400,
    "transformers": 5_400,
    "training": 5_450,
    "training_llama3": 4_400,
    "inference": 5_450,
    "inference_llama3": 4_550,
    "profiling": 5_450,
    "jax": 4_850,
    "gpus": 2_750,
    "gpus_network": 5_200,
    "lowprecision": 3_100,
    "architectures": 3_000,
    "machines": 3_300,
    "posttraining": 4_000,
    "conclusion": 2_300,
}
REFERENCE = {"notation": 1_990, "glossary": 7_800, "teach": 700}  # words of what one looks things up in
DEEPER, ALL_DEEPER = 4_000, 34_700  # words of a deeper page, and of all of them

LENGTHS = {page: words.of(page) for page in pages.every()}
MAIN = [page for page in LENGTHS if not page.deeper]


def budget(page):
    return Length(words=WORDS[page.name], visible=VISIBLE, cells=CELLS, tables=TABLES)


def over(length, limit):
    pairs = (
        (field.name, getattr(length, field.name), getattr(limit, field.name)) for field in fields(Length)
    )
    return [f"{name}: {found:,}, at most {most:,}" for name, found, most in pairs if found > most]


@pytest.mark.parametrize("page", MAIN, ids=str)
def test_a_main_lane_keeps_to_its_budget(page):
    assert page.name in WORDS, "give the chapter a budget"
    assert over(LENGTHS[page], budget(page)) == []


@pytest.mark.parametrize(("name", "most"), REFERENCE.items())
def test_what_one_looks_up_is_short(name, most):
    assert words.words((ROOT / f"{name}.md").read_text(encoding="utf-8")) <= most


def test_deeper_pages_keep_to_theirs():
    deeper = {str(page): length.words for page, length in LENGTHS.items() if page.deeper}
    assert {page: count for page, count in deeper.items() if count > DEEPER} == {}
    assert sum(deeper.values()) <= ALL_DEEPER


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One, two: *three* **four**.", 4),
        ("A `code with spaces` and $x + y$ are {cite}`two,keys` words.", 7),
        ("Before\n\n$$a = b + c$$\n\nafter.", 2),
        ("```python\nnot = counted\n```", 0),
        ("(label)=\n## A heading", 2),
        (":::{admonition} Its title\n:class: tip\nA box.\n:::", 4),
        ("[a link](https://example.org/x) and {ref}`some words <label>` and {term}`ring`", 7),
        ("| chip | peak |\n|---|---|\n| v5e | 197 TFLOPs/s |\n| — | 12,345 |", 4),
        ("Two – dashes · count 2 not", 5),
    ],
)
def test_what_counts_as_a_word(text, count):
    assert words.words(text) == count


def test_captions_and_folded_cells_count(executed):
    page = pages.Page("sums", "sums", root=executed)
    before = words.of(page)
    assert (before.visible, before.cells, before.tables) == (1, 2, 0)
    path = page.path.with_suffix(".ipynb")
    notebook = nbformat.read(path, as_version=4)
    drawn = "<figure><table></table><figcaption>Five words are counted here</figcaption></figure>"
    for html in (drawn, "<table></table>"):
        shown = nbformat.v4.new_output("display_data", {"text/html": html})
        next(cell for cell in notebook.cells if cell.source == "2 + 2").outputs.append(shown)
    nbformat.write(notebook, path)
    assert words.of(page) == replace(before, words=before.words + 5, tables=1)
