"""What an explorer shows, and when: labels at the first touch, a dim picture until Python answers."""

import re

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.slider import Slider
from scalingbook_lib.words import joined_units
from web.extension import labels


def test_the_words_of_every_position_stand_in_the_page_or_are_its_number():
    sliders = [c for e in explorers.catalog().values() for c in e.controls.values() if isinstance(c, Slider)]
    assert len(sliders) > 300
    for slider in sliders:
        first, last, step = slider.stops
        if words := labels.table(slider):
            assert not any(labels.BETWEEN in word for word in words)
            assert words[round((slider.initial - first) / step)] == joined_units(slider.text(slider.start))
        else:
            assert (step, slider.text(slider.value(last))) == (1, f"{last:,}")


@pytest.mark.smoke
def test_a_first_touch_moves_the_label_and_dims_the_picture_until_it_is_painted(visit):
    visited = visit(width=1366)
    page = visited.page
    page.context.route(re.compile(r"/library\.whl$"), lambda route: route.abort())  # Python never comes
    visited.go("chapters/rooflines.html")
    root = page.locator(".explorer").first
    slider = root.locator("input[type=range]").first
    name = slider.get_attribute("name")
    control = explorers.find(root.get_attribute("data-explorer")).controls[name]
    slider.press("End")
    said = root.locator(f"output[for='{slider.get_attribute('id')}']")
    assert (
        said.inner_text()
        == joined_units(control.text(control.high))
        == slider.get_attribute("aria-valuetext")
    )
    assert "ex-pending" in root.get_attribute("class")


CONTROLS = ".ex-buttons > :not(.ex-status)"
PLACES = f"(root) => [...root.querySelectorAll('{CONTROLS}')].map((one) => one.getBoundingClientRect().x)"


@pytest.mark.parametrize("width", [390, 1366])
def test_a_word_on_python_moves_no_button(visit, width):
    page = visit(width=width).go("chapters/rooflines.html")
    page.wait_for_function("document.documentElement.dataset.live")
    root = page.locator(".explorer").first
    before, high = root.evaluate(PLACES), root.evaluate("(root) => root.offsetHeight")
    root.locator(".ex-status").evaluate("(status) => { status.textContent = 'starting…'; }")
    assert root.evaluate(PLACES) == before
    assert root.evaluate("(root) => root.offsetHeight") == high


SCROLL = """(root, share) => {  // so much of it is above the middle of the window
  const { top, height } = root.getBoundingClientRect();
  scrollTo({ behavior: 'instant', top: scrollY + top + share * height - innerHeight / 2 });
}"""
COVERS = """(root) => {
  const box = (part) => root.querySelector(part).getBoundingClientRect();
  const verdict = box('.ex-verdict'), figure = box('.ex-figure');
  return Math.min(verdict.bottom, figure.bottom) - Math.max(verdict.top, figure.top);
}"""


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1280, 720), (390, 844)])
def test_a_verdict_never_covers_its_picture(visit, base, width, height):
    page = visit(width=width).page
    page.set_viewport_size({"width": width, "height": height})
    for path in ("index.html", "chapters/training.html", "chapters/inference.html"):
        page.goto(f"{base}/{path}", wait_until="load")
        page.wait_for_function("document.documentElement.dataset.live")
        for root in page.locator(".explorer").all():
            for share in (0, 0.3, 0.6, 1):
                root.evaluate(SCROLL, share)
                assert root.evaluate(COVERS) <= 1, (path, root.get_attribute("id"), share)
