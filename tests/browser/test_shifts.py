"""Does a page hold still while it loads? What a reader has begun to read stays where it is."""

import pytest

LIMIT = 0.05  # of the window, moved by as much of it: half of what browsers call good
SHIFTS = """globalThis.shifts = [];
new PerformanceObserver((seen) => {
  for (const { value, sources } of seen.getEntries()) {
    const names = sources.map(({ node }) => `${node?.nodeName}.${node?.className ?? ""}`);
    shifts.push([value, names.join(" ")]);
  }
}).observe({ type: "layout-shift", buffered: true });"""
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def moved(visit):
    """What moved while a page loaded, or while its Python started."""

    def opened(path, width, height, *, live=False):
        visited = visit(width=width)
        page = visited.page
        page.set_viewport_size({"width": width, "height": height})
        if path != "index.html":  # whoever has opened the book has its fonts
            visited.go("index.html")
            page.evaluate("document.fonts.ready")
        page.add_init_script(SHIFTS)
        visited.go(path)
        page.evaluate("document.fonts.ready")
        if live:  # what moved before, the browser moved: it goes to a target once it has read a part of it
            page.evaluate(TWO_FRAMES)
            page.evaluate("shifts.length = 0")
            visited.wake()
        page.evaluate(TWO_FRAMES)
        return page.evaluate("shifts")

    return opened


def assert_still(shifts):
    assert sum(value for value, _ in shifts) <= LIMIT, shifts


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
@pytest.mark.parametrize(
    "address",
    [
        "index.html",
        "chapters/rooflines.html",
        "solutions/rooflines.html",
        "glossary.html#term-Roofline",
        "chips.html",
        "workbench.html",
    ],
)
def test_a_page_holds_still_while_it_loads(moved, address, size):
    assert_still(moved(address, *size))


@pytest.mark.smoke
@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
def test_a_chapter_opened_at_its_exercises_holds_still_when_python_starts(moved, size):
    assert_still(moved("chapters/rooflines.html#exercises", *size, live=True))
