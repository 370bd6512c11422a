"""A slide fits a screen and a printed page."""

import pytest

from web import slides

CUT = """() => [...document.querySelectorAll('.slide')].flatMap((slide, at) => {
  const frame = slide.getBoundingClientRect();
  const parts = [...slide.querySelectorAll('h1, h2, p, dt, dd, li, footer, svg, figcaption')];
  const outside = parts.filter((one) => {
    const { width, top, bottom, right } = one.getBoundingClientRect();
    return width && (top < frame.top - 1 || bottom > frame.bottom + 1 || right > frame.right + 1);
  });
  return outside.map((one) => `slide ${at}: ${one.tagName} ${one.textContent.slice(0, 40)}`);
})"""
SMALL = """() => [...document.querySelectorAll('.slide svg text')]
  .filter((one) => one.getClientRects().length)
  .filter((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a < 9.5)
  .map((one) => one.textContent)"""


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    return slides.write(tmp_path_factory.mktemp("slides"))


@pytest.mark.parametrize("media", ["screen", "print"])
def test_no_slide_is_cut_and_every_label_is_legible(chrome, weeks, media):
    context = chrome.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.emulate_media(media=media)
    console = []
    page.on("console", lambda message: console.append(message.text))
    for path in weeks:
        page.goto(path.as_uri())
        assert page.locator(".slide").count() > 10
        assert page.evaluate(CUT) == [], path.name
        assert page.evaluate(SMALL) == [], path.name
    assert console == []
    context.close()
