"""JupyterLab is told to trust a notebook only where it is what the repository holds."""

import shutil
import subprocess

import pytest

from tools.trust import notebooks

NAMES = ("chapters/one.ipynb", "exercises/zwei drei.ipynb")


@pytest.fixture
def book(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{{}} {name}")
    who = ["-c", "user.name=reader", "-c", "user.email=reader@book.example"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "the book"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_what_was_committed_is_trusted(book):
    assert notebooks.held(book) == set(NAMES)


def test_what_was_changed_or_put_there_is_not_even_where_git_is_told_not_to_look(book):
    subprocess.run(["git", "update-index", "--assume-unchanged", NAMES[1]], cwd=book, check=True)
    (book / NAMES[1]).write_text("<script>")
    (book / "chapters" / "new.ipynb").write_text("<script>")
    assert notebooks.held(book) == {NAMES[0]}
    assert set(notebooks.found(book)) == {*NAMES, "chapters/new.ipynb"}


def test_without_a_repository_none_is(book):
    shutil.rmtree(book / ".git")
    assert notebooks.held(book) == set()
