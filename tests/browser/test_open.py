"""A page by keyboard alone, in forced colors, and with scripts off: nothing is lost but what needs them."""

from itertools import pairwise

import pytest

PAGE = "chapters/rooflines.html"
WATCH = """() => {
  globalThis.stops = [];
  addEventListener('focusin', ({ target }) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
    const kinds = ['right-next', 'answer-hint', 'ex-reset', 'term'], { classList, outerHTML } = target;
    stops.push({ hides: seen ? '' : outerHTML, kind: kinds.find((one) => classList.contains(one)) ?? '' });
  });
}"""
ENDED = "() => stops.some((stop) => stop.kind === 'right-next')"
MOST = 1500  # stops of a page
BEFORE = "(box, pseudo) => getComputedStyle(box, '::before').content"


@pytest.mark.parametrize("forced", [None, "active"])
def test_tab_leads_through_a_chapter_to_the_next_and_what_has_the_focus_shows_it(visit, forced):
    page = visit(forced_colors=forced).go(PAGE)
    page.evaluate(WATCH)
    for pressed in range(MOST):
        page.keyboard.press("Tab")
        if pressed % 20 == 0 and page.evaluate(ENDED):
            break
    stops = page.evaluate("stops")
    assert {stop["hides"] for stop in stops} == {""}
    assert {stop["kind"] for stop in stops} == {"", "right-next", "answer-hint", "ex-reset", "term"}
    page.locator("a.right-next").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/tpus.html")


CONTROLS = ".explorer .ex-control :is(input, select)"
LAST_LINE = """([before, next]) => {  // the window ends with the next stop
  scrollTo(0, next.getBoundingClientRect().bottom + scrollY - innerHeight);
  before.focus({ preventScroll: true });
}"""
BEHIND = """(focused) => {
  const { left, right, top, bottom } = focused.getBoundingClientRect();
  const on = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return document.activeElement === focused && on !== focused ? [focused.name, on?.className] : null;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_control_with_the_focus_stands_behind_nothing(visit, width):
    page = visit(width=width, reduced_motion="reduce").go(PAGE)
    page.set_viewport_size({"width": width, "height": 900})
    stops = page.locator(CONTROLS).element_handles()
    behind = []
    for before, focused in pairwise(stops):
        page.evaluate(LAST_LINE, [before, focused])
        page.keyboard.press("Tab")
        behind.append(focused.evaluate(BEHIND))
    assert len(behind) > 20
    assert [one for one in behind if one] == []


def test_with_scripts_off_controls_say_so_and_a_phone_finds_the_contents(visit):
    page = visit(width=390, javascript=False).go(PAGE)
    for selector in (".ex-controls", ".answer-box"):
        assert "Scripts are off" in page.locator(selector).first.evaluate(BEFORE)
    way = page.locator(".contents-below")
    assert way.is_visible()
    way.click()
    chapter = page.locator("#pst-primary-sidebar a[href$='sharding.html']").first
    box = chapter.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    chapter.click()
    page.wait_for_url("**/sharding.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
