"""What every page owes its reader before anything is touched."""

import functools
import re
from pathlib import Path

import pytest

from benchmarks import weight
from tests.browser.conftest import DEEPER, SITE, pages
from web import vendor

LIMIT_BYTES = 250_000

RAW_MATHS = """() => {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node; (node = walker.nextNode());) {
    if (node.parentElement.closest("pre, code, script, style, .katex, textarea, .explorer, .workbench"))
      continue;
    const text = node.data.replace(/\\$\\d[\\d.,]*(?!\\w)/g, "");  // prices
    if (/\\$[^$]+\\$|\\\\\\(|\\\\frac|\\\\text\\{/.test(text)) found.push(node.data.trim().slice(0, 80));
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


CUT_CAPTIONS = """() => [...document.querySelectorAll("article caption")]
  .filter((c) => c.checkVisibility())
  .filter((c) => c.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map((c) => c.textContent)"""


EMPTY_HEADS = """() => [...document.querySelectorAll("th")]
  .filter((head) => !head.textContent.trim()).map((head) => head.outerHTML)"""


COLOURS = ("color-contrast", "link-in-text-block")
# These, and solutions, are made of the same parts as the other pages, whose dark colours are looked at, too.


@functools.cache
def script():
    return (vendor.package("axe-core") / "axe.min.js").read_text(encoding="utf-8")


def axe(page, *rules):
    """What axe finds, each with the element."""
    # an element is told by its HTML: finding a selector for each of thousands is a third of a run
    options = {"resultTypes": ["violations"], "selectors": False, "preload": False}
    options["rules"] = {"empty-table-header": {"enabled": False}}  # it reads no MathML: see EMPTY_HEADS
    if rules:
        options = {**options, "rules": {}, "runOnly": {"type": "rule", "values": list(rules)}}
    # KaTeX's visual copies of formulas, half of a page's elements, are hidden from screen readers and have
    # the color of the text around them.
    looked = "{ exclude: ['.katex-html'] }"
    found = page.evaluate(f"(options) => axe.run({looked}, options)", options)["violations"]
    return [
        (v["id"], node["html"][:160], node.get("failureSummary", "")[:300])
        for v in found for node in v["nodes"][:4]
    ]  # fmt: skip


def recolour(page, scheme):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour halfway
    page.wait_for_selector(f"html[data-theme={scheme}]", state="attached")


# A page is loaded once, in the dark on a phone, for all that its loading takes; then it is wide and light.


def test_a_page_is_light_and_whole_on_any_screen_in_any_colours_and_says_nothing_to_console_or_axe(
    visit, path
):
    visited = visit(width=390, dark=True, bypass_csp=False)
    page = visited.go(path)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(CUT_CAPTIONS) == []
    narrow = page.locator(".explorer .ex-narrow")
    assert narrow.and_(page.locator(":visible")).count() == narrow.count()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.evaluate("document.fonts.ready")
    page.evaluate(script())
    assert axe(page, "scrollable-region-focusable") == []
    page.wait_for_load_state("networkidle")

    page.set_viewport_size({"width": 1280, "height": 1000})  # with its margins and its wide pictures
    recolour(page, "light")
    assert axe(page) == []
    assert page.evaluate(EMPTY_HEADS) == []
    assert page.locator("h1").count() == 1
    assert page.evaluate(RAW_MATHS) == []
    assert page.locator(".katex-error").count() == 0
    visited.assert_clean()
    parts = weight.of(SITE, visited.asked)
    assert len(parts) > 3, "the page's files were not seen"
    assert sum(parts.values()) <= LIMIT_BYTES, parts

    if path not in DEEPER and not path.startswith("solutions/"):
        recolour(page, "dark")
        assert axe(page, *COLOURS) == []


@pytest.fixture(scope="module")
def unscripted(browser):
    """A tab with scripts off, in which page after page is opened: none can leave anything behind."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


def test_a_page_can_be_read_with_scripts_off(unscripted, base, path):
    page = unscripted
    page.goto(f"{base}/{path}", wait_until="load")
    assert page.locator("h1").is_visible()
    explorers = page.locator(".explorer").count()
    assert page.locator(".explorer:has(.ex-figure svg:visible)").count() == explorers
    verdicts = page.locator(".explorer .ex-verdict").all_inner_texts()
    assert len([said for said in verdicts if said.strip()]) == explorers
    assert page.locator(".js-only:visible, .pst-js-only:visible").count() == 0


@pytest.mark.smoke
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
