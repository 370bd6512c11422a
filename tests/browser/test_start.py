"""How a page comes to life, how it fails to, and what a reader is told. On one page that has an explorer."""

import re
import shutil

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.controls import Slider
from tests.browser.conftest import SITE, with_text
from web import serve


@pytest.fixture(scope="module")
def chapter():
    found = with_text('data-explorer="')
    assert found, "no page has an explorer"
    return next((name for name in found if "rooflines" in name), found[0])


def without(folder, *missing):
    """The site in another folder, with some files gone; its server follows no symbolic links."""
    for file in (p for p in SITE.rglob("*") if p.is_file() and p.name not in missing):
        link = folder / file.relative_to(SITE)
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            link.hardlink_to(file)
        except OSError:  # on another disk
            shutil.copyfile(file, link)
    return folder


def first_slider(page):
    for root in page.query_selector_all(".explorer"):
        for name, control in explorers.find(root.get_attribute("data-explorer")).controls.items():
            if isinstance(control, Slider) and control.initial != control.stops[1]:
                return root, name, control
    raise AssertionError("no explorer of this page has a slider")


@pytest.mark.smoke
def test_an_address_shares_a_state_and_a_touch_before_live_is_not_lost(visit, chapter):
    visited = visit()
    page = visited.go(chapter)
    root, name, control = first_slider(page)
    before = root.query_selector(f'[name="{name}"]').get_attribute("aria-valuetext")
    root.query_selector(f'[name="{name}"]').evaluate(
        """(slider, value) => {
          slider.value = value;
          slider.dispatchEvent(new Event('input', { bubbles: true }));
        }""",
        control.stops[1],
    )
    page.wait_for_function("document.documentElement.dataset.live === 'live'")
    changed = """([root, name, before]) => !root.matches('[aria-busy]') &&
      root.querySelector(`[name='${name}']`).getAttribute('aria-valuetext') !== before"""
    page.wait_for_function(changed, arg=[root, name, before])
    page.wait_for_function("(name) => location.search.includes(name)", arg=f"-{name}=")
    verdict, address = root.query_selector(".ex-verdict").inner_text(), page.url
    key = root.get_attribute("data-explorer")
    page.goto(address)
    page.wait_for_function("document.documentElement.dataset.live === 'live'")
    again = page.query_selector(f'[data-explorer="{key}"]')
    page.wait_for_function(changed, arg=[again, name, before])
    assert float(again.query_selector(f'[name="{name}"]').input_value()) == control.stops[1]
    assert again.query_selector(".ex-verdict").inner_text() == verdict
    # a position, which an address has before Python has come, is read and written anew as a value
    page.goto(f"{address.partition('?')[0]}?{key}.{name}={control.stops[1]:g}")
    page.wait_for_function("(told) => location.href.includes(told)", arg=address.partition("?")[2])
    assert page.locator(f'[data-explorer="{key}"] .ex-verdict').first.inner_text() == verdict
    visited.assert_clean()


def test_an_idle_page_starts_by_itself_when_an_explorer_is_near(visit, chapter):
    visited = visit(asleep=False)
    visited.page.add_init_script("localStorage['scalingbook.asks'] = 'no';")  # the explorer is no answer yet
    page = visited.go(chapter)
    page.locator(".explorer").first.scroll_into_view_if_needed()
    page.wait_for_function("document.documentElement.dataset.live === 'live'")
    assert page.locator(".ex-status").first.inner_text() == "live"


@pytest.mark.parametrize("missing", ["pyodide.asm.wasm", "library.whl", "worker.mjs"])
def test_a_failed_start_says_so_and_keeps_the_view(visit, chapter, missing, tmp_path):
    with serve.running(without(tmp_path, missing)) as address:
        page = visit().page
        page.goto(f"{address}/{chapter}", wait_until="load")
        shown = page.locator(".ex-figure").first.inner_html()
        page.locator(".explorer input, .explorer select").first.focus()
        fails_aloud(page, shown)


def test_a_lost_network_is_tried_again(visit, chapter):
    page, gone = visit().page, {"live.mjs": 1, "worker.mjs": 1, "library.whl": 2}

    def lose(route):
        name = route.request.url.partition("?")[0].rpartition("/")[2]
        gone[name] -= 1
        route.abort() if gone[name] >= 0 else route.fallback()

    page.context.route(re.compile(r"/(live\.mjs|worker\.mjs|library\.whl)(\?|$)"), lose)
    page.goto(f"{visit().base}/{chapter}", wait_until="load")
    page.locator(".explorer input, .explorer select").first.focus()
    page.wait_for_selector("html[data-live=live]")
    assert max(gone.values()) < 0


def test_a_network_that_stays_away_is_said_and_tried_when_it_is_back(visit, chapter):
    page = visit().go(chapter)
    page.context.route(re.compile(r"/library\.whl$"), lambda route: route.abort())
    slider = page.locator(".explorer input[type=range]").first
    slider.press("End")
    fails_aloud(page, page.locator(".ex-figure").first.inner_html())
    assert "ex-pending" in page.locator(".explorer").first.get_attribute("class")
    page.context.unroute(re.compile(r"/library\.whl$"))
    page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_selector("html[data-live=live]")  # and what was touched meanwhile is shown
    page.wait_for_selector(".explorer:not(.ex-pending)")


def fails_aloud(page, shown):
    page.wait_for_function("document.documentElement.dataset.live === 'failed'")
    assert page.locator(".ex-status").first.inner_text().startswith("Not live:")
    assert page.locator(".ex-figure").first.inner_html() == shown


@pytest.mark.smoke
def test_a_page_opened_as_a_file_says_why_nothing_moves(visit, chapter):
    page = visit().page
    page.goto((SITE / chapter).as_uri(), wait_until="load")
    page.wait_for_function("document.querySelector('.explorer .ex-error').textContent.includes('file')")
    assert page.locator(".ex-figure svg:visible").count()


def test_the_color_mode_switches_and_is_kept(visit, chapter):
    page = visit().go(chapter)
    button = page.locator(".theme-switch-button").first
    button.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    button.click()
    assert page.evaluate("document.documentElement.dataset.mode") == "light"


def test_the_contents_open_on_a_phone(visit, chapter):
    page = visit(width=390).go(chapter)
    page.locator(".primary-toggle").click()
    assert page.locator("#pst-primary-sidebar-modal a.reference").first.is_visible()
    page.keyboard.press("Escape")
    page.wait_for_function("document.activeElement.classList.contains('primary-toggle')")


@pytest.mark.smoke
def test_a_term_shows_its_definition_to_pointer_and_keyboard(visit):
    pages = with_text('class="reference internal term"')
    assert pages, "no page links to the glossary"
    page = visit().go(pages[0])
    term = page.locator("a.term[aria-describedby]").first
    meaning = page.evaluate(
        "(id) => document.getElementById(id).textContent", term.get_attribute("aria-describedby")
    )
    term.scroll_into_view_if_needed()
    term.hover()
    page.wait_for_selector(".term-card:not([hidden])")
    assert "".join(page.locator(".term-card").text_content().split()) == "".join(meaning.split())
    page.keyboard.press("Escape")
    assert page.locator(".term-card").is_hidden()


def test_the_glossarys_box_keeps_what_begins_with_the_word(visit):
    page = visit().go("glossary.html")
    heads = page.locator("dl.glossary dt:visible")
    every = heads.count()
    page.fill(".glossary-filter input", "Ring")
    assert [head.split("#")[0] for head in heads.all_inner_texts()] == ["ring", "ring attention"]
    page.fill(".glossary-filter input", "")
    assert heads.count() == every > 280
