"""Every page of the built site in a real browser. `make site` first; SITE may name another built site."""

import contextlib
import functools
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser tests need playwright")
from benchmarks.scripts import ASLEEP
from tools.pages import every
from web import browser as chromium
from web import serve, vendor
from web import site as builder

SITE = Path(os.environ.get("SITE", vendor.ROOT / "_build" / "html"))
PATIENCE_MS = 180_000  # then a test gives up; two cores may be busy with much else
DEEPER = {f"{page}.html" for page in every() if page.deeper}
SKIPPED = {"genindex.html"}  # not written by the book


@functools.cache
def built():
    """The site, built where a plain `pytest` finds none."""
    if not {"SITE", "PYTEST_XDIST_WORKER"} & set(os.environ) and not SITE.is_dir():
        with contextlib.suppress(SystemExit):
            builder.build()
    return SITE


def pages(site=None):
    """Every page of the book, by its path."""
    site = site or built()
    found = (p.relative_to(site).as_posix() for p in site.rglob("*.html"))
    return sorted(name for name in found if name not in SKIPPED and not name.startswith(("_", "embed/")))


def with_text(*needles):
    """The pages that hold one of these texts."""
    return [name for name in pages() if any(n in (SITE / name).read_text(encoding="utf-8") for n in needles)]


def pytest_collection_modifyitems(items):
    """Start with the test that takes minutes, so that no worker is left with it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/browser/test_pyodide_core.py"))


def pytest_generate_tests(metafunc):
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", pages() or ["(no site: run make site)"])
    if "live_path" in metafunc.fixturenames:
        found = with_text('data-explorer="', 'class="answer-box"')
        if metafunc.definition.get_closest_marker("chapters_only"):  # what every explorer does alike
            found = [name for name in found if name not in DEEPER]
        metafunc.parametrize("live_path", found or ["(no site: run make site)"], scope="module")


@dataclass
class Visit:
    """A page in the browser, and what went wrong on it."""

    page: object
    base: str
    console: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    foreign: list = field(default_factory=list)
    failed: list = field(default_factory=list)

    def watch(self):
        page = self.page
        page.on("console", lambda m: self.console.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.console.append(f"error: {e}"))
        page.on("request", lambda r: (self.asked if self._ours(r.url) else self.foreign).append(r.url))
        page.on("requestfailed", self._fail)
        page.on("response", lambda r: self.failed.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        return self

    def _fail(self, request):  # a page that is left stops what it loads
        if request.failure != "net::ERR_ABORTED":
            self.failed.append(request.url)

    def _ours(self, url):
        return url.startswith((self.base, "data:", "blob:", "about:"))

    def assert_clean(self):
        assert (self.console, self.foreign, self.failed) == ([], [], [])

    def go(self, path, **options):
        self.page.goto(f"{self.base}/{path}", wait_until="load", **options)
        return self.page

    def wake(self):
        """Touch the page's first control, and wait until Python answers."""
        self.page.wait_for_function("document.documentElement.dataset.live")
        self.page.evaluate(
            "document.querySelector('.explorer, .answer-box').dispatchEvent(new Event('pointerdown'))"
        )
        self.page.wait_for_function("['live', 'failed'].includes(document.documentElement.dataset.live)")
        assert self.page.evaluate("document.documentElement.dataset.live") == "live"


@pytest.fixture(scope="session")
def chrome():
    """Chromium, with no site."""
    if chromium.chromium_path() is None:
        pytest.skip("no Chromium here: tools/chromium.sh installs one")
    with chromium.chromium() as running:
        yield running


@pytest.fixture(scope="session")
def browser(chrome):
    assert pages(), f"no site in {SITE}: run make site"
    return chrome


@pytest.fixture(scope="session")
def base():
    with serve.running(SITE) as address:
        yield address


@pytest.fixture
def visit(browser, base):
    """Opens a fresh page with the context's options: `visit(width=390, dark=True, javascript=False)`."""
    contexts = []  # waiting for a function evaluates text, which the book's policy forbids

    def open_page(*, width=1280, dark=False, asleep=True, javascript=True, bypass_csp=True, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme="dark" if dark else "light",
            java_script_enabled=javascript, bypass_csp=bypass_csp, **options,
        )  # fmt: skip
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if asleep and javascript:
            context.add_init_script(ASLEEP)
        return Visit(context.new_page(), base).watch()

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def live(browser, base, live_path):
    """One page with explorers or answer boxes, live; its tests share it: Python takes seconds to start."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 1000}, accept_downloads=True, bypass_csp=True
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(ASLEEP)
    visit = Visit(context.new_page(), base).watch()
    visit.go(live_path)
    visit.wake()
    yield visit
    context.close()
