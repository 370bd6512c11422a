"""Tests of the PNG pictures in downloaded notebooks."""

import base64
import io
import json
import urllib.error
import urllib.request

import pytest
from nbformat import v4
from PIL import Image

from tools import notebooks
from web import rasters, serve, vendor

PNG, HTML = "image/png", "text/html"
BLUE, WHITE = (26, 104, 224), (255, 255, 255)
DRAWN = """<figure class="fig">
<div class="fig-wide" role="img" aria-label="A blue &amp; a word"><svg class="ex-panel" viewBox="0 0 680 40"
 width="680" height="40" font-family="Arial,sans-serif" font-size="20" fill="currentColor">
<title>hidden</title>
<rect width="340" height="40" fill="var(--ex-c0,#1a68e0)"/>
<text x="400" y="28">→ FLOPs</text></svg></div>
<div class="fig-narrow" hidden><svg width="340" height="40"></svg></div>
<figcaption>It is <i>blue</i>.</figcaption>
</figure>"""


def notebook(html):
    output = v4.new_output("execute_result", {HTML: html, "text/plain": "told"}, execution_count=1)
    return v4.new_notebook(cells=[v4.new_code_cell("show.figure()", outputs=[output])])


@pytest.fixture(scope="module", autouse=True)
def _packages():
    vendor.install()


def test_a_picture_has_its_colors_its_text_and_its_caption():
    picture, caption = rasters.with_png(notebook(DRAWN)).cells[0].outputs
    image = Image.open(io.BytesIO(base64.b64decode(picture.data[PNG]))).convert("RGB")
    assert image.size == (700 * rasters.ZOOM, 60 * rasters.ZOOM)
    assert image.getpixel((60, 45)) == pytest.approx(BLUE, abs=4)
    assert image.getpixel((5, 5)) == pytest.approx(WHITE, abs=4)
    text = image.crop((600, 15, 780, 75)).convert("L")
    assert text.getextrema()[0] < 80, "the word is drawn"
    assert 0.02 < sum(text.histogram()[:128]) / (text.width * text.height) < 0.3
    assert picture.metadata[PNG] == {"width": 700, "alt": "A blue & a word"}
    assert caption.data == {HTML: "<p>It is <i>blue</i>.</p>", "text/plain": "It is blue."}


def test_every_stored_picture_becomes_a_png_with_its_sentences(monkeypatch):
    sheets = []
    monkeypatch.setattr(rasters, "png", lambda svg: f"{sheets.append(svg)}")
    for one in notebooks.every():
        if one.folder == "chapters" and one.path.exists():
            stored = v4.reads(one.path.read_text(encoding="utf-8"))
            outputs = [o for cell in stored.cells for o in cell.get("outputs", ())]
            told = [o.data["text/plain"] for o in outputs if "<svg" in o.get("data", {}).get(HTML, "")]
            made = [o for cell in rasters.with_png(stored).cells for o in cell.get("outputs", ())]
            assert sum(PNG in o.get("data", {}) for o in made) == len(told)
            pages = "".join(o.get("data", {}).get(HTML, "") for o in made)
            assert not [word for word in ("<svg", "<form", "<input", "ex-narrow") if word in pages]
            words = "\n".join(o.data["text/plain"] for o in made if "data" in o)
            assert [text for text in told if text.partition(" [")[0].partition(": ")[0] not in words] == []
    assert len(sheets) > 250
    assert not [sheet for sheet in sheets if "var(" in sheet or "<title>" in sheet]


def test_the_server_draws_the_pictures_of_a_download_and_of_nothing_outside_the_site(tmp_path):
    (tmp_path / "site" / "notebooks").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "site" / "notebooks"):
        (folder / "one.ipynb").write_text(json.dumps(notebook(DRAWN)))
    with serve.running(tmp_path / "site") as address:
        with urllib.request.urlopen(f"{address}/notebooks/one.ipynb") as answer:
            assert PNG in json.load(answer)["cells"][0]["outputs"][0]["data"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/notebooks/..%2F..%2Fone.ipynb")
