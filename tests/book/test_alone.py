"""Does the tool that runs notebooks alone notice one that cannot?"""

from dataclasses import replace

import nbformat
import pytest

from tools import alone, first_cell
from tools.notebooks import Notebook


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alone, "WORK", tmp_path_factory.mktemp("alone"))
        return alone.wheel()


@pytest.fixture
def newest(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "WORK", tmp_path)
    return replace(alone.newest(), name="everything", whole=None)


def put(notebook, code):
    """Write another last cell into a stored notebook."""
    stored = notebook.committed()
    stored.cells[-1].source = code
    nbformat.write(stored, notebook.path)


def test_a_notebook_alone_runs_and_one_that_reads_the_tree_does_not(executed, wheels, newest):
    notebook = Notebook("exercises", "sums", root=executed)
    assert alone.run(notebook, newest, wheels) == ""
    put(notebook, 'open("../solutions/sums.md").read()')
    problem = alone.run(notebook, newest, wheels)
    assert problem.startswith("exercises/sums alone on everything: status 1")
    assert "FileNotFoundError" in problem


def test_a_library_that_came_from_elsewhere_is_noticed(executed, wheels, newest):
    notebook = Notebook("exercises", "sums", root=executed)
    stored = notebook.committed()
    stored.cells = [cell for cell in stored.cells if not first_cell.is_it(cell)]
    nbformat.write(stored, notebook.path)
    assert "its first cell brought set()" in alone.run(notebook, newest, wheels)


def test_where_every_cell_is_run_anyway_only_what_sets_up_is_copied(executed):
    chapter = Notebook("chapters", "sums", root=executed)
    light = alone.Versions("light", executed, frozenset())
    whole = alone.Versions("whole", executed, frozenset({"chapters/sums"}))
    stored = chapter.committed()
    stored.cells += [nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(stored, chapter.path)
    assert [c.source for c in light.copied(chapter).cells if c.cell_type == "code"][1:] == [
        "2 + 2",
        'print("four")',
    ]
    assert whole.copied(chapter).cells[-1].source == "1 / 0"
    assert alone.Versions("all", executed).copied(chapter).cells[-1].source == "1 / 0"


def test_what_pip_is_told_reaches_no_index(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", "/somewhere")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    told = alone._variables(tmp_path, tmp_path / "wheels")
    assert (told["PIP_NO_INDEX"], told["PIP_FIND_LINKS"]) == ("1", str(tmp_path / "wheels"))
    assert "JAX_PLATFORMS" not in told, "the library itself has to choose"
