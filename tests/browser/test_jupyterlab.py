"""In JupyterLab, in a real browser: notebooks open, sliders move, numbers change, exercises check."""

import importlib.util
import re

import nbformat
import pytest

from scalingbook_lib import roofline
from scalingbook_lib.machines import chips
from tests.browser import jupyter
from tools import first_cell, notebooks, wheel
from web import downloads, rasters

if importlib.util.find_spec("jupyterlab") is None:
    pytest.skip("these tests need JupyterLab (make set-up)", allow_module_level=True)
CARRYING, PNG = first_cell.carrying(wheel.carried()), "image/png"
PATHS = [path for folder in jupyter.FOLDERS for path in sorted((jupyter.ROOT / folder).glob("*.ipynb"))]
NOTEBOOKS = [path.relative_to(jupyter.ROOT).as_posix() for path in PATHS]


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with jupyter.served(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture
def opened(chrome, server):
    """Opens a notebook, as in `opened("chapters/rooflines.ipynb")`. What it complains of fails the test."""
    contexts = []

    def open_notebook(path, *, width=1280):
        context = chrome.new_context(viewport={"width": width, "height": 900})
        contexts.append((context, jupyter.Opened(context.new_page(), server.base).watch()))
        return contexts[-1][1].go(path, server.token)

    yield open_notebook
    wrong = [complaint for _, notebook in contexts for complaint in notebook.wrong + notebook.failures()]
    for context, _ in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_is_served_whole(server, notebook):
    model = server.get(notebook)
    assert (model["type"], model.get("message")) == ("notebook", None)
    nbformat.validate(model["content"])


def test_a_download_shows_its_pictures_and_folds_the_library_before_it_is_trusted_or_run(opened, server):
    given = downloads.drawn(downloads.carried(notebooks.Notebook("chapters", "rooflines"), CARRYING))
    (server.folder / "download.ipynb").write_text(given, encoding="utf-8")
    outputs = (o for cell in nbformat.reads(given, as_version=4).cells for o in cell.get("outputs", ()))
    widths = [o.metadata[PNG]["width"] for o in outputs if PNG in o.get("data", {})]

    notebook = opened("download.ipynb")
    cells = "[...jupyterapp.shell.currentWidget.content.model.cells]"
    assert notebook.page.evaluate(f"{cells}.some((cell) => cell.trusted)") is False
    first = notebook.page.locator(".jp-CodeCell").first
    first.get_by_text("# @title Set-up: unpacks the book's library").wait_for()
    assert first.bounding_box()["height"] < 100
    pictures = notebook.page.locator(f'[data-mime-type="{PNG}"] img')
    for place, width in enumerate(widths):
        picture = pictures.nth(place)
        picture.scroll_into_view_if_needed()
        seen = "(image) => image.decode().then(() => [image.naturalWidth, image.width])"
        assert picture.evaluate(seen) == [width * rasters.ZOOM, width]
    assert pictures.count() == len(widths) > 10
    assert notebook.page.get_by_text("The picture shows the starting values.").count() > 1


def test_a_chapter_runs_to_its_first_explorer_and_its_sliders_move(opened):
    notebook = opened("chapters/rooflines.ipynb")
    assert notebook.page.locator(".jp-Notebook h1").inner_text().startswith("Rooflines")
    stored = notebook.cell('show.explorer("rooflines.roofline"')
    stored.scroll_into_view_if_needed()
    stored.locator("svg.ex-panel:visible").first.wait_for()
    notebook.run_above(stored)
    shown = notebook.explorer("rooflines.roofline")
    start = shown.picture(), shown.said()
    tokens = shown.row("tokens B")
    assert tokens.inner_text().split()[-1] == "64"

    tokens.locator(".noUi-handle").focus()
    shown.moves(lambda: notebook.page.keyboard.press("PageUp"))
    assert int(tokens.inner_text().split()[-1].replace(",", "")) > 64
    shown.moves(lambda: drag(notebook.page, tokens, 0.9), to="compute-bound")
    shown.moves(lambda: shown.row("first chip").locator("select").select_option("TPU v5p"), to="TPU v5p")

    shown.box.get_by_role("button", name="Reset").click()
    shown.until(lambda: (shown.picture(), shown.said()) == start)


def drag(page, row, share):
    """Take a slider's handle with the mouse to that share of its length."""
    rail = row.locator(".noUi-base").bounding_box()
    row.locator(".noUi-handle").hover()
    page.mouse.down()
    page.mouse.move(rail["x"] + share * rail["width"], rail["y"] + rail["height"] / 2, steps=5)
    page.mouse.up()


def test_what_is_typed_is_read_and_steps_play(opened):
    notebook = opened("chapters/sharding.ipynb")
    notebook.run(notebook.cell("from scalingbook_book import show"))
    painter = notebook.explorer("sharding.painter")
    array = painter.row("array").locator("input")
    painter.moves(lambda: retype(array, "A[I_XY, J]"))
    picture = painter.picture()
    retype(array, "A[I_X, J_X]")
    painter.box.get_by_role("alert").filter(has_text="mesh axis X").wait_for()
    assert painter.picture() == picture

    player = notebook.explorer("sharding.player")
    player.box.get_by_text(re.compile(r"^2 of 4$")).wait_for()
    first = player.picture()
    player.box.locator(".jupyter-widget-play button, .widget-play button").first.click()
    player.until(lambda: player.picture() != first)
    player.box.get_by_text(re.compile(r"^[1-9] of \d+$")).wait_for()


def retype(box, text):
    box.fill(text)
    box.press("Enter")


def test_an_exercise_says_what_is_wrong_and_takes_what_is_right(opened):
    notebook = opened("exercises/rooflines.ipynb")
    stub, check = notebook.cell("no_overlap_s = ..."), notebook.cell('checks.find("rooflines.no-overlap")')
    notebook.run_above(stub)
    asked = roofline.matmul(256, 4096, 16384, chips.V5P)
    stub, check = (notebook.numbered(cell) for cell in (stub, check))
    for answer, verdict in (
        ("...", "not answered yet"),
        (asked.memory_s, "✗ That is the memory time alone."),
        ("'a while'", "? "),
        (asked.upper_s, "✓ Right."),
    ):
        notebook.run(stub, f"no_overlap_s = {answer}")
        notebook.run(check)
        check.locator(".jp-OutputArea-output").filter(has_text=verdict).wait_for()
    notebook.run(check, 'checks.find("rooflines.no-overlap").hint(1)')
    check.locator(".jp-OutputArea-output").filter(has_text="Hint 1 of 2").wait_for()
