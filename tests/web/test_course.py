"""The course has every chapter in its order and exercises that stand where it says; slides need nothing."""

import re

import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from scalingbook_lib.chapters import checks
from web import slides
from web.extension import course, cover

WEEKS = course.weeks()


def test_the_weeks_have_every_chapter_once_each_after_those_that_it_uses():
    assert [week.number for week in WEEKS] == list(range(1, 11))
    contents = [chapter.stem for chapters in cover.contents().values() for chapter in chapters]
    assert [page for week in WEEKS for page in week.pages] == contents


@pytest.mark.parametrize("week", WEEKS, ids=lambda week: f"week-{week.number}")
def test_a_week_is_of_its_own_pages_and_no_longer_than_an_afternoon(week):
    assert {course.section(label)[0] for label in week.skip} <= set(week.pages)
    assert {course.places()[key] for key in week.exercises} <= set(week.pages)
    levels = {checks.find(key).difficulty for key in week.exercises}
    assert levels == {1, 2, 3}, "a set has something for everybody"
    assert week.reading_minutes + week.solving_minutes <= 150


def test_what_the_page_says_is_counted():
    every = [key for week in WEEKS for key in week.exercises]
    assert len(set(every)) == len(every)
    told = course._whole()
    assert f"{len(every)} of {len(checks.catalogue())} exercises" in told
    assert "".join(course._told(WEEKS[0])).count("<a href=") == sum(
        map(len, (WEEKS[0].pages, WEEKS[0].skip, WEEKS[0].exercises))
    )


def test_slides_have_every_figure_with_its_words_and_nothing_from_elsewhere():
    text = slides.document(WEEKS[0])
    assert text == slides.document(WEEKS[0])
    shown = [key for page in WEEKS[0].pages for key in slides.drawn(page)]
    assert len(shown) >= 12
    assert re.findall(r'<figure class="fig" id="fig-([\w-]+)"', text) == [
        key.replace(".", "-") for key in shown
    ]
    assert min(map(len, re.findall(r'class="fig-wide" role="img" aria-label="([^"]+)"', text))) > 40
    assert len(re.findall(r"<figcaption>[^<]", text)) == len(shown)
    assert re.findall(r"<script|\son\w+=|\sstyle=|url\(|@import|\ssrc=|https?://(?!www\.w3\.org)", text) == []
    assert min(len(slides.drawn(page)) for week in WEEKS for page in week.pages) >= 6
