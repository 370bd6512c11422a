"""A page by keyboard alone, in forced colors, and with scripts off: nothing is lost but what needs them."""

from itertools import pairwise

import pytest

PAGE = "chapters/rooflines.html"
FOCUSED = """() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  return document.activeElement === document.body || seen ? '' : document.activeElement.outerHTML;
}"""
BEFORE = "(box, pseudo) => getComputedStyle(box, '::before').content"


@pytest.mark.parametrize("forced", [None, "active"])
def test_all_that_has_the_focus_shows_it(visit, forced):
    page = visit(forced_colors=forced).go(PAGE)
    hidden = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        hidden.add(page.evaluate(FOCUSED))
    assert hidden == {""}


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
