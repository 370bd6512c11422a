"""Heavy pictures wait behind the one that is seen: never seen before they are asked for, and then at once."""

PAGE, EXPLORER = "chapters/jax.html", '.explorer[data-explorer="jax.buckets"]'
WAITING = "(root) => root.querySelectorAll('.ex-spare').length"
MARK = "(root) => { window.waited = [...root.querySelectorAll('.ex-spare')]; }"
HIDDEN = """(root) => [...root.querySelectorAll('.ex-spare')]
  .map((one) => [getComputedStyle(one).contentVisibility, one.offsetHeight])"""
SEEN = ".ex-figure:not(.ex-spare)"


def waiting(page, root, fewest):
    """Move the slider until so many pictures wait: a busy machine makes none ahead until it is quick."""
    slider = root.locator("input[type=range]").first
    for press in range(200):
        if root.evaluate(WAITING) >= fewest:
            return
        slider.press(("ArrowRight", "ArrowLeft")[press % 2])
        page.wait_for_timeout(300)
    raise AssertionError(f"fewer than {fewest} pictures wait")


def test_pictures_that_wait_are_uncovered_and_forgotten_when_another_control_is_moved(visit):
    visited = visit()
    page = visited.go(PAGE)
    root = page.locator(EXPLORER)
    slider = root.locator("input[type=range]").first
    slider.focus()
    visited.wake()
    waiting(page, root, 5)  # of six positions
    root.evaluate(MARK)
    before = root.evaluate("(root) => root.offsetHeight")
    slider.press("ArrowRight")
    page.wait_for_function(
        f"(root) => waited.includes(root.querySelector('{SEEN}'))", arg=root.element_handle()
    )
    assert root.locator(SEEN).count() == 1
    assert root.locator(SEEN).evaluate("(one) => one.querySelector('svg').getClientRects().length")
    assert root.evaluate("(root) => root.offsetHeight") >= before
    assert visited.console == []  # but for what is asked of the hidden below
    for medium in ("screen", "print"):
        page.emulate_media(media=medium)
        assert set(map(tuple, root.evaluate(HIDDEN))) == {("hidden", 0)}
    page.emulate_media(media="screen")
    root.locator("input[type=range]").nth(1).press("ArrowRight")
    page.wait_for_function(
        "(root) => waited.filter((one) => root.contains(one)).length <= 1", arg=root.element_handle()
    )
    waiting(page, root, 5)
