"""Tests of the conversion from MyST to plain Markdown."""

import re
from pathlib import Path

import jupytext
import nbformat
import pytest

from tools import notebooks, plain
from tools.environment import ROOT

HERE = Path("chapters/here.ipynb")
BOOK = plain.Book(
    {"there-top": (Path("chapters/there.ipynb"), "What is there"), "here-end": (HERE, "The end"),
     "notation": (Path("notation.md"), "Notation and units")},
    {"pope": ("Pope et al.", "2023", "https://arxiv.org/abs/2211.05102"), "spec": ("Google Cloud", "", "")},
)  # fmt: skip
MYST = re.compile(r"(?<!`)\{[a-z:]+\}`|^:::|^```\{|^\([\w-]+\)=$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)(?P<file>[^)#\s]*)(?:#(?P<anchor>[\w-]+))?\)")


@pytest.mark.parametrize(
    ("myst", "read"),
    [
        ("see {ref}`there-top`.", "see [What is there](there.ipynb#there-top)."),
        ("{ref}`the\nend <here-end>`", "[the end](#here-end)"),
        ("{ref}`notation`", "[Notation and units](../notation.md#notation)"),
        ("as {ref}`fig-here-cut` and {eq}`the sum <eq-s>` have it", "as the figure and the sum have it"),
        ("{eq}`the time <there#eq-t>`", "[the time](there.ipynb)"),
        ("by {cite:t}`pope`", "by [Pope et al. (2023)](https://arxiv.org/abs/2211.05102)"),
        ("{cite}`pope,spec`", "([Pope et al., 2023](https://arxiv.org/abs/2211.05102); Google Cloud)"),
        ("a {term}`ring` and {term}`rings <ring>`", "a ring and rings"),
        ("(here-end)=\n## The end\n", '<a id="here-end"></a>\n\n## The end\n'),
        (
            ":::{admonition} Predict\n:class: predict\nHow many?\n\nTwo?\n:::",
            "> **Predict**\n>\n> How many?\n>\n> Two?",
        ),
        (
            "```{exercises} here\n```",
            "They are in [exercises/here.ipynb](../exercises/here.ipynb), with a check each.",
        ),
        (
            "```{exercises} here\nhalving\n```",
            "The exercise is in [exercises/here.ipynb](../exercises/here.ipynb): `here.halving`.",
        ),
        ("Read {download}`ranks.csv <../data/mysteries/ranks.csv>`.", "Read `ranks.csv`."),
        ("`{ref}` and $\\{U_Y\\}$ stay", "`{ref}` and $\\{U_Y\\}$ stay"),
    ],
)  # fmt: skip
def test_each_myst_construct_is_converted(myst, read):
    assert plain.text(myst, HERE, BOOK) == read


@pytest.mark.parametrize(
    "myst", ["{doc}`x`", "{ref}`nowhere`", "{cite}`nobody`", ":::{note}\nx\n:::", "```{figure} x\n```"]
)
def test_unsupported_constructs_raise_an_error_that_names_them(myst):
    with pytest.raises(ValueError, match=r"chapters/here\.ipynb: "):
        plain.text(myst, HERE, BOOK)


def texts(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


@pytest.fixture(scope="module")
def anchors():
    found = {}
    for notebook in notebooks.every():
        text = "\n".join(texts(notebook.committed()))
        found[notebook.path] = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    return found


@pytest.mark.parametrize("notebook", notebooks.every(), ids=str)
def test_notebooks_have_plain_markdown_with_valid_links(notebook, anchors):
    for text in texts(notebook.committed()):
        assert not MYST.search(text), text
        for link in LINK.finditer(text):
            to = (notebook.path.parent / link["file"]).resolve() if link["file"] else notebook.path
            assert to.exists(), link[0]
            if to in anchors and link["anchor"]:
                assert link["anchor"] in anchors[to], link[0]


@pytest.mark.parametrize("folder", ["chapters", "solutions"])
def test_the_site_has_the_text_of_the_source_and_the_outputs_of_the_notebook(folder):
    source_of = pytest.importorskip("web.extension.source", reason="the site's layer is not set up")
    path = ROOT / folder / "rooflines.ipynb"
    read = nbformat.reads(source_of.with_text(path.read_text(), path.with_suffix(".md")), as_version=4)
    written = jupytext.read(path.with_suffix(".md"), fmt="md:myst")
    assert texts(read) == texts(written)
    assert (texts(read) != texts(nbformat.read(path, as_version=4))) == (folder == "chapters")
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    shown = [cell for cell in read.cells if cell.cell_type == "code"]
    assert [(cell.source, cell.outputs) for cell in shown] == [(cell.source, cell.outputs) for cell in code]
    without = {cell.source for cell in shown if "remove-input" in cell.metadata.get("tags", ())}
    assert all(source.startswith(("show.explorer(", "show.figure(")) for source in without)


def test_citations_are_named_as_in_prose():
    named = {key: work[0] for key, work in plain.book(ROOT).works.items()}
    assert named["austin2025scaling"] == "Austin et al."
    assert not any(set("{}\\") & set(name) or not name for name in named.values())
