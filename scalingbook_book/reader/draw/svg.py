"""Build the SVG elements of every panel as text.

Coordinates have at most one decimal, numbers are formatted with one `%` per line, and colors are custom
properties with a fallback. A picture is therefore small, fast to write, and suits light and dark pages.
"""

from collections.abc import Iterable, Sequence
from html import escape as _escape

FONT = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
SIZE = 13  # font size in drawing units
MANY = 64  # above this number of shapes, a picture's shapes share elements
QUIET = 'fill-opacity=".72"'  # ticks and axis labels
HALO = 'stroke="var(--ex-bg,none)" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'

_UNPRINTABLE = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF])
BOLD = 1.16  # width of bold text relative to regular text
_WIDTHS = {  # of each character at font size 1: the wider of DejaVu Sans and Helvetica; 0.64 for others
    c: w
    for w, cs in (
        (0.0, "\u0304\u200b"),
        (0.28, "'ijl\u202f"),
        (0.32, " ,.I\u00b7"),
        (0.36, "/:;\\f|"),
        (0.4, "()-[]t\u1d40"),
        (0.42, "!r\u00b2\u2074\u2078\u2080"),
        (0.53, '"*J`sz'),
        (0.56, "?L_c"),
        (0.62, "FTaekovxy\u0232"),
        (0.69, "ABEKPSVXYZ\u03b1"),
        (0.82, "&CDGHNOQRUw"),
        (0.87, "#+<=>M^~\u00d7\u00f7\u2191\u2193\u2212\u2713\u2717"),
        (0.98, "%m"),
        (1.02, "@W\u2190\u2192\u2026"),
    )
    for c in cs
}


def escape(text: str) -> str:
    """Return the text escaped for HTML and XML."""
    return _escape(text if text.isprintable() else text.translate(_UNPRINTABLE))


def measure(text: str, size: float = SIZE) -> float:
    """Return the maximum width of a text in the sans-serif fonts that readers commonly have."""
    widths = _WIDTHS.get
    return sum([widths(c, 0.64) for c in text]) * size


def fit(text: str, room: float, size: float = SIZE) -> str:
    """Return the text, truncated with an ellipsis if it is wider than `room`."""
    if measure(text, size) <= room:
        return text
    while text and measure(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…" if text else ""


def wrap(text: str, room: float, size: float = SIZE) -> list[str]:
    """Return the text in lines that fit, broken between words; a word that is too long is truncated."""
    lines: list[str] = []
    for word in text.split():
        if lines and measure(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, room, size))
    return lines


def number(value: float) -> str:
    """Return a coordinate with at most one decimal: '3', '3.5'."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def text(x: float, y: float, words: str, attributes: str = "") -> str:
    """Return a line of text with its baseline at y."""
    space = " " if attributes else ""
    return f'<text x="{number(x)}" y="{number(y)}"{space}{attributes}>{escape(words)}</text>'


def texts(attributes: str, lines: Iterable[str]) -> str:
    """Return lines of text as one element, which a browser lays out faster than one element per line."""
    together = "".join(lines).replace("<text", "<tspan").replace("</text", "</tspan")
    return f"<text {attributes}>{together}</text>" if together else ""


def rect(x: float, y: float, wide: float, high: float, attributes: str, *, note: str = "") -> str:
    """Return a rectangle, with a tooltip if `note` is given."""
    head = f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" {attributes}'
    return f"{head}><title>{escape(note)}</title></rect>" if note else f"{head}/>"


def points(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return pixel lists as 'x,y x,y ...'."""
    flat = [0.0] * (2 * len(xs))
    flat[::2], flat[1::2] = xs, ys
    return (("%.1f,%.1f " * len(xs)) % tuple(flat))[:-1]


def paths(ways: Iterable[tuple[str, str]]) -> list[str]:
    """Return paths, each given with its paint, as one element per paint."""
    alike: dict[str, str] = {}
    for paint, way in ways:
        alike[paint] = alike.get(paint, "") + way
    return [f'<path d="{way}" {paint}/>' for paint, way in alike.items()]


def group(attributes: str, parts: Iterable[str]) -> str:
    """Return a group of parts that share attributes, or '' if there are none."""
    inside = "".join(parts)
    return f"<g {attributes}>{inside}</g>" if inside else ""


def picture(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    """Return the whole drawing, scaled down to fit but never up; without a label, its surroundings describe
    it.
    """
    w, h = number(width), number(height)
    label_attributes = f' role="img" aria-label="{escape(label)}"' if label else ""
    return (
        f'<svg class="ex-panel" viewBox="0 0 {w} {h}" width="{w}" height="{h}"{label_attributes} '
        f'font-family="{FONT}" font-size="{SIZE}" fill="currentColor">{"".join(parts)}</svg>'
    )


def title(words: str, width: float) -> tuple[list[str], float]:
    """Return a panel's heading, if it has one, in as many lines as it needs, and its height."""
    lines = wrap(words, width, SIZE * BOLD)
    parts = [text(0, 14 + 17 * k, line, 'font-weight="600"') for k, line in enumerate(lines)]
    return parts, 7.0 + 17 * len(lines) if lines else 0.0


def legend(items: Sequence[tuple[str, str]], width: float, top: float) -> tuple[list[str], float]:
    """Return a legend in rows and its height; items are (label, paint attributes)."""
    parts, x, y = [], 0.0, top + 11
    for label, paint in items:
        words = fit(label, width - 18)
        wide = measure(words) + 34
        if x and x + wide - 16 > width:
            x, y = 0.0, y + 20
        parts.append(f'<rect x="{number(x)}" y="{number(y - 10)}" width="11" height="11" rx="2" {paint}/>')
        parts.append(text(x + 17, y, words))
        x += wide
    return parts, (y - top + 11 if items else 0.0)
