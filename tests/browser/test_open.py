"""A page by keyboard alone, in forced colors, and with scripts off: nothing is lost but what needs them."""

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
