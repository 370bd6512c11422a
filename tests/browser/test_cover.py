"""On the cover a slider is at hand with its verdict; a way that was chosen is marked on every page."""

import pytest

STEPS = ".bd-sidebar-primary a[data-step]"


@pytest.fixture
def page(visit):
    return visit().go("index.html")


def marked(page):
    return page.eval_on_selector_all(
        STEPS, "links => links.map((a) => [a.dataset.step, new URL(a.href).pathname.split('/').pop()])"
    )


def test_a_chosen_way_is_marked_wherever_one_goes(page):
    assert marked(page) == []
    page.locator('.paths input[value="an evening"]').check()
    pages = page.locator('.paths input[value="an evening"]').get_attribute("data-pages").split()
    wanted = [(str(k + 1), name.split("/")[-1]) for k, name in enumerate(pages)]
    assert sorted(tuple(one) for one in marked(page)) == sorted(wanted)
    assert page.locator(".inside-chapter > a[data-step]").count() == len(wanted)
    page.goto(page.url.replace("index.html", pages[1]))
    page.wait_for_selector(STEPS, state="attached")
    assert len(marked(page)) == len(wanted)  # the page itself has the address #
    following = page.locator("a.right-next")
    assert following.evaluate("(link) => link.pathname").endswith(pages[2])
    assert following.locator(".prev-next-title").inner_text().strip()


def test_what_the_browser_kept_of_something_else_is_not_believed(page):
    page.evaluate("localStorage.setItem('scalingbook.path', '{\"name\": 3}')")
    page.reload()
    assert marked(page) == []


SEEN = """(shown) => {  // all of it in the window, and nothing above its middle
  const box = shown.getBoundingClientRect(), { left, right, top, bottom } = box;
  const on = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return top >= 0 && bottom <= innerHeight && (on === shown || shown.contains(on));
}"""


def test_the_first_screen_has_the_three_doors(visit):
    page = visit(width=1366).go("index.html")
    page.set_viewport_size({"width": 1366, "height": 768})
    doors = page.locator(".doors > ul > li")
    assert doors.count() == 3
    assert all(door.evaluate(SEEN) for door in doors.all())


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_a_slider_and_its_verdict_fit_one_screen(visit, width, height):
    page = visit(width=width).go("index.html")
    page.set_viewport_size({"width": width, "height": height})
    slider = page.locator(".explorer input[name=n]").first
    verdict = page.locator(".explorer .ex-verdict").first
    page.locator(".explorer").first.evaluate(
        "(explorer) => explorer.scrollIntoView({ block: 'start', behavior: 'instant' })"
    )
    assert slider.evaluate(SEEN)
    assert verdict.evaluate(SEEN)
    said = verdict.inner_text()
    slider.press("Home")
    page.wait_for_function("(said) => document.querySelector('.ex-verdict').innerText !== said", arg=said)
    assert verdict.evaluate(SEEN)
