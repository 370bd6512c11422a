"""A way that was chosen on the cover is marked there, in the contents of every page, and after a return."""

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


def test_what_the_browser_kept_of_something_else_is_not_believed(page):
    page.evaluate("localStorage.setItem('scalingbook.path', '{\"name\": 3}')")
    page.reload()
    assert marked(page) == []
