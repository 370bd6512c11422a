"""Convert the stored pictures of a downloadable notebook to PNG, so that it shows them before it is run.

A front end shows little of a notebook that it does not trust. JupyterLab removes SVG from HTML, and VS Code
shows no HTML in a restricted workspace, but all of them show an image/png. If one output has both HTML and a
PNG, JupyterLab prefers the HTML, even though it removes the picture from it. The PNG therefore replaces the
HTML of a picture, and the sentences around the picture become outputs of their own.
"""

import base64
import functools
import hashlib
import html
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output

from web import vendor

FORMAT = "2: 1.5 x, 128 colors"  # version of the cached pictures
ZOOM, COLORS = 1.5, 128
WIDTH, MARGIN, GAP = 680, 10, 10
INK = "#222832"  # the text color of the site's light theme
FAMILY, WEIGHTS = "Source Sans 3", (400, 500, 600)  # the site's font
UNITS = 1000  # units per em in the site's font
SIGNS = range(0x100, 0x2800)  # taken from another font: Greek, subscripts, arrows, operators, check marks

_WIDE = re.compile(
    r'<div class="(?:fig|ex)-wide"(?P<how>[^>]*)>(?P<drawn>.*?)</div>\s*<div class="(?:fig|ex)-narrow"', re.S
)
_SVG = re.compile(
    r'<svg (?P<rest>[^>]*\bwidth="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)".*?</svg>)', re.S
)
_TITLE = re.compile(r"<title>.*?</title>", re.S)
_LABEL = re.compile(r'aria-label="([^"]*)"')
_BLOCK = re.compile(r"<(?P<tag>p|dl|figcaption)\b(?P<how>[^>]*)>(?P<said>.*?)</(?P=tag)>", re.S)
_TAG = re.compile(r"<[^>]*>")


def with_png(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook with every stored picture as PNG."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [new for output in cell.outputs for new in _outputs(output)]
    return notebook


def _outputs(output: NotebookNode) -> Iterator[NotebookNode]:
    """Yield an output unchanged, or the sentences above its picture, the picture as PNG, and those below."""
    stored = output.get("data", {}).get("text/html", "")
    if "<svg" not in stored:
        yield output
        return
    wide = _WIDE.search(stored)
    above, below = (stored[: wide.start()], stored[wide.end() :]) if wide else ("", "")
    yield from _sentences(above)
    yield _picture(wide["drawn"] if wide else stored, wide["how"] if wide else "", output.data["text/plain"])
    yield from _sentences(_SVG.sub("", below))


def _picture(drawn: str, how: str, text: str) -> NotebookNode:
    label = _LABEL.search(how)
    alt = html.unescape(label[1]) if label else text
    return new_output(
        "display_data",
        data={"image/png": png(sheet(drawn)), "text/plain": alt},
        metadata={"image/png": {"width": WIDTH + 2 * MARGIN, "alt": alt}},
    )


def _sentences(around: str) -> Iterator[NotebookNode]:
    """Yield the text above or below a picture as paragraphs, without controls and hidden elements."""
    told = [_paragraph(found) for found in _BLOCK.finditer(around) if "hidden" not in found["how"]]
    if told:
        plain = "\n".join(html.unescape(_TAG.sub("", one)) for one in told)
        paragraphs = "\n".join(f"<p>{one}</p>" for one in told)
        yield new_output("display_data", data={"text/html": paragraphs, "text/plain": plain})


def _paragraph(found: re.Match[str]) -> str:
    if found["tag"] == "dl":
        return _TAG.sub("", found["said"].replace("</dt><dd>", ": ").replace("</div><div>", " · "))
    return f"<strong>{found['said']}</strong>" if "ex-title" in found["how"] else found["said"]


def sheet(drawn: str) -> str:
    """Return the panels of a picture on one white sheet, stacked, or side by side if they are narrow."""
    placed, left, top, row = "", 0.0, 0.0, 0.0
    for panel in _SVG.finditer(drawn):
        width, height = float(panel["width"]), float(panel["height"])
        if left + width > WIDTH:
            left, top, row = 0.0, top + row + GAP, 0.0
        placed += f'<svg x="{left:g}" y="{top:g}" overflow="visible" {panel["rest"]}'
        left, row = left + width, max(row, height)
    across, down = WIDTH + 2 * MARGIN, top + row + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across:g}" height="{down:g}" color="{INK}">'
        f'<g transform="translate({MARGIN} {MARGIN})">{_plain(placed)}</g></svg>'
    )


def _plain(svg: str) -> str:
    """SVG without what only browsers support: CSS variables and hover titles."""
    return re.sub(r"var\(--[\w-]+,([^)]*)\)", r"\1", _TITLE.sub("", svg))


def png(svg: str) -> str:
    """Return the picture as base64 PNG, from the cache if the same one was rendered before."""
    return vendor.cached(f"{FORMAT} {vendor.lock_digest()} {svg}".encode(), lambda: _drawn(svg))


def _drawn(svg: str) -> str:
    import resvg_py
    from PIL import Image

    drawn = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        background="white",
        skip_system_fonts=True,  # so that the picture is the same on every machine
        font_files=_fonts(),
        sans_serif_family=FAMILY,
    )
    picture = Image.open(io.BytesIO(drawn)).convert("RGB")
    made = io.BytesIO()
    picture.quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


@functools.cache
def _fonts() -> list[str]:
    """Return the site's font in each weight, as the renderer reads it; created once per version."""
    digest = hashlib.sha256(f"{FORMAT} {vendor.lock_digest()}".encode()).hexdigest()[:12]
    files = [vendor.STORE / "fonts" / f"{digest}-{weight}.ttf" for weight in WEIGHTS]
    for weight, file in zip(WEIGHTS, files, strict=True):
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(f".{os.getpid()}")  # two builds may render at the same time
            _font(weight, draft)
            draft.replace(file)
    return [str(file) for file in files]


def _font(weight: int, target: Path) -> None:
    """Write one weight of the site's font, merged with glyphs that it lacks, such as arrows."""
    # With two fonts, the renderer would set a whole label in the wider one because of one arrow.
    from fontTools.merge import Merger
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.ttLib.scaleUpem import scale_upem

    source = vendor.package("@fontsource/source-sans-3") / "files"
    font = TTFont(source / f"source-sans-3-latin-{weight}-normal.woff")
    other = TTFont(vendor.package("@fontsource/dejavu-sans") / "files" / "dejavu-sans-latin-400-normal.woff")
    names, signs = font["name"], font.getBestCmap() or {}
    for name in list(names.names):  # in the renderer every weight is a family of its own
        if name.nameID in (1, 16):
            names.setName(FAMILY, name.nameID, name.platformID, name.platEncID, name.langID)
    font.flavor = other.flavor = None
    lacks = [sign for sign in other.getBestCmap() or () if sign not in signs and sign in SIGNS]
    subset = Subsetter(Options(layout_features=[], hinting=False))
    subset.populate(unicodes=lacks)
    subset.subset(other)
    other["cmap"].tables = [table for table in other["cmap"].tables if table.format == 4]
    scale_upem(other, UNITS)
    with tempfile.TemporaryDirectory() as folder:
        parts = [f"{folder}/{part}.ttf" for part in ("site", "other")]
        for part, file in zip((font, other), parts, strict=True):
            part.save(file)
        Merger().merge(parts).save(target)
