"""What the download buttons give is a notebook that runs alone, with the library inside."""

import nbformat
import pytest

from tools import alone, first_cell, notebooks

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


@pytest.mark.parametrize("stem", [n.stem for n in notebooks.every() if n.folder == "chapters"])
def test_every_chapter_gives_its_notebook_and_its_exercises_with_the_library(download, stem):
    for where in (BUTTON, LINK):
        given = download(f"chapters/{stem}.html", where)
        assert given.name == f"{stem}.ipynb"
        first, *others = nbformat.read(given, as_version=4).cells
        assert "base64.b64decode" in first.source
        assert first_cell.is_it(first)
        assert len(others) > 10


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
