"""The tool that makes notebooks from their sources, tried on a small book."""

import nbformat
import pytest

from tools import notebooks
from tools.notebooks import Notebook

CHAPTER, EXERCISES = ("chapters", "sums"), ("exercises", "sums")


def executed(book, which):
    notebook = Notebook(*which, root=book)
    notebooks.execute(notebook)
    return notebook


def test_a_chapter_is_executed_and_agrees_with_its_source(book):
    notebook = executed(book, CHAPTER)
    assert notebooks.differences(notebook) == []
    first, second = (cell for cell in notebook.committed().cells if cell.cell_type == "code")
    assert first.outputs[0]["data"] == {"text/plain": "4"}
    assert second.outputs[0]["text"] == "four\n"
    assert second.metadata == {"tags": ["hide-input"]}


def test_a_second_run_writes_the_same_bytes(book):
    before = executed(book, CHAPTER).path.read_bytes()
    assert executed(book, CHAPTER).path.read_bytes() == before
    assert b"widgets" not in before
    assert b"3.1" not in before  # no kernel version


def test_exercises_are_generated_and_run_unanswered(book):
    notebook = executed(book, EXERCISES)
    assert notebooks.differences(notebook) == []
    last = notebook.committed().cells[-1]
    assert last.outputs[0]["data"]["text/plain"] == "'not answered yet'"


@pytest.mark.parametrize("change", ["source", "unexecuted", "stderr", "error", "missing"])
def test_a_notebook_that_drifted_is_told(book, change):
    notebook = executed(book, CHAPTER)
    stored = notebook.committed()
    cell = next(cell for cell in stored.cells if cell.cell_type == "code")
    match change:
        case "source":
            notebook.source_path.write_text(notebook.source_path.read_text().replace("2 + 2", "2 + 3"))
        case "unexecuted":
            cell.execution_count = None
        case "stderr":
            cell.outputs.append(nbformat.v4.new_output("stream", name="stderr", text="noise"))
        case "error":
            cell.outputs.append(nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[]))
    if change == "missing":
        notebook.path.unlink()
    elif change != "source":
        nbformat.write(stored, notebook.path)
    assert len(notebooks.differences(notebook)) == 1


def test_a_failing_cell_leaves_the_notebook_as_it_was(book):
    notebook = executed(book, CHAPTER)
    before = notebook.path.read_bytes()
    notebook.source_path.write_text(notebook.source_path.read_text().replace("2 + 2", "1 / 0"))
    problem = notebooks._bring_up_to_date(notebook, "library")
    assert problem
    assert "ZeroDivisionError" in problem
    assert notebook.path.read_bytes() == before


def test_what_has_not_changed_is_left_alone(book):
    notebook = Notebook(*CHAPTER, root=book)
    assert not notebooks._up_to_date(notebook, "library")
    assert notebooks._bring_up_to_date(notebook, "library") is None
    assert notebooks._up_to_date(notebook, "library")
    assert not notebooks._up_to_date(notebook, "another library")
    notebook.source_path.write_text(notebook.source_path.read_text() + "\nMore.\n")
    assert not notebooks._up_to_date(notebook, "library")


def test_an_unknown_chapter_is_refused(book):
    with pytest.raises(SystemExit, match="nowhere"):
        notebooks.every(["nowhere"], book)
