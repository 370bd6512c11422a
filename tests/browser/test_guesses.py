"""A Predict box asks before it tells, keeps what was said, and stands aside for who wants no questions."""

import pytest

BOX = ".admonition.predict"
WAITS = "[hidden=until-found]"


@pytest.fixture
def asked(visit, base):
    """A page whose boxes ask."""
    page = visit().page
    page.add_init_script("try { localStorage.setItem('scalingbook.asks', 'yes'); } catch {}")
    page.goto(f"{base}/chapters/rooflines.html", wait_until="load")
    page.wait_for_selector(f"{BOX} .guess input")
    return page


@pytest.mark.smoke
def test_the_answer_waits_for_a_guess_which_is_kept_and_judged(asked):
    waiting = asked.locator(WAITS).count()
    assert waiting > 5
    box = asked.locator(BOX).first
    box.locator("input").fill("a second")
    box.locator("input").press("Enter")
    assert asked.locator(WAITS).count() < waiting
    box.get_by_role("button", name="nearly").click()
    asked.reload()
    asked.wait_for_selector(f"{BOX} .guess span")
    assert "You said: a second. Right? nearly." in box.inner_text()
    asked.goto(asked.url.replace("rooflines", "conclusion"))
    assert "rooflines: 1 of 1" in asked.locator(".guess-report").inner_text()


def test_nobody_must_answer(asked):
    box = asked.locator(BOX).first
    waiting = asked.locator(WAITS).count()
    box.get_by_role("button", name="Just show me").click()
    assert asked.locator(WAITS).count() < waiting
    assert not box.locator(".guess").is_visible()


def test_a_link_into_an_answer_shows_it(asked):
    inside = asked.evaluate(f"document.querySelector('{WAITS} [id]').id")
    asked.evaluate("(id) => { location.hash = id; }", inside)
    asked.wait_for_function("(id) => !document.getElementById(id).closest('[hidden]')", arg=inside)


def test_with_scripts_off_or_for_who_never_wants_to_be_asked_all_is_shown(visit):
    assert visit(javascript=False).go("chapters/rooflines.html").locator(WAITS).count() == 0
    page = visit().go("chapters/rooflines.html")
    page.wait_for_selector("[data-guesses]:not([hidden])", state="attached")
    assert page.locator(f"{WAITS}, {BOX} .guess input").count() == 0
