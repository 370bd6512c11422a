"""Without a network: what was opened is read, computes and is searched; the whole book is kept at a press."""

import contextlib
import os
import re
import shutil

import pytest

from tests.browser.conftest import SITE
from web import offline, serve

PAGE, OTHER = "deep/chapters/rooflines.html", "deep/chapters/sharding.html"
KEPT = """async (names) => {
  const kept = names.map((name) => caches.match(new URL(name, location.href), { ignoreSearch: true }));
  return (await Promise.all(kept)).every(Boolean);
}"""
STORES = "async () => (await caches.keys()).join()"
FULL = "Cache.prototype.put = async () => { throw new DOMException('full', 'QuotaExceededError'); };"


def waited(page, asked, told=True, argument=None):
    """The page's promise is awaited until it tells this: waiting for a function awaits none."""
    for _ in range(300):
        with contextlib.suppress(Exception):  # a page that is just being left
            if page.evaluate(asked, argument) == told:
                return
        page.wait_for_timeout(100)
    raise AssertionError((asked, argument, page.evaluate(asked, argument)))


@pytest.fixture
def root(tmp_path):
    """A folder that has the book in a folder, as a host of many has."""
    shutil.copytree(
        SITE, tmp_path / "deep", copy_function=os.link, ignore=shutil.ignore_patterns("notebooks")
    )
    return tmp_path


def rebuilt(book, page):
    """The book with another title on a page."""
    for name in (page, offline.WORKER, offline.LIST):  # or the links' other ends would change
        text = (book / name).read_text(encoding="utf-8")
        (book / name).unlink()
        (book / name).write_text(re.sub(r"<h1>.*?<", "<h1>Anew<", text), encoding="utf-8")
    offline.write(book)


@pytest.fixture
def reader(visit):
    """A page in a context that saves no data."""
    return visit(asleep=False).page


def test_what_was_opened_is_there_without_a_network_and_the_rest_says_that_it_is_not(visit, root):
    visited = visit(asleep=False)
    page = visited.page
    page.add_init_script("localStorage['scalingbook.asks'] = 'no'")
    with serve.running(root) as address:
        page.goto(f"{address}/{PAGE}", wait_until="load")
        visited.wake()
        waited(
            page, KEPT, argument=[page.url, "../_static/live/library.whl", "../_static/live/pyodide.asm.wasm"]
        )
    assert page.reload().from_service_worker
    assert page.locator(".katex").first.is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.katex')).fontFamily").startswith("KaTeX")
    visited.wake()
    slider = page.locator(".explorer input[type=range]").first
    told = page.locator(".ex-verdict").first.inner_text()
    slider.press("End")
    page.wait_for_function("(told) => document.querySelector('.ex-verdict').innerText !== told", arg=told)
    page.locator(".search-button__button:visible").first.click()
    page.locator("#search-dialog input").press_sequentially("ridge point")
    page.wait_for_selector(".found a")
    page.goto(f"{address}/{OTHER}")
    assert page.locator("h1").inner_text() == "No network"
    page.locator("article").get_by_role("link", name="the cover").click()
    page.wait_for_url(f"{address}/deep/index.html")
    assert page.locator(".save-book").is_visible()


def test_the_whole_book_is_kept_at_a_press_and_a_new_build_takes_its_place(reader, root):
    with serve.running(root) as address:
        reader.goto(f"{address}/deep/index.html")
        button = reader.get_by_role("button", name="Save the whole book")
        button.wait_for()
        size = sum(offline.files(root / "deep").values())
        assert 0 < int(re.search(r"\((\d+) MB\)", button.inner_text())[1]) <= size / 1e6 + 1
        button.click()
        reader.get_by_text("The whole book is kept").wait_for()
        before = reader.evaluate(STORES)
        rebuilt(root / "deep", OTHER.removeprefix("deep/"))
        reader.reload()
        waited(reader, f"({STORES})().then((now) => now !== {before!r} && !now.includes(','))")
    reader.goto(f"{address}/{OTHER}")
    assert reader.locator("h1").inner_text().startswith("Anew")


def test_storage_that_is_refused_is_said(visit, base):
    page = visit(asleep=False).page
    page.add_init_script(FULL)
    page.goto(f"{base}/index.html")
    page.get_by_role("button", name="Save the whole book").click()
    page.get_by_text("This browser has no storage left for").wait_for()


def test_a_reader_who_saves_data_fetches_nothing_ahead(visit, base):
    page = visit().go("index.html")
    page.get_by_role("button", name="Save the whole book").wait_for()
    assert page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0
