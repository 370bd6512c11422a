"""What `make test` asks of the site in a browser: each page opens cleanly, and some chapters are live.

The other files of this folder ask more of every page and explorer, and `make test-all` runs them instead.
"""

import pytest

from tests.browser.conftest import pages, with_text
from tests.browser.touching import PAINT, boxes, give, others, right, roots, wrong
from tools.pages import every
from tools.testing import scope

LIVE = set(with_text('data-explorer="'))
CHAPTERS = [name for page in every() if not page.deeper and (name := f"{page}.html") in LIVE]


@pytest.fixture(scope="module")
def strict(browser, base):
    """A tab under the site's own content security policy, in which page after page is opened."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("response", lambda r: said.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("request", lambda r: None if r.url.startswith((base, "data:", "blob:")) else said.append(r.url))
    yield page, said
    context.close()


@pytest.mark.quick_only
@pytest.mark.parametrize("name", pages() or ["(no site: run make site)"])
def test_a_page_opens_under_the_policy_with_a_clean_console(strict, base, name):
    page, said = strict
    said.clear()
    page.goto(f"{base}/{name}", wait_until="load")
    assert page.locator("h1").count() == 1
    assert page.locator(".katex-error").count() == 0
    assert said == []


@pytest.mark.quick_only
@pytest.mark.parametrize("name", scope.sample(CHAPTERS, 6))
def test_an_explorer_of_the_chapter_moves_and_agrees_with_the_library(visit, name):
    visited = visit()
    page = visited.go(name)
    visited.wake()
    root, explorer, control, moved = next(
        (root, explorer, control, state)
        for root, explorer in roots(visited)
        for control, one in explorer.controls.items()
        for state in others(one)
        if not explorer.render({control: state}).evaluated.error
    )
    page.evaluate(PAINT, [root, control, moved])
    painted = explorer.render({control: moved})
    assert root.query_selector(".ex-verdict").text_content() == painted.verdict
    visited.assert_clean()


@pytest.mark.quick_only
def test_an_exercise_judges_a_wrong_and_a_right_answer(visit):
    visited = visit()
    visited.go("chapters/rooflines.html")
    visited.wake()
    form, check = next((form, one) for form, one in boxes(visited) if one.kind == "number")
    assert give(visited, form, wrong(check))[0] == "wrong"
    assert give(visited, form, right(check))[0] == "right"
