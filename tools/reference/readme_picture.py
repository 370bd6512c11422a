"""Write the animated picture of the README: `python -m tools.reference.readme_picture`.

`web/readme.svg` shows the roofline explorer while its token slider moves. The library draws one frame for
each position of the slider, and what all frames share is written once. The animation is CSS, which works
where GitHub shows an SVG as an image. Readers who prefer reduced motion see a still picture.
"""

from collections.abc import Iterator
from itertools import accumulate
from xml.etree import ElementTree

from scalingbook_book.chapters import explorers
from scalingbook_book.reader import draw
from scalingbook_book.reader.draw import palette, svg
from scalingbook_book.reader.explorers.explorer import Explorer
from scalingbook_book.reader.explorers.slider import Slider
from scalingbook_book.reader.explorers.view import Panel
from tools.environment import ROOT

PICTURE = ROOT / "web/readme.svg"
KEY, MOVED = "rooflines.roofline", "B"
POSITIONS = tuple(round(2 ** (k / 3)) for k in range(9, 34))  # 8 to 2,048 tokens, three steps per octave
STILL = 64  # the position of the still picture
HELD_S = {8: 1.5, 64: 3.0, 256: 3.0, 2048: 3.5}  # long enough to read the verdict
STEP_S = 0.13  # at every other position
MARGIN, GAP, LINE = 20.0, 24.0, 19.0
WIDTH = draw.WIDE + 2 * MARGIN
SLIDERS_Y, CHART_Y, VERDICT_LINES = 86.0, 124.0, 2

STYLE = """svg{color:#1f2328;--ex-bg:#fff;--edge:#d1d9e0}
@media(prefers-color-scheme:dark){svg{color:#e6e6e6;--ex-bg:#121212;--edge:#3d444d;%(dark)s}}
.f{visibility:hidden}#f%(still)d{visibility:visible}
@media(prefers-reduced-motion:no-preference){
.f{animation:%(lasts).2fs step-end infinite}#f%(still)d{visibility:hidden}
%(frames)s}
"""


def picture() -> str:
    """Return the whole picture as the text of an SVG file."""
    explorer = explorers.find(KEY)
    frames = [[*_chart(explorer, value), *_thumb(explorer, MOVED, value)] for value in POSITIONS]
    shared = set.intersection(*map(set, frames))
    still = [part for part in frames[0] if part in shared]
    moving = [
        f'<g id="f{k}" class="f">{"".join(part for part in frame if part not in shared)}</g>'
        for k, frame in enumerate(frames)
    ]
    wide, high = svg.number(WIDTH), svg.number(_height(explorer))
    label = svg.escape(f"{explorer.title}. {explorer.evaluate(**{MOVED: STILL}).verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img" aria-label="{label}" font-family="{svg.FONT}" font-size="{svg.SIZE}" '
        'fill="currentColor">\n'
        + "\n".join([f"<style>\n{_style()}</style>", *_card(explorer), *still, *moving])
        + "\n</svg>\n"
    )


def _style() -> str:
    """Return the colors of both themes, and when each frame is visible."""
    ends = list(accumulate(HELD_S.get(value, STEP_S) for value in POSITIONS))
    lasts = ends[-1]
    frames = []
    for k, (start, end) in enumerate(zip([0.0, *ends], ends, strict=False)):
        off = f"{100 * end / lasts:.2f}%{{visibility:hidden}}" if end < lasts else ""
        before = "0%{visibility:hidden}" if start else ""
        on = f"{100 * start / lasts:.2f}%{{visibility:visible}}"
        frames.append(f"@keyframes k{k}{{{before}{on}{off}}}#f{k}{{animation-name:k{k}}}\n")
    dark = ";".join(f"--ex-c{i}:{color}" for i, color in enumerate(palette.DARK))
    still = POSITIONS.index(STILL)
    return STYLE % {"dark": dark, "still": still, "lasts": lasts, "frames": "".join(frames)}


def _chart(explorer: Explorer, value: int) -> Iterator[str]:
    """Yield the parts of the chart and the lines of the verdict, with the slider at a value."""
    view = explorer.evaluate(**{MOVED: value})
    place = f"translate({svg.number(MARGIN)},{svg.number(CHART_Y)})"
    for part in _drawing(view.panels[0]):
        yield f'<g transform="{place}">{ElementTree.tostring(part, encoding="unicode")}</g>'
    lines = svg.wrap(view.verdict, draw.WIDE - 12)
    if len(lines) > VERDICT_LINES:
        raise ValueError(f"the verdict at {value} takes {len(lines)} lines: {view.verdict}")
    for k, line in enumerate(lines):
        yield svg.text(MARGIN + 12, _verdict_y(explorer) + 14 + LINE * k, line)


def _drawing(panel: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(draw.panel(panel, draw.WIDE))


def _verdict_y(explorer: Explorer) -> float:
    return CHART_Y + float(_drawing(explorer.evaluate().panels[0]).attrib["height"]) + 14


def _height(explorer: Explorer) -> float:
    return _verdict_y(explorer) + LINE * VERDICT_LINES + MARGIN


def _card(explorer: Explorer) -> Iterator[str]:
    """What no position of the slider changes: the card, the question, the tracks, the other sliders."""
    high = _height(explorer)
    yield svg.rect(0.5, 0.5, WIDTH - 1, high - 1, 'rx="10" fill="var(--ex-bg)" stroke="var(--edge)"')
    yield svg.text(MARGIN, 32, explorer.title, 'font-size="16" font-weight="650"')
    yield svg.text(MARGIN, 54, explorer.question, svg.QUIET)
    for name in _sliders(explorer):
        left, wide = _track(explorer, name)
        yield svg.text(left, SLIDERS_Y, explorer.controls[name].label, svg.QUIET)
        yield svg.rect(left, SLIDERS_Y + 11, wide, 6, 'rx="3" fill="currentColor" fill-opacity=".15"')
        if name != MOVED:
            yield from _thumb(explorer, name, _sliders(explorer)[name].start)
    yield svg.rect(MARGIN, _verdict_y(explorer), 3, LINE * VERDICT_LINES, f'fill="{palette.ink(0)}"')


def _sliders(explorer: Explorer) -> dict[str, Slider]:
    return {name: control for name, control in explorer.controls.items() if isinstance(control, Slider)}


def _track(explorer: Explorer, name: str) -> tuple[float, float]:
    """Where the track of a slider begins, and how wide it is."""
    names = list(_sliders(explorer))
    wide = (draw.WIDE - (len(names) - 1) * GAP) / len(names)
    return MARGIN + names.index(name) * (wide + GAP), wide


def _thumb(explorer: Explorer, name: str, value: float) -> Iterator[str]:
    """Yield the value of a slider, the part of its track up to there, and its thumb."""
    slider = _sliders(explorer)[name]
    left, wide = _track(explorer, name)
    first, last, _ = slider.stops
    along = wide * (slider.position(value) - first) / (last - first)
    yield svg.text(left + wide, SLIDERS_Y, slider.text(value), 'text-anchor="end" font-weight="600"')
    yield svg.rect(left, SLIDERS_Y + 11, along, 6, f'rx="3" fill="{palette.ink(0)}"')
    yield f'<circle cx="{left + along:.1f}" cy="{SLIDERS_Y + 14:.1f}" r="8" fill="{palette.ink(0)}"/>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")
