"""The cover lists what the contents list, with times that are counted, and ways that exist."""

import re
import tomllib
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from scalingbook_lib.chapters.intro.explorers.book_map import CHAPTERS, PATHS
from tools import pages, words
from tools.environment import ROOT
from web.extension import cover

TOC = {
    "parts": [
        {"caption": "One", "chapters": [{"file": "chapters/a", "sections": [{"file": "chapters/a_b"}]}]},
        {"caption": "Reference", "chapters": [{"file": "notation"}]},
    ]
}
INDEX = (ROOT / "index.md").read_text(encoding="utf-8")


def test_parts_hold_chapters_and_what_is_deeper():
    assert cover.parts(TOC) == {"One": (cover.Chapter("chapters/a", ("chapters/a_b",)),)}


def test_the_contents_are_the_map_in_its_order():
    listed = [chapter.stem for chapters in cover._contents().values() for chapter in chapters]
    assert listed == [chapter.stem for chapter in CHAPTERS]


def test_a_page_takes_a_minute_for_two_hundred_words():
    page = next(page for page in pages.every() if page.name == "rooflines")
    assert cover.minutes("chapters/rooflines") == pytest.approx(words.of(page).words / 200, abs=0.5)


@pytest.mark.parametrize(("minutes", "said"), [(45, "45 min"), (60, "1 h"), (95, "1 h 35 min")])
def test_minutes_are_told_as_hours(minutes, said):
    assert cover.told(minutes) == said


def test_every_way_of_the_cover_is_one_of_the_map_and_links_its_pages():
    ways = re.search(r"```\{paths\}\n(.*?)```", INDEX, re.DOTALL)[1].strip().splitlines()
    names = [way.split(" | ")[0] for way in ways]
    assert len(names) == 6
    assert set(names) <= set(PATHS)
    made = cover._way(*ways[3].split(" | "))
    assert 'data-pages="chapters/intro.html chapters/jax.html' in made


def test_the_release_is_the_librarys():
    config = SimpleNamespace()
    cover.name_the_release(None, config)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert config.myst_substitutions["version"] == project["version"]
    assert all(f"{{{{ {name} }}}}" in INDEX for name in config.myst_substitutions)
