"""What every page owes its reader before anything is touched."""

import functools
import re
from pathlib import Path

import pytest

from benchmarks import weight
from tests.browser.conftest import SITE, pages
from web import vendor

LIMIT_BYTES = 250_000
LIVE_AT_ONCE = "workbench.html"

RAW_MATHS = """() => {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node; (node = walker.nextNode());) {
    if (node.parentElement.closest("pre, code, script, style, .katex, .explorer, textarea")) continue;
    if (/\\$[^$]+\\$|\\\\\\(|\\\\frac|\\\\text\\{/.test(node.data)) found.push(node.data.trim().slice(0, 80));
  }
  return found;
}"""

TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("article *")]
    .filter((e) => e.getBoundingClientRect().right > width + 1)
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120));
}"""


EMPTY_HEADS = """() => [...document.querySelectorAll("th")]
  .filter((head) => !head.textContent.trim()).map((head) => head.outerHTML)"""


def axe(page, *rules):
    """What axe finds, each with the element."""
    page.evaluate((vendor.package("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    # an element is told by its HTML: finding a selector for each of thousands is a third of a run
    options = {"resultTypes": ["violations"], "selectors": False}
    options["rules"] = {"empty-table-header": {"enabled": False}}  # it reads no MathML: see EMPTY_HEADS
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [
        (v["id"], node["html"][:160], node.get("failureSummary", "")[:300])
        for v in found for node in v["nodes"][:4]
    ]  # fmt: skip


# Each page is loaded three times, for all that its loading takes.


def test_a_page_is_light_asks_nobody_else_says_nothing_in_the_console_and_nothing_to_axe(visit, path):
    visited = visit(bypass_csp=False)
    page = visited.go(path)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.evaluate("document.fonts.ready")
    page.wait_for_load_state("networkidle")
    visited.assert_clean()
    parts = weight.of(SITE, visited.asked)
    if path == LIVE_AT_ONCE:  # what computes is not what is read: other pages fetch it when they are touched
        parts = {name: size for name, size in parts.items() if not name.startswith("_static/live/")}
    assert len(parts) > 3, "the page's files were not seen"
    assert sum(parts.values()) <= LIMIT_BYTES, parts
    assert page.locator("h1").count() == 1
    assert page.evaluate(RAW_MATHS) == []
    assert page.locator(".katex-error").count() == 0
    assert axe(page) == []
    assert page.evaluate(EMPTY_HEADS) == []


def test_a_page_fits_a_phone_and_is_legible_in_the_dark(visit, path):
    page = visit(width=390, dark=True).go(path)
    assert page.evaluate(TOO_WIDE) == []
    for narrow in page.locator(".explorer .ex-narrow").all():
        assert narrow.is_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert axe(page, "scrollable-region-focusable") == []
    page.set_viewport_size({"width": 1280, "height": 1000})  # with its margins and its wide pictures
    assert axe(page, "color-contrast") == []


def test_a_page_can_be_read_with_scripts_off(visit, path):
    page = visit(javascript=False).go(path)
    assert page.locator("h1").is_visible()
    for explorer in page.locator(".explorer").all():
        assert explorer.locator(".ex-figure svg:visible").count()
        assert explorer.locator(".ex-verdict").inner_text().strip()
    assert not any(box.is_visible() for box in page.locator(".js-only, .pst-js-only").all())


@pytest.mark.parametrize("name", pages() or ["(no site)"])
def test_every_link_inside_the_book_leads_somewhere(name):
    text = (SITE / name).read_text(encoding="utf-8")
    dead = []
    for link in sorted(set(re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (SITE / name).parent / file if file else SITE / name
        if not target.exists() or (anchor and anchor not in ids(target)):
            dead.append(link)
    assert dead == []


@functools.cache
def ids(target: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', target.read_text(encoding="utf-8")))
