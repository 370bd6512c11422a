"""A Predict box hides the answer that the source marks, and nothing that a reader needs to read on."""

import pytest

from benchmarks.scripts import ASLEEP
from tools import pages

WAITS = "[hidden=until-found]"
CHOICE, NUMBER = ".guess[data-value='a millisecond']", ".guess[data-unit='rows']"
EXACT = "section:has(> #rooflines-exact)"
SAVES = ASLEEP.partition("try")[0]  # Python starts when it is asked; the rest of the profile is fresh
NEEDED = "strong, .fig, .explorer, div.math, .admonition"  # definitions, pictures, formulas, boxes


@pytest.fixture
def fresh(visit, base):
    """A page as a first reader sees it."""

    def go(path):
        page = visit(asleep=False).page
        page.add_init_script(SAVES)
        page.add_init_script(
            "document.addEventListener('DOMContentLoaded', () => {"
            f" globalThis.atFirst = document.querySelectorAll('{WAITS}').length; }});"
        )
        page.goto(f"{base}/{path}", wait_until="load")
        page.wait_for_selector("[data-guesses]:not([hidden])", state="attached")
        return page

    return go


@pytest.fixture
def rooflines(fresh):
    return fresh("chapters/rooflines.html")


def test_what_is_hidden_is_the_answers_from_the_first_paint_on(rooflines):
    forms = rooflines.locator(".guess").count()
    assert rooflines.locator(f".answer{WAITS}").count() == forms > 3
    assert rooflines.locator(".guess:visible").count() == forms
    assert rooflines.locator(".guess-hidden").first.inner_text().startswith("Answer hidden: one paragraph")
    assert rooflines.evaluate("globalThis.atFirst") == rooflines.locator(WAITS).count()


@pytest.mark.smoke
def test_a_number_is_judged_by_the_library_and_kept(rooflines):
    box = rooflines.locator(NUMBER).first
    box.locator("input").fill("300 rows")
    box.locator("input").press("Enter")
    rooflines.wait_for_function('document.querySelector("' + NUMBER + "\").textContent.includes('factor of')")
    assert box.inner_text() == "You said: 300 rows. Right: within a factor of 2."
    assert rooflines.locator(f"{NUMBER} + .answer").first.is_visible()
    rooflines.reload()
    rooflines.wait_for_selector("[data-guesses]:not([hidden])", state="attached")
    assert box.inner_text().startswith("You said: 300 rows. Right.")


def test_a_choice_is_judged_at_once_and_counted_at_the_end_of_the_book(rooflines):
    box = rooflines.locator(CHOICE).first
    box.get_by_role("button", name="a second").click()
    assert box.inner_text().startswith("You said: a second. Not right.")
    rooflines.goto(rooflines.url.replace("rooflines", "conclusion"))
    assert "rooflines: 0 of 1" in rooflines.locator(".guess-report").inner_text()


def test_one_button_shows_all_and_another_says_so_for_good(rooflines):
    waiting = rooflines.locator(WAITS).count()
    rooflines.evaluate("globalThis.same = true")
    rooflines.locator(".guess-show").first.click()
    assert 0 < rooflines.locator(WAITS).count() < waiting
    rooflines.get_by_role("button", name="Show all answers on this page").click()
    assert rooflines.locator(f"{WAITS}, .guess:visible").count() == 0
    rooflines.get_by_role("button", name="Hide answers until I guess").first.click()
    assert rooflines.locator(f".answer{WAITS}").count() > 2
    top = rooflines.locator(".admonition.predict").first.bounding_box()["y"]
    rooflines.get_by_role("button", name="Never hide answers").first.click()
    assert rooflines.locator(WAITS).count() == 0
    assert abs(rooflines.locator(".admonition.predict").first.bounding_box()["y"] - top) < 2
    assert rooflines.evaluate("globalThis.same"), "the page was loaded again"
    rooflines.reload()
    assert rooflines.locator(WAITS).count() == 0


def test_a_link_or_a_search_that_leads_into_an_answer_shows_it(rooflines):
    rooflines.evaluate("document.querySelector('.answer p').id = 'inside'; location.hash = 'inside'")
    rooflines.wait_for_function("!document.getElementById('inside').closest('[hidden]')")
    rooflines.evaluate("sessionStorage.setItem('found', 'rows'); location.hash = 'rooflines-exact'")
    rooflines.wait_for_function(f'!document.querySelector("{EXACT} {WAITS}")')


def test_a_page_opened_at_a_section_shows_that_section_whole(fresh):
    page = fresh("chapters/rooflines.html#rooflines-exact")
    section = page.locator(EXACT)
    assert section.locator(".answer").count() > 0
    assert section.locator(f"{WAITS}, .guess:visible").count() == 0
    assert page.locator(f".answer{WAITS}").count() > 0


def test_with_scripts_off_all_is_shown(visit):
    page = visit(javascript=False).go("chapters/rooflines.html")
    assert page.locator(f"{WAITS}, .guess:visible, .answers-line:visible").count() == 0
    assert page.locator(".answer:visible").count() > 3


def test_nothing_that_a_reader_needs_is_hidden_in_any_chapter(fresh, base):
    page = fresh("chapters/intro.html")
    hidden = 0
    for one in pages.every():
        if ":::{answer}" in one.text and not one.deeper:
            page.goto(f"{base}/{one}.html", wait_until="domcontentloaded")
            found = f'[...document.querySelectorAll("{WAITS}")]'
            assert (
                page.evaluate(
                    f'{found}.flatMap((e) => [...e.querySelectorAll("{NEEDED}")].map((f) => f.outerHTML))'
                )
                == []
            )
            hidden += page.evaluate(f"{found}.length")
    assert hidden > 80
