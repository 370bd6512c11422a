"""Tests of the tool that generates notebooks, on a small book."""

import jupytext
import nbformat
import pytest

from tools import first_cell, notebooks
from tools.notebooks import WIDGET, Notebook


@pytest.fixture
def chapter(executed):
    return Notebook("chapters", "sums", root=executed)


def test_a_chapter_is_executed_and_agrees_with_its_source(chapter):
    assert notebooks.differences(chapter) == []
    _, first, second = (cell for cell in chapter.committed().cells if cell.cell_type == "code")
    assert first.outputs[0]["data"] == {"text/plain": "4"}
    assert second.outputs[0]["text"] == "four\n"
    assert second.metadata == {"tags": ["hide-input"]}


def test_a_second_run_writes_the_same_bytes(chapter):
    before = chapter.path.read_bytes()
    notebooks.execute(chapter)
    assert chapter.path.read_bytes() == before
    assert b"3.1" not in before  # no kernel version


def test_another_release_changes_only_the_first_cell(chapter, monkeypatch):
    before = chapter.path.read_bytes()
    notebooks.renew(chapter)
    assert chapter.path.read_bytes() == before
    monkeypatch.setattr(first_cell, "_LOOKING", "release = 2")
    assert len(notebooks.differences(chapter)) == 1
    notebooks.renew(chapter)
    assert notebooks.differences(chapter) == []
    assert [cell.source for cell in chapter.committed().cells if cell.cell_type == "code"] == [
        "release = 2",
        "2 + 2",
        'print("four")',
    ]


def test_code_that_is_wrapped_differently_keeps_its_outputs(chapter):
    source = chapter.source_path.read_text()
    chapter.source_path.write_text(source.replace("2 + 2", "# two lines\n(2\n + 2)"))
    before = [cell.outputs for cell in chapter.committed().cells if cell.cell_type == "code"]
    assert notebooks.renew(chapter) is None
    assert notebooks.differences(chapter) == []
    assert [cell.outputs for cell in chapter.committed().cells if cell.cell_type == "code"] == before


@pytest.mark.parametrize("other", ["2 + 3", "2 + 2;"])
def test_code_that_does_something_else_has_to_run(chapter, other):
    before = chapter.path.read_bytes()
    chapter.source_path.write_text(chapter.source_path.read_text().replace("2 + 2", other))
    assert "run make execute" in (notebooks.renew(chapter) or "")
    assert chapter.path.read_bytes() == before


def test_notebooks_are_not_paired_with_their_sources(chapter):
    assert "formats: ipynb,md:myst" in chapter.source_path.read_text()
    assert "jupytext" not in chapter.committed().metadata


def test_a_first_cell_in_a_source_is_not_doubled(chapter):
    jupytext.write(chapter.committed(), chapter.source_path, fmt="md:myst")  # as JupyterLab would save it
    assert notebooks.differences(chapter) == []


def test_exercises_are_generated_and_run_unanswered(executed):
    notebook = Notebook("exercises", "sums", root=executed)
    assert notebooks.differences(notebook) == []
    assert notebook.committed().cells[-1].outputs[0]["data"]["text/plain"] == "'not answered yet'"


@pytest.mark.parametrize("change", ["source", "unexecuted", "stderr", "error", "widget", "missing"])
def test_a_notebook_that_differs_from_its_source_is_reported(chapter, change):
    stored = chapter.committed()
    cell = [cell for cell in stored.cells if cell.cell_type == "code"][1]
    match change:
        case "source":
            chapter.source_path.write_text(chapter.source_path.read_text().replace("2 + 2", "2 + 3"))
        case "unexecuted":
            cell.execution_count = None
        case "stderr":
            cell.outputs.append(nbformat.v4.new_output("stream", name="stderr", text="noise"))
        case "error":
            cell.outputs.append(nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[]))
        case "widget":
            cell.outputs.append(nbformat.v4.new_output("display_data", data={WIDGET: {"model_id": "1"}}))
    nbformat.write(stored, chapter.path)
    if change == "missing":
        chapter.path.unlink()
    assert len(notebooks.differences(chapter)) == 1


def test_random_ids_of_widgets_are_not_stored():
    shown = nbformat.v4.new_output("display_data", data={WIDGET: {"model_id": "1"}, "text/plain": "a slider"})
    alone = nbformat.v4.new_output("display_data", data={WIDGET: {"model_id": "2"}})
    cell = nbformat.v4.new_code_cell(
        "show()", outputs=[shown, alone], metadata={"execution": {"shell": "now"}}
    )
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    (stripped,) = notebooks._stripped(notebook).cells
    assert [output.data for output in stripped.outputs] == [{"text/plain": "a slider"}]
    assert "widgets" not in notebook.metadata
    assert stripped.metadata == {}


def test_a_failing_cell_leaves_the_notebook_as_it_was(chapter):
    before = chapter.path.read_bytes()
    chapter.source_path.write_text(chapter.source_path.read_text().replace("2 + 2", "1 / 0"))
    problem = notebooks._bring_up_to_date(chapter, "library")
    assert problem
    assert "ZeroDivisionError" in problem
    assert chapter.path.read_bytes() == before


def test_an_unchanged_notebook_is_not_executed_again(chapter, monkeypatch):
    monkeypatch.setattr(notebooks, "execute", lambda notebook: None)
    assert not notebooks._up_to_date(chapter, "library")
    assert notebooks._bring_up_to_date(chapter, "library") is None
    assert notebooks._up_to_date(chapter, "library")
    assert not notebooks._up_to_date(chapter, "another library")
    chapter.path.write_text(chapter.path.read_text() + " ")
    assert not notebooks._up_to_date(chapter, "library")


def test_notebooks_depend_on_the_librarys_tables(book):
    for table in ("scalingbook_lib/machines/chips/tpus.csv", "data/model_configs.csv"):
        before = notebooks._library(book)
        (book / table).parent.mkdir(parents=True)
        (book / table).touch()
        assert notebooks._library(book) != before


def test_an_unknown_chapter_is_refused(book):
    with pytest.raises(SystemExit, match="nowhere"):
        notebooks.every(["nowhere"], book)


@pytest.mark.parametrize(
    ("folder", "stem", "kind", "model"),
    [
        ("chapters", "rooflines", "TPU", "V5E1"),
        ("solutions", "sharding", "TPU", "V5E1"),
        ("chapters", "gpus_network_axes", "GPU", "T4"),
        ("exercises", "gpus", "GPU", "T4"),
        ("chapters", "profiling_gpus", "GPU", "T4"),
    ],
)
def test_colab_opens_a_notebook_on_a_chip_of_the_kind_it_is_about(folder, stem, kind, model):
    metadata = Notebook(folder, stem).committed().metadata
    assert metadata["accelerator"] == kind
    assert metadata["colab"] == {"gpuType": model, "provenance": [], "toc_visible": True}


def test_another_runtime_is_a_difference_that_renewing_removes(chapter, monkeypatch):
    monkeypatch.setattr(notebooks, "GPU_PAGES", {"sums"})
    assert "metadata" in notebooks.differences(chapter)[0]
    notebooks.renew(chapter)
    assert notebooks.differences(chapter) == []
