"""Measure how long a reader waits: `python -m benchmarks.page` measures the built site in headless Chromium.

It measures the time from event to paint for every explorer (real key presses and real drags), the start of
Python compared with bare Pyodide, the weight of every page before any interaction, and requests to other
hosts. For comparison, the same run lets Observable Plot draw the same curves. Prints tables; --keep writes
results/page.json.
"""

import random
import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks import kept, scripts, weight
from web import browser as chromium
from web import live, serve, vendor

SITE = vendor.ROOT / "_build" / "html"
EVENTS = 100
# A moved slider should show within three frames at 60 Hz (most explorers take one or two), Python should
# answer sooner than Pyodide with its own library, and a page should load in a second at 2 Mbit/s.
LIMIT_MS, LIMIT_RATIO, LIMIT_BYTES = 50.0, 0.6, 250_000


def quantile(values: list[float], share: float) -> float:
    """Return the value that this fraction of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def pages(site: Path) -> list[str]:
    """Return every page of the book."""
    return sorted(
        p.relative_to(site).as_posix()
        for p in site.rglob("*.html")
        if p.stem not in ("search", "genindex", "index")
    )


def explorers(browser, base: str, site: Path) -> dict[str, dict[str, list[float]]]:
    """Return milliseconds from event to paint for every explorer with a slider, by keys and by drags."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in pages(site):
        if name.startswith("embed/") or not _has_explorer(site, name):  # embedded ones are in chapters too
            continue
        page = _open(browser, f"{base}/{name}")
        page.locator(".explorer input, .explorer select").first.focus()
        page.wait_for_function("document.documentElement.dataset.live === 'live'", timeout=120_000)
        for root in page.locator(".explorer").all():
            slider = root.locator("input[type=range]").first
            if slider.count():
                key = root.get_attribute("data-explorer")
                found[key] = {"keys": _keys(page, slider), "drag": _drag(page, slider)}
        page.context.close()
    return found


def _fresh(browser):
    """Return a page in a context of its own; waiting evaluates text, which the book's policy forbids."""
    return browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True).new_page()


def _open(browser, address: str):
    page = _fresh(browser)
    page.add_init_script(scripts.ASLEEP + scripts.RECORDER)
    page.goto(address, wait_until="load")
    page.wait_for_function("document.documentElement.dataset.live")
    return page


def _keys(page, slider) -> list[float]:
    slider.scroll_into_view_if_needed()
    slider.focus()
    low, high = float(slider.get_attribute("min")), float(slider.get_attribute("max"))
    run = max(1, min(10, int(high - low)))
    for warm_up in (True, False):
        page.evaluate("delays.length = 0")
        for event in range(10 if warm_up else EVENTS):
            page.keyboard.press("ArrowRight" if event // run % 2 == 0 else "ArrowLeft")
            page.wait_for_timeout(random.uniform(25, 42))
    return page.evaluate("delays")


def _drag(page, slider) -> list[float]:
    """Drag to and fro so that every move reaches another position, with few or many positions."""
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    moves = min(40, max(1, int(0.7 * slider.evaluate("(s) => (s.max - s.min) / (Number(s.step) || 1)"))))
    page.evaluate("delays.length = 0")
    page.mouse.move(box["x"] + box["width"] * 0.15, middle)
    page.mouse.down()
    for event in range(EVENTS):
        share = 0.15 + 0.7 * abs((event / moves) % 2 - 1)
        page.mouse.move(box["x"] + box["width"] * share, middle)
        page.wait_for_timeout(random.uniform(20, 35))
    page.mouse.up()
    page.wait_for_timeout(100)
    return page.evaluate("delays")


def floor(browser, base: str) -> dict[str, list[float]]:
    """Measure the same events on a page with one slider and one number: the browser's own share."""
    page = _fresh(browser)
    page.add_init_script(scripts.RECORDER)
    page.goto(f"{base}/genindex.html", wait_until="load")
    page.evaluate(scripts.ONE_NUMBER)
    slider = page.locator("input[type=range]").first
    found = {"keys": _keys(page, slider), "drag": _drag(page, slider)}
    page.context.close()
    return found


def plot(browser, base: str) -> list[float]:
    """Return milliseconds from event to paint with Observable Plot: three curves of 200 points, one round
    trip.
    """
    page = _fresh(browser)
    page.goto(f"{base}/genindex.html", wait_until="load")
    for path in ("d3/dist/d3.min.js", "@observablehq/plot/dist/plot.umd.min.js"):
        page.evaluate(
            vendor.package(path.split("/dist")[0])
            .joinpath("dist", Path(path).name)
            .read_text(encoding="utf-8")
        )
    curves = [[[1 + x, (k + 1) * (1 + x) ** (1 + k / 3)] for x in range(200)] for k in range(3)]
    page.evaluate(scripts.PLOT, [curves, 20])
    delays = page.evaluate(scripts.PLOT, [curves, EVENTS])
    page.context.close()
    return delays


def starts(browser, base: str, name: str, times: int = 3) -> dict[str, list[float]]:
    """Return milliseconds until Python answers, alternating the page's worker with bare Pyodide."""
    found: dict[str, list[float]] = {"live": [], "bare": []}
    for _ in range(times + 1):  # the first of each fills the caches
        page = _open(browser, f"{base}/{name}")
        page.locator(".explorer input, .explorer select").first.focus()
        page.wait_for_function("document.documentElement.dataset.live === 'live'", timeout=120_000)
        marks = "performance.getEntriesByName('book:%s')[0].startTime"
        found["live"].append(page.evaluate(f"{marks % 'live'} - {marks % 'starting'}"))
        page.context.close()
        page = _fresh(browser)
        page.goto(f"{base}/genindex.html", wait_until="load")
        found["bare"].append(page.evaluate(scripts.BARE, base))
        page.context.close()
    return {name: times[1:] for name, times in found.items()}


def weights(browser, base: str, site: Path) -> dict[str, dict]:
    """Return the compressed bytes of every page before any interaction, and its requests to other hosts."""
    found = {}
    for name in pages(site):
        page = _fresh(browser)
        page.add_init_script(scripts.ASLEEP)
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(f"{base}/{name}", wait_until="load")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(100)
        foreign = [url for url in asked if not url.startswith((base, "data:", "blob:"))]
        found[name] = {"bytes": sum(weight.of(site, asked).values()), "foreign": len(foreign)}
        page.context.close()
    return found


def measure(site: Path) -> dict:
    """Measure everything in one run, on a copy, so that a rebuild meanwhile changes nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        copied = Path(shutil.copytree(site, Path(scratch) / "html"))
        shutil.copyfile(vendor.package("pyodide") / live.STANDARD, copied / "bare.zip")
        return _measured(copied)


def _measured(site: Path) -> dict:
    found = kept.circumstances()
    with serve.running(site) as base, chromium.chromium() as browser:
        moved = explorers(browser, base, site)
        least = floor(browser, base)
        peer = plot(browser, base)
        begun = starts(browser, base, next(n for n in pages(site) if _has_explorer(site, n)))
        weighed = weights(browser, base, site)
        version = browser.version
    return {
        **found,
        "device": f"{found['device']}, headless Chromium without a GPU",
        "chromium": version,
        "paint_ms": {key: {how: _summary(ms) for how, ms in ways.items()} for key, ways in moved.items()},
        "floor_ms": {how: _summary(ms) for how, ms in least.items()},
        "plot_ms": _summary(peer),
        "start_ms": {name: round(statistics.median(times)) for name, times in begun.items()},
        "start_ratio": round(statistics.median(begun["live"]) / statistics.median(begun["bare"]), 2),
        "pages": weighed,
    }


def _has_explorer(site: Path, name: str) -> bool:
    return 'data-explorer="' in (site / name).read_text(encoding="utf-8")


def _summary(delays: list[float]) -> dict[str, float]:
    return {
        "events": len(delays),
        "median": round(statistics.median(delays), 1),
        "p95": round(quantile(delays, 0.95), 1),
    }


def tell(found: dict) -> None:
    """Print the results as tables."""
    print(f"\n{found['date']}, {found['device']}, Chromium {found['chromium']}, load {found['load']}")
    print(f"\n{'event to paint (ms)':32}{'keys: median':>14}{'p95':>7}{'drag: median':>14}{'p95':>7}")
    for key, ways in {**found["paint_ms"], "one number on an empty page": found["floor_ms"]}.items():
        print(f"{key:32}" + "".join(f"{ways[h]['median']:>14}{ways[h]['p95']:>7}" for h in ("keys", "drag")))
    peer = found["plot_ms"]
    print(f"{'Observable Plot, three curves':32}{peer['median']:>14}{peer['p95']:>7}")
    start = found["start_ms"]
    print(f"\nlive after {start['live']} ms, bare Pyodide {start['bare']} ms: {found['start_ratio']} times")
    print(f"\n{'page':32}{'kB compressed':>14}{'other hosts':>14}")
    for name, page in found["pages"].items():
        print(f"{name:32}{page['bytes'] / 1e3:>14.0f}{page['foreign']:>14}")
    kept.verdicts(targets(found))


def targets(found: dict) -> list[tuple[bool, str]]:
    """Return each target as whether it is met, and its description."""
    worst = max((w["drag"]["p95"], key) for key, w in found["paint_ms"].items())
    heaviest = max((page["bytes"], name) for name, page in found["pages"].items())
    return [
        (
            worst[0] <= LIMIT_MS,
            f"event to paint at most {LIMIT_MS:g} ms at p95: worst {worst[0]} ms, {worst[1]}",
        ),
        (
            found["start_ratio"] <= LIMIT_RATIO,
            f"live at most {LIMIT_RATIO} times bare: {found['start_ratio']}",
        ),
        (
            heaviest[0] <= LIMIT_BYTES,
            f"at most {LIMIT_BYTES // 1000} kB a page: {heaviest[0] / 1e3:.0f} kB, {heaviest[1]}",
        ),
        (not any(p["foreign"] for p in found["pages"].values()), "no request to another host"),
    ]


if __name__ == "__main__":
    kept.main("page", __doc__, measure, tell, site=SITE)
