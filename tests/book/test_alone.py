"""Does a notebook alone find its library, and does the tool that tries it notice one that cannot?"""

import base64
import subprocess
import zipfile

import nbformat
import pytest

from tools import alone, first_cell, wheel
from tools.environment import ROOT
from tools.notebooks import Notebook

CARRYING = first_cell.carrying(wheel.carried())
WHOLE_BYTES = 1_500_000  # what a download may weigh more than the notebook


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A wheel of this tree, and an environment without the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alone, "WORK", tmp_path_factory.mktemp("alone"))
        return alone.wheel(), alone.newest()


@pytest.fixture
def empty():
    with alone.index() as index:
        yield index


def put(notebook, code):
    """Write another cell after the first into a stored notebook."""
    stored = notebook.committed()
    stored.cells.insert(1, nbformat.v4.new_code_cell(code))
    nbformat.write(stored, notebook.path)


@pytest.mark.parametrize("carrying", ["", CARRYING], ids=["beside a wheel", "from the site"])
def test_a_notebook_alone_runs_and_one_that_reads_the_tree_does_not(
    executed, made, empty, tmp_path, monkeypatch, carrying
):
    monkeypatch.setattr(alone, "WORK", tmp_path / "work")
    one = alone.Run(Notebook("exercises", "sums", root=executed), made[1], carrying)
    assert alone.run(one, made[0], empty) == ""
    assert empty.asked == []
    put(one.notebook, 'open("../solutions/sums.md").read()')
    problem = alone.run(one, made[0], empty)
    assert problem.startswith("exercises/sums ")
    assert "FileNotFoundError" in problem


def test_what_is_asked_of_the_index_is_noticed(executed, made, empty, tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "WORK", tmp_path / "work")
    one = alone.Run(Notebook("exercises", "sums", root=executed), made[1])
    put(one.notebook, "%pip install --quiet jax-metal")
    alone.run(one, made[0], empty)
    assert empty.asked[0] == "/simple/jax-metal/"


def test_where_every_cell_is_run_anyway_only_what_sets_up_is_copied(executed, tmp_path):
    chapter = Notebook("chapters", "sums", root=executed)
    stored = chapter.committed()
    stored.cells += [nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(stored, chapter.path)
    whole, some = (alone.Versions("", tmp_path, whole=whole) for whole in (True, False))
    setting_up = ["2 + 2", 'print("four")']

    def copied(on, carrying=""):
        return [c.source for c in alone.Run(chapter, on, carrying).copied().cells if c.cell_type == "code"]

    assert copied(whole)[1:] == copied(some)[1:] == copied(some, "carried")[1:] == setting_up
    assert copied(whole, "carried") == ["carried", *setting_up, "1 / 0"]


def ran(made, folder, code):
    """A program in the environment that has no library; what it said."""
    python = made[1].home / "bin" / "python"
    return subprocess.run([python, "-"], input=code, cwd=folder, capture_output=True, text=True, check=False)


TELLS = "\nimport scalingbook_lib, sys; print('from', scalingbook_lib.__file__)"


def test_a_committed_notebook_takes_the_library_of_the_copy_around_it(made, tmp_path):
    (tmp_path / "scalingbook_lib").symlink_to(ROOT / "scalingbook_lib")
    (tmp_path / "chapters").mkdir()
    done = ran(made, tmp_path / "chapters", first_cell.source() + TELLS)
    assert done.returncode == 0, done.stderr
    assert f"from {tmp_path / 'scalingbook_lib'}" in done.stdout


def test_where_the_library_is_nowhere_one_sentence_says_what_to_do(made, tmp_path):
    done = ran(made, tmp_path, first_cell.source())
    assert done.stderr.splitlines()[-1] == f"RuntimeError: {first_cell.NOWHERE}"
    assert first_cell.NOWHERE.count(".") == 0


def test_a_download_uses_the_library_that_it_carries_and_none_that_stands_about(made, tmp_path):
    (tmp_path / "scalingbook_lib").mkdir()
    (tmp_path / "scalingbook_lib" / "__init__.py").write_text("raise SystemExit('somebody else')")
    done = ran(made, tmp_path, CARRYING + TELLS)
    assert done.returncode == 0, done.stderr
    assert f"from {tmp_path}/" not in done.stdout
    assert "from " in done.stdout


def test_a_download_that_was_changed_on_its_way_is_refused_before_anything_is_imported(made, tmp_path):
    first = next(line for line in CARRYING.split("\n") if len(line) == first_cell.LINE)
    done = ran(made, tmp_path, CARRYING.replace(first, first.swapcase()))
    assert done.stderr.splitlines()[-1].endswith("is not what the book put there: download it again")
    assert "scalingbook_lib" not in done.stdout


def test_a_download_carries_what_the_wheel_holds_and_is_small(made):
    assert len(CARRYING.encode()) < WHOLE_BYTES
    assert wheel.carried() == wheel.carried(), "the same tree gives the same bytes"
    with zipfile.ZipFile(made[0]) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert wheel.whole() == held
    assert base64.b64decode(wheel.carried()[:8])[:6] == b"\xfd7zXZ\0"
