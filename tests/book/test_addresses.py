"""Whose is a page, and does every address of the book before it had deeper pages still lead to its text?"""

import re

import pytest

from scalingbook_lib.chapters import checks
from tools import exercises, notebooks, pages
from tools.environment import ROOT
from tools.exercises import ExerciseError

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from web.extension import addresses

LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
TOC = """\
format: jb-book
root: chapters/sums
parts:
  - caption: Chapters
    chapters:
      - file: chapters/sums_of_many
      - file: chapters/sums
        sections:
          - file: chapters/sums_carried
"""


@pytest.fixture
def divided(book):
    """The small book, with a deeper page and a second page of its first rank."""
    (book / "_toc.yml").write_text(TOC)
    chapter = (book / "chapters" / "sums.md").read_text()
    for name in ("sums_carried", "sums_of_many"):
        (book / "chapters" / f"{name}.md").write_text(chapter)
    return book


def test_pages_belong_to_the_chapter_whose_room_they_share(divided):
    assert [(str(p), p.stem, p.deeper) for p in pages.of("sums", divided)] == [
        ("chapters/sums", "sums", False),
        ("chapters/sums_of_many", "sums", False),
        ("chapters/sums_carried", "sums", True),
    ]
    assert pages.chapter("training_llama3") == "training_llama3"
    assert pages.chapter("rooflines_narrow") == "rooflines"
    assert pages.chapter("elsewhere") == "elsewhere"


def test_a_chapter_is_executed_with_its_pages_and_a_page_alone(divided):
    whole = [str(n) for n in notebooks.every(["sums"], divided)]
    assert {"chapters/sums", "chapters/sums_carried", "solutions/sums", "exercises/sums"} <= {*whole}
    assert [str(n) for n in notebooks.every(["sums_carried"], divided)] == ["chapters/sums_carried"]


def test_an_exercise_stands_on_the_page_that_names_it_and_on_no_other(divided):
    deeper = divided / "chapters" / "sums_carried.md"
    deeper.write_text(deeper.read_text() + "\n```{exercises} sums\nhalving\n```\n")
    assert [e.key for e in exercises.shown("sums", [], divided)] == ["sums.two-halves"]
    assert [e.key for e in exercises.shown("sums", ["halving"], divided)] == ["sums.halving"]
    deeper.write_text(deeper.read_text().replace("halving", "halving halving"))
    with pytest.raises(ExerciseError, match="more than once"):
        exercises.shown("sums", [], divided)
    deeper.write_text(deeper.read_text().replace("halving halving", "thirds"))
    with pytest.raises(ExerciseError, match="no exercise thirds"):
        exercises.shown("sums", [], divided)


def test_every_section_of_once_stands_somewhere():
    texts = [page.text for page in pages.every()] + [path.read_text() for path in ROOT.glob("*.md")]
    labels = {label for text in texts for label in LABEL.findall(text)}
    lost = [f"{old.page}#{old.anchor}" for old in addresses.old() if old.label not in labels]
    assert not lost, (
        f"no page has the label that these led to: {lost}; keep a section's label where its text goes, "
        "also when two sections become one (a heading may have several), or name in the table "
        "web/addresses.csv the label that has it now"
    )


def test_the_table_of_addresses_is_closed():
    old = addresses.old()
    assert len(old) == 366, "no row is added, and none goes"
    assert {a.page for a in old} <= {f"chapters/{stem}" for stem in checks.stems()}
