"""Tests that a notebook alone finds the library, and that the tool notices one that cannot."""

import base64
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from tools import first_cell, isolated_run, wheel
from tools.environment import PACKAGES, ROOT
from tools.notebooks import Notebook

CARRYING = first_cell.carrying(wheel.carried())
WHOLE_BYTES = 2_000_000  # what a download may weigh more than the notebook


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A wheel of this tree, and an environment without the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolated_run, "WORK", tmp_path_factory.mktemp("alone"))
        return isolated_run.wheel(), isolated_run.newest()


def fake_python(folder, version):
    """An interpreter that only says its version; without one, a shim that fails."""
    folder.mkdir(parents=True)
    path = folder / ("python" if "versions" in folder.parts else "python3")
    path.write_text(f"#!/bin/sh\necho {version}\n" if version else "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_python(monkeypatch, tmp_path):
    """A machine whose only other interpreters are those that a test puts into its home."""
    monkeypatch.setattr(isolated_run, "COLAB_PYTHON", "9.9")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PYENV_ROOT", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_colabs_python_is_found_in_pyenv_and_in_uv(no_python):
    assert isolated_run.colab_python().path == Path(sys.executable)
    fake_python(no_python / ".pyenv" / "versions" / "9.9.2" / "bin", "")
    managed = fake_python(no_python / ".local/share/uv/python/cpython-9.9.1-linux/bin", "9.9")
    assert isolated_run.colab_python() == (managed, "9.9")
    own = fake_python(no_python / ".pyenv" / "versions" / "9.9.1" / "bin", "9.9")
    assert isolated_run.colab_python() == (own, "9.9")


def test_colabs_python_on_the_path_comes_first(no_python, monkeypatch):
    fake_python(no_python / ".pyenv" / "versions" / "9.9.1" / "bin", "9.9")
    first = fake_python(no_python / "bin", "9.9").rename(no_python / "bin" / "python9.9")
    monkeypatch.setenv("PATH", str(no_python / "bin"))
    assert isolated_run.colab_python().path == first


@pytest.fixture
def empty():
    with isolated_run.index() as index:
        yield index


def put(notebook, code):
    """Write another cell after the first into a stored notebook."""
    stored = notebook.committed()
    stored.cells.insert(1, nbformat.v4.new_code_cell(code))
    nbformat.write(stored, notebook.path)


@pytest.mark.parametrize("carrying", ["", CARRYING], ids=["beside a wheel", "from the site"])
def test_a_notebook_runs_alone_and_one_that_reads_the_repository_fails(
    executed, made, empty, tmp_path, monkeypatch, carrying
):
    monkeypatch.setattr(isolated_run, "WORK", tmp_path / "work")
    one = isolated_run.Run(Notebook("exercises", "sums", root=executed), made[1], carrying)
    assert isolated_run.run([one], made[0], empty) == ""
    assert empty.requests == []
    put(one.notebook, 'open("../solutions/sums.md").read()')
    problem = isolated_run.run([one], made[0], empty)
    assert problem.startswith("exercises-sums-")
    assert "FileNotFoundError" in problem


def test_a_request_to_the_package_index_fails_the_run(executed, made, empty, tmp_path, monkeypatch):
    monkeypatch.setattr(isolated_run, "WORK", tmp_path / "work")
    one = isolated_run.Run(Notebook("exercises", "sums", root=executed), made[1])
    put(one.notebook, "%pip install --quiet jax-metal")
    isolated_run.run([one], made[0], empty)
    assert empty.requests[0] == "/simple/jax-metal/"


def test_batches_hold_each_run_once_and_share_versions_and_a_profile(tmp_path):
    colab, newest = (isolated_run.Versions(name, tmp_path, name == "colab") for name in ("colab", "newest"))
    planned = [run for on in (newest, colab) for run in isolated_run.runs(on, [], CARRYING)]
    batches = list(isolated_run.batches(planned))
    assert sorted(str(run) for batch in batches for run in batch) == sorted(map(str, planned))
    assert {len({(run.on, run.compiles) for run in batch}) for batch in batches} == {1}
    assert len(batches) < len(planned) / 4


def test_with_jax_notebooks_that_use_none_are_left_out(tmp_path):
    colab = isolated_run.Versions("colab", tmp_path, whole=True)
    every, some = (
        {str(run.notebook) for run in isolated_run.runs(colab, [], CARRYING, with_jax=with_jax)}
        for with_jax in (False, True)
    )
    assert {"chapters/jax_train_step", "chapters/intro", "exercises/intro"} <= some < every
    assert "solutions/intro" in some, "one chapter runs whole"
    assert "chapters/inference_queues" in every - some


def test_only_set_up_cells_run_where_tests_run_every_cell(executed, tmp_path):
    chapter = Notebook("chapters", "sums", root=executed)
    stored = chapter.committed()
    stored.cells += [nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(stored, chapter.path)
    whole, some = (isolated_run.Versions("", tmp_path, whole=whole) for whole in (True, False))
    setting_up = ["2 + 2", 'print("four")']

    def sources_to_run(on, carrying=""):
        return [
            c.source
            for c in isolated_run.Run(chapter, on, carrying).notebook_to_run().cells
            if c.cell_type == "code"
        ]

    assert (
        sources_to_run(whole)[1:]
        == sources_to_run(some)[1:]
        == sources_to_run(some, "carried")[1:]
        == setting_up
    )
    assert sources_to_run(whole, "carried") == ["carried", *setting_up, "1 / 0"]


def ran(made, folder, code):
    """The output of a program in the environment without the library."""
    python = made[1].home / "bin" / "python"
    return subprocess.run([python, "-"], input=code, cwd=folder, capture_output=True, text=True, check=False)


TELLS = "\nimport scalingbook_lib, sys; print('from', scalingbook_lib.__file__)"


def test_a_committed_notebook_uses_the_library_of_the_surrounding_repository(made, tmp_path):
    for package in PACKAGES:
        (tmp_path / package).symlink_to(ROOT / package)
    (tmp_path / "chapters").mkdir()
    done = ran(made, tmp_path / "chapters", first_cell.source() + TELLS)
    assert done.returncode == 0, done.stderr
    assert f"from {tmp_path / 'scalingbook_lib'}" in done.stdout


def test_a_missing_library_raises_an_error_that_says_what_to_do(made, tmp_path):
    done = ran(made, tmp_path, first_cell.source())
    assert done.stderr.splitlines()[-1] == f"RuntimeError: {first_cell.NOWHERE}"
    assert first_cell.NOWHERE.count(".") == 0


def test_a_download_uses_the_library_that_it_carries(made, tmp_path):
    (tmp_path / "scalingbook_lib").mkdir()
    (tmp_path / "scalingbook_lib" / "__init__.py").write_text("raise SystemExit('somebody else')")
    done = ran(made, tmp_path, CARRYING + TELLS)
    assert done.returncode == 0, done.stderr
    assert f"from {tmp_path}/" not in done.stdout
    assert "from " in done.stdout


def test_a_corrupted_download_is_refused_before_anything_is_imported(made, tmp_path):
    first = next(line for line in CARRYING.split("\n") if len(line) == first_cell.LINE)
    done = ran(made, tmp_path, CARRYING.replace(first, first.swapcase()))
    assert done.stderr.splitlines()[-1].endswith("is damaged: download the notebook again")
    assert "scalingbook_lib" not in done.stdout


def test_a_download_carries_what_the_wheel_holds_and_is_small(made):
    assert len(CARRYING.encode()) < WHOLE_BYTES
    assert wheel.carried() == wheel.carried(), "the same tree gives the same bytes"
    with zipfile.ZipFile(made[0]) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert wheel.whole() == held
    assert base64.b64decode(wheel.carried()[:8])[:6] == b"\xfd7zXZ\0"
