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


COLOURS = ("color-contrast", "link-in-text-block")
# What axe says of a text's colours hangs on its look: its own, its letters' size and what lies behind it. For
# these rules axe looks up what stands at each point of a page, half of a run; so it is asked of a few texts
# of every look, first, middle and last, and all else is taken away. A page's looks are counted before.
LOOKS = """() => {
  const grounds = new Map(), looks = new Map();
  const ground = (one) => {
    if (one && !grounds.has(one)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(one);
      const own = [backgroundColor, backgroundImage, opacity, filter].join(' ');
      const plain = own === 'rgba(0, 0, 0, 0) none 1 none';
      grounds.set(one, ground(one.parentElement) + (plain ? '' : `/${own}`));
    }
    return grounds.get(one) ?? '';
  };
  const says = (one) => [...one.childNodes].some((node) => node.nodeName === '#text' && node.data.trim());
  for (const one of document.body.querySelectorAll('*')) {
    if (!says(one) && !one.matches('input, select, textarea')) continue;
    if (!one.checkVisibility({ visibilityProperty: true }) || !one.getClientRects().length) continue;
    const { color, fontSize, fontWeight, textShadow, textDecorationLine } = getComputedStyle(one);
    const around = one.parentElement, kind = [one, around].map((node) => node.getAttribute('class'));
    const look = [one.tagName, kind, color, fontSize, fontWeight, textShadow, textDecorationLine, ground(one),
      getComputedStyle(around).color, says(around)].join();
    if (!looks.has(look)) looks.set(look, []);
    looks.get(look).push(one);
  }
  return looks;
}"""
ONE_OF_EACH = f"""() => {{
  const looks = ({LOOKS})();
  const kept = [...looks.values()].flatMap((same) => [same[0], same[same.length >> 1], same.at(-1)]);
  const around = new Set();
  for (const one of kept) for (let node = one; node; node = node.parentElement) around.add(node);
  for (const one of kept.map((node) => node.closest('.katex') ?? node))
    for (const node of one.querySelectorAll('*')) around.add(node);
  for (const one of document.body.querySelectorAll('*')) if (!around.has(one)) one.remove();
  const after = ({LOOKS})();
  return [...looks.keys()].filter((look) => !after.has(look));
}}"""


@functools.cache
def script():
    return (vendor.package("axe-core") / "axe.min.js").read_text(encoding="utf-8")


def axe(page, *rules, but=()):
    """What axe finds, each with the element."""
    # an element is told by its HTML: finding a selector for each of thousands is a third of a run
    options = {"resultTypes": ["violations"], "selectors": False, "preload": False}
    left_out = ("empty-table-header", *but)  # it reads no MathML: see EMPTY_HEADS
    options["rules"] = {rule: {"enabled": False} for rule in left_out}
    if rules:
        options = {**options, "rules": {}, "runOnly": {"type": "rule", "values": list(rules)}}
    found = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [
        (v["id"], node["html"][:160], node.get("failureSummary", "")[:300])
        for v in found for node in v["nodes"][:4]
    ]  # fmt: skip


def recolour(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.wait_for_selector(f"html[data-theme={scheme}]", state="attached")


# A page is loaded once, in the dark on a phone, for all that its loading takes; then it is wide and light.


def test_a_page_is_light_and_whole_on_any_screen_in_any_colours_and_says_nothing_to_console_or_axe(
    visit, path
):
    visited = visit(width=390, dark=True, bypass_csp=False)
    page = visited.go(path)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(TOO_WIDE) == []
    narrow = page.locator(".explorer .ex-narrow")
    assert narrow.and_(page.locator(":visible")).count() == narrow.count()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.evaluate("document.fonts.ready")
    page.evaluate(script())
    assert axe(page, "scrollable-region-focusable") == []
    page.wait_for_load_state("networkidle")

    page.set_viewport_size({"width": 1280, "height": 1000})  # with its margins and its wide pictures
    recolour(page, "light")
    assert axe(page, but=COLOURS) == []
    assert page.evaluate(EMPTY_HEADS) == []
    assert page.locator("h1").count() == 1
    assert page.evaluate(RAW_MATHS) == []
    assert page.locator(".katex-error").count() == 0
    visited.assert_clean()
    parts = weight.of(SITE, visited.asked)
    if path == LIVE_AT_ONCE:  # what computes is not what is read: other pages fetch it when they are touched
        parts = {name: size for name, size in parts.items() if not name.startswith("_static/live/")}
    assert len(parts) > 3, "the page's files were not seen"
    assert sum(parts.values()) <= LIMIT_BYTES, parts

    assert page.evaluate(ONE_OF_EACH) == [], "what is left has not all looks"
    for scheme in ("light", "dark"):
        recolour(page, scheme)
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
