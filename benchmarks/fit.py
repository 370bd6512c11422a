"""Check that every explorer fits on a screen: `python -m benchmarks.fit` tries all of the site's on two
screens.

An explorer fits if each of its controls can be in view together with the whole figure and the whole verdict,
below the page's sticky header. Prints the explorers that do not fit.
"""

from pathlib import Path

from web import browser as chromium
from web import serve, vendor

SITE = vendor.ROOT / "_build" / "html"
SCREENS = {"laptop": (1366, 768), "phone": (390, 844)}
SHOWN = "localStorage['scalingbook.asks'] = 'no';"  # also shows the text that follows a Predict box
# Whether a control, the figure and the verdict can be in view at once, at some scroll position of the page.
_MISSED = """() => [...document.querySelectorAll('.explorer')].map((root) => {
  const head = document.querySelector('.bd-header-article')?.getBoundingClientRect().height ?? 0;
  const parts = ['.ex-figure', '.ex-verdict'].map((name) => root.querySelector(name));
  const seen = (part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return top >= head - 1 && bottom <= innerHeight + 1;
  };
  const places = (control) => [
    () => root.scrollIntoView({ block: 'start' }), () => root.scrollIntoView({ block: 'end' }),
    ...['start', 'center', 'end'].map((block) => () => control.scrollIntoView({ block })),
  ];
  const missed = [...root.querySelectorAll('.ex-control')].filter((control) => !places(control).some((go) => {
    go();
    return [control, ...parts].every(seen);
  }));
  const height = (part) => Math.round(part.getBoundingClientRect().height);
  const [figure] = parts.map(height), key = root.dataset.explorer;
  return { key, missed: missed.length, height: height(root), figure };
})"""


def misses(page) -> list[dict]:
    """Return what parts of an open page's explorers do not fit in view, and their heights."""
    return page.evaluate(_MISSED)


def main(site: Path = SITE) -> None:
    """Measure every page on both screens."""
    names = [p for p in sorted(site.rglob("*.html")) if 'data-explorer="' in p.read_text(encoding="utf-8")]
    with chromium.chromium() as browser, serve.running(site) as base:
        for screen, (width, height) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, bypass_csp=True)
            page.add_init_script(SHOWN)
            found = []
            for name in names:
                page.goto(f"{base}/{name.relative_to(site).as_posix()}", wait_until="load")
                page.wait_for_selector("html[data-live]", state="attached")
                found += misses(page)
            bad = [one for one in found if one["missed"]]
            print(f"{screen}, {width} x {height}: {len(bad)} of {len(found)} explorers do not fit")
            for one in sorted(bad, key=lambda one: one["height"]):
                print(
                    f"  {one['key']}: {one['missed']} controls; {one['height']} px, figure {one['figure']} px"
                )
            page.close()


if __name__ == "__main__":
    main()
