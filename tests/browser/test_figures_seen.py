"""Every figure as a reader sees it: light, dark, on a phone, on paper; no text clipped, none on another."""

import pytest

from scalingbook_book.chapters import figures
from web import vendor

STYLES = (vendor.HERE / "explorer.css").read_text(encoding="utf-8")
COLORS = {"light": ("#fff", "#222"), "dark": ("#121212", "#ced6dd")}
FAULTS = """() => {
  const said = [];
  for (const drawing of document.querySelectorAll('.fig svg')) {
    if (!drawing.checkVisibility()) continue;
    const name = drawing.closest('.fig').id, edge = drawing.getBoundingClientRect();
    const texts = [...drawing.querySelectorAll('text')].filter((t) => t.textContent.trim());
    const boxes = texts.map((t) => [t.textContent, t.getBoundingClientRect()]);
    if (edge.width < 300 || edge.right > innerWidth + 1) said.push(`${name}: ${edge.width} wide`);
    boxes.forEach(([text, a], i) => {
      const beside = a.left < edge.left - 2 || a.right > edge.right + 2;
      if (beside || a.top < edge.top - 3 || a.bottom > edge.bottom + 3)
        said.push(`${name}: "${text}" is clipped`);
      for (const [other, b] of boxes.slice(i + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const meet = across > 1 && down > 0.3 * Math.min(a.height, b.height);
        if (meet) said.push(`${name}: "${text}" lies on "${other}"`);
      }
    });
  }
  return said;
}"""


def sheet(theme):
    """A page of figures alone, with the site's stylesheet and no script."""
    ground, ink = COLORS[theme]
    body = "".join(figure.html() for figure in figures.catalog().values())
    page = f"body {{ margin: 16px; background: {ground}; color: {ink}; font-family: sans-serif }}"
    return f'<html data-theme="{theme}"><style>{STYLES}{page}</style><body>{body}</body></html>'


@pytest.mark.parametrize("medium", ["screen", "print"])
@pytest.mark.parametrize("width", [760, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_can_be_read(chrome, theme, width, medium):
    page = chrome.new_page(viewport={"width": width, "height": 900})
    page.emulate_media(media=medium)
    page.set_content(sheet(theme))
    assert page.locator(".fig").count() == len(figures.catalog())
    assert page.evaluate(FAULTS) == []
    page.close()


def test_a_clipped_word_would_be_found(chrome):
    page = chrome.new_page(viewport={"width": 760, "height": 900})
    page.set_content(sheet("light"))
    page.evaluate("document.querySelector('.fig text').setAttribute('x', '9999')")
    assert any("is clipped" in fault for fault in page.evaluate(FAULTS))
    page.close()
