"""What the download buttons give is a notebook that runs alone, with the library inside."""

import nbformat
import pytest

from tools import alone, exercises, first_cell, pages

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


@pytest.mark.parametrize("page", pages.every(), ids=str)
def test_every_page_gives_its_notebook_and_its_exercises_with_the_library(download, page):
    asks = exercises.SHOWN.search(page.text)
    for where, name in {BUTTON: page.name, LINK: asks["stem"] if asks else None}.items():
        if name is None:
            continue
        given = download(f"{page}.html", where)
        assert given.name == f"{name}.ipynb"
        first, *others = nbformat.read(given, as_version=4).cells
        assert "base64.b64decode" in first.source
        assert first_cell.is_it(first)
        assert len(others) > 2  # a page of text alone has few


@pytest.mark.parametrize(
    ("page", "where"), [("chapters/intro.html", BUTTON), ("chapters/rooflines.html", LINK)]
)
def test_what_is_given_runs_from_end_to_end_where_there_is_no_library(
    download, tmp_path, monkeypatch, page, where
):
    monkeypatch.setattr(alone, "WORK", tmp_path / "work")
    with alone.index() as empty:
        assert alone.ended(download(page, where), alone.newest(), empty) == ""
        assert empty.asked == []
