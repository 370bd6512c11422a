"""A chapter owns its deeper pages: their exercises, their notebooks, their place in the contents."""

import pytest

from tools import exercises, notebooks, pages
from tools.exercises import ExerciseError

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
