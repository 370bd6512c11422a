"""The README is current: its tree of the library, its table of chapters, its picture and its examples."""

import re
import subprocess
import sys

import pytest
import yaml

from scalingbook_lib.evidence import training
from tests.book import examples
from tools.environment import PACKAGES, ROOT
from tools.reference import readme_picture

README = examples.text("README.md")
CHAPTERS = "chapters/"
CHAPTER_FOLDERS = "scalingbook_book/chapters/"  # the tree has one line for all of them
LONGEST = 240  # lines
PICTURE_BYTES = 60_000


def listed_packages():
    """The packages and modules of the annotated tree, by path."""
    block = README.split("```text\n", 1)[1].split("scalingbook_lib/", 1)[1].split("```")[0]
    found, above = set(), ["scalingbook_lib/"]
    for indent, name in re.findall(r"^( *)(\S+/|\S+\.py) +\S.*$", "scalingbook_lib/" + block, re.MULTILINE):
        above = [*above[: len(indent) // 2], name]
        found.add("".join(above))
    return found


def existing_packages():
    """The packages, down to the second level below each, and the module of units."""
    folders = [
        p for top in PACKAGES for p in (ROOT / top, *(ROOT / top).glob("*/"), *(ROOT / top).glob("*/*/"))
    ]
    names = {f"{p.relative_to(ROOT).as_posix()}/" for p in folders if any(p.glob("*.py"))}
    names = {name for name in names if name == CHAPTER_FOLDERS or not name.startswith(CHAPTER_FOLDERS)}
    return names | {"scalingbook_lib/units.py"}


def test_the_tree_lists_every_package_of_the_library():
    assert listed_packages() == existing_packages()


def test_every_folder_of_the_repository_is_named():
    written_by_make_release = "dist"
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith((".", "_"))}
    unnamed = {name for name in folders if f"`{name}/`" not in README}
    assert unnamed <= {*PACKAGES, written_by_make_release}


def test_the_table_lists_every_chapter_by_its_title_in_the_order_of_the_book():
    listed = re.findall(r"^\| \[(.+?)\]\(chapters/(\w+)\.md\) \|", README, re.MULTILINE)
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in contents["parts"] for chapter in part["chapters"]]
    titles = [
        (re.findall(r"^# (.+)$", (ROOT / f"{file}.md").read_text(encoding="utf-8"), re.MULTILINE)[0], file)
        for file in files
        if file.startswith(CHAPTERS)
    ]
    assert [(title, f"{CHAPTERS}{stem}") for title, stem in listed] == titles


def test_the_picture_shows_the_explorer_as_it_is_now():
    current = readme_picture.PICTURE.read_text(encoding="utf-8")
    assert current == readme_picture.picture(), "run `.venv/bin/python -m tools.reference.readme_picture`"
    assert len(current.encode()) < PICTURE_BYTES
    assert f"({readme_picture.PICTURE.relative_to(ROOT).as_posix()})" in README


def test_the_first_section_has_the_two_commands_and_names_the_book_that_this_one_follows():
    first = README[: README.index("\n## ")]
    assert 0 < first.index("make book") < first.index("make test")
    works = (ROOT / "references.bib").read_text(encoding="utf-8")
    reference = re.findall(r"^@\w+\{austin2025scaling,.*?^\}", works, re.DOTALL | re.MULTILINE)[0]
    for field in ("title", "url"):
        assert re.findall(rf"{field}\s*= \{{+(.+?)\}}+,", reference)[0] in first


def test_the_errors_are_those_of_sources_that_the_fit_has_not_seen():
    dense, moe = (training.total(experts, leave_one_out=True).mean for experts in (False, True))
    assert f"is {dense:.0%} for dense models and {moe:.0%} for mixtures of experts" in " ".join(
        README.split()
    )


def test_it_is_short():
    assert len(README.splitlines()) < LONGEST


@pytest.mark.parametrize("guide", examples.GUIDES)
def test_every_code_block_names_its_language(guide):
    assert all(language.strip() for _, language, _ in examples.FENCE.findall(examples.text(guide)))


def test_every_make_target_that_a_guide_names_exists():
    def plans(target):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False)
        return done.returncode == 0

    assert {"book", "test", "lab"} <= set(examples.targets())
    assert [target for target in examples.targets() if not plans(target)] == []


@pytest.mark.parametrize("code", examples.python_examples())
def test_the_python_examples_run(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
