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
    """What moved while a page loaded, and while its Python started where it has some."""

    def opened(path, width, height, *, live=False):
        visited = visit(width=width)
        page = visited.page
        page.set_viewport_size({"width": width, "height": height})
        page.add_init_script(SHIFTS)
        visited.go(path)
        page.evaluate("document.fonts.ready")
        if live:
            visited.wake()
        page.evaluate(TWO_FRAMES)
        return page.evaluate("shifts")

    return opened


def assert_still(shifts):
    assert sum(value for value, _ in shifts) <= LIMIT, shifts


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "chapters/rooflines.html",
        "solutions/rooflines.html",
        "glossary.html#term-Roofline",
        "chips.html",
        "workbench.html",
    ],
)
def test_a_page_holds_still_while_it_loads(moved, path, size):
    assert_still(moved(path, *size))


@pytest.mark.smoke
@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
def test_a_chapter_opened_at_its_exercises_holds_still_until_it_is_live(moved, size):
    assert_still(moved("chapters/rooflines.html#exercises", *size, live=True))
