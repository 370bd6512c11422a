"""What the download buttons give is a notebook that runs alone, with the library inside."""

import re

import nbformat
import pytest

from tests.browser.conftest import SITE
from tools import exercises, first_cell, isolated_run, pages

BUTTON, LINK = ".article-header-buttons a[download]", ".exercise-notebook a[download]"


@pytest.fixture
def download(visit, tmp_path):
    """Click a page's button or link; the file that it gives, in an empty folder."""

    def click(path, where):
        page = visit(accept_downloads=True).go(path)
        with page.expect_download() as saved:
            page.click(where)
        folder = tmp_path / "alone"
        folder.mkdir(exist_ok=True)
        saved.value.save_as(folder / saved.value.suggested_filename)
        return folder / saved.value.suggested_filename

    return click


DOWNLOAD = re.compile(r'<a\b(?=[^>]*\sdownload\b)[^>]*\bhref="([^":]+)"')


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_every_page_gives_its_notebook_and_its_exercises_with_the_library(page):
    file, folder = SITE.resolve() / f"{page}.html", SITE.resolve() / "notebooks"
    links = DOWNLOAD.findall(file.read_text(encoding="utf-8"))
    linked = {(file.parent / link).resolve() for link in links if link.endswith(".ipynb")}
    asked = {found["stem"] for found in exercises.SHOWN.finditer(page.text)}  # of other chapters, too
    due = {str(page), *(f"exercises/{stem}" for stem in asked)}
    assert linked == {folder / f"{one}.ipynb" for one in due}
    for notebook in linked:
        first, *others = nbformat.read(notebook, as_version=4).cells
        assert "base64.b64decode" in first.source
        assert first_cell.is_it(first)
        assert len(others) >= 2  # the sheet of formulas is one cell below its introduction


@pytest.mark.parametrize(
    ("page", "where"), [("chapters/intro.html", BUTTON), ("chapters/rooflines.html", LINK)]
)
def test_what_is_given_runs_from_end_to_end_where_there_is_no_library(
    download, tmp_path, monkeypatch, page, where
):
    monkeypatch.setattr(isolated_run, "WORK", tmp_path / "work")
    with isolated_run.index() as empty:
        notebook = download(page, where)
        home = notebook.parents[1]
        assert isolated_run.run_failure(home, [notebook], isolated_run.newest(), empty) == ""
        assert empty.requests == []


@pytest.mark.parametrize("path_", ["index.html", "chapters/intro.html"])
def test_copying_a_page_gives_its_markdown_twin(visit, path_):
    page = visit().go(path_)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click(".copy-page")
    page.wait_for_selector('.copy-page[data-done="copied"]')
    twin = (SITE / path_).with_suffix(".md").read_text(encoding="utf-8")
    assert page.evaluate("navigator.clipboard.readText()") == twin
