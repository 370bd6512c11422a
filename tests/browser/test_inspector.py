"""The page that inspects programs reads a file, a pasted text, and says what is wrong with another text."""

import gzip

import pytest

from tests.browser.conftest import PATIENCE_MS
from tools.environment import ROOT

FAULTY = ROOT / "tests" / "core" / "inspection" / "programs" / "padded-matmuls.faulty.hlo.gz"


@pytest.fixture(scope="module")
def inspector(browser, base):
    context = browser.new_context(bypass_csp=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{base}/inspect.html")
    page.wait_for_selector(".inspector button[type=submit]:enabled")
    yield page
    context.close()


def settle(page, act):
    before = page.get_attribute(".inspector", "data-round")
    act()
    page.wait_for_function(
        "(n) => (document.querySelector('.inspector').dataset.round ?? null) !== n", arg=before
    )


@pytest.mark.smoke
def test_the_example_stands_on_the_page_and_a_dropped_file_replaces_it(inspector):
    assert "replicated over the axis data" in inspector.inner_text(".inspector-shown")
    settle(inspector, lambda: inspector.set_input_files("#inspector-file", str(FAULTY)))
    assert "columns from 129 to 256" in inspector.inner_text(".inspector-shown")
    assert "nothing was sent" in inspector.inner_text(".inspector-status")
    link = inspector.locator(".inspector-shown a[href*='tpus-shapes-columns']").first.get_attribute("href")
    assert inspector.request.get(inspector.url.replace("inspect.html", link or "")).ok


def test_a_pasted_text_is_read_for_another_machine_and_a_wrong_one_is_explained(inspector):
    text = gzip.decompress(FAULTY.read_bytes()).decode()
    inspector.fill("#inspector-text", text)
    inspector.fill("#inspector-machine", "v6e:4x4")
    settle(inspector, lambda: inspector.click(".inspector button[type=submit]"))
    assert "TPU v6e 4x4" in inspector.inner_text(".inspector-shown")
    inspector.fill("#inspector-text", "nothing in particular")
    settle(inspector, lambda: inspector.click(".inspector button[type=submit]"))
    assert "Not inspected" in inspector.inner_text(".inspector-status")
    assert "no entry computation" in inspector.inner_text(".inspector-status")


AFTER_NUMBERS = """() => [...new Set([...document.querySelectorAll('.inspected :is(td, th)')]
  .map((cell) => getComputedStyle(cell, '::after').content))]"""
CUT_FIGURES = """() => [...document.querySelectorAll('.inspected figure')]
  .filter((figure) => figure.scrollWidth > figure.clientWidth).length"""


def test_the_report_can_be_read_on_a_phone(visit):
    page = visit(width=390).go("inspect.html")
    assert page.locator(".inspected figure").count() > 2
    assert page.evaluate(CUT_FIGURES) == 0
    assert page.evaluate(AFTER_NUMBERS) == ["none"]
