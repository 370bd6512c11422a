"""Tests of the ten-week course and its slides."""

import re

import pytest

pytest.importorskip("sphinx", reason="the site's layer is not set up")
from scalingbook_book.chapters import checks, figures
from web import slides
from web.extension import course, cover

WEEKS = course.weeks()


def test_the_weeks_cover_every_chapter_once_after_its_prerequisites():
    assert [week.number for week in WEEKS] == list(range(1, 11))
    contents = [chapter.stem for chapters in cover.contents().values() for chapter in chapters]
    assert [page for week in WEEKS for page in week.pages] == contents


@pytest.mark.parametrize("week", WEEKS, ids=lambda week: f"week-{week.number}")
def test_a_weeks_exercises_are_on_its_pages_and_fit_an_afternoon(week):
    assert {course.section(label)[0] for label in week.skip} <= set(week.pages)
    assert {course.places()[key] for key in week.exercises} <= set(week.pages)
    levels = {checks.find(key).difficulty for key in week.exercises}
    assert levels == {1, 2, 3}, "a set has something for everybody"
    assert week.reading_minutes + week.solving_minutes <= 180


def test_times_count_code_explorers_and_predictions():
    for week in WEEKS:
        assert week.reading_minutes < week.studying_minutes < 6 * week.reading_minutes
    first = course.effort()
    assert cover.duration(sum(week.studying_minutes for week in WEEKS)) in first
    assert cover.duration(WEEKS[0].studying_minutes) in "".join(course._told(WEEKS[0]))


def test_the_pages_totals_are_correct():
    every = [key for week in WEEKS for key in week.exercises]
    assert len(set(every)) == len(every)
    told = course.effort()
    assert f"{len(every)} of {len(checks.catalog())} exercises" in told
    assert "".join(course._told(WEEKS[0])).count("<a href=") == sum(
        map(len, (WEEKS[0].pages, WEEKS[0].skip, WEEKS[0].exercises))
    )


def test_the_first_slide_names_each_chapter_with_its_question():
    first = next(slides.slides(WEEKS[-1]))
    assert first.startswith('<section class="slide"><h1>Week 10</h1>')
    for page in WEEKS[-1].pages:
        chapter = course.chapter(page)
        assert f"<dt>{chapter.title}</dt><dd>{chapter.question}</dd>" in first


def test_the_caption_of_a_tall_figure_stands_beside_it():
    assert slides.is_tall(figures.find("transformers.block"))
    assert not slides.is_tall(figures.find("rooflines.wait"))


def test_slides_have_every_figure_and_load_nothing_external():
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
    assert min(len(slides.drawn(page)) for week in WEEKS for page in week.pages) >= 2
