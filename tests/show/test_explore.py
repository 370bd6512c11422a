"""What a notebook shows of an explorer: a live widget in a kernel, HTML and a sentence where it is stored."""

import pytest

pytest.importorskip("ipywidgets")

from scalingbook_book import show
from scalingbook_book.chapters import explorers
from scalingbook_book.reader import draw
from scalingbook_book.reader.explorers.controls import Choice, Notation, Steps, Switch
from scalingbook_book.reader.explorers.explorer import Explorer
from scalingbook_book.reader.explorers.view import Chart, Curve, Scale, View
from scalingbook_book.show import widgets
from scalingbook_book.show.explorers import WIDGET

KEY = "rooflines.roofline"


def test_outside_a_kernel_there_is_html_and_a_sentence():
    shown = show.explorer(KEY)
    bundle = shown._repr_mimebundle_()
    assert bundle == {"text/plain": explorers.find(KEY).text(), "text/html": explorers.find(KEY).html()}
    assert bundle == show.explorer(KEY)._repr_mimebundle_()


def test_a_cell_may_start_elsewhere():
    assert "With 512 tokens" in show.explorer(KEY, B=512)._repr_mimebundle_()["text/plain"]
    with pytest.raises(ValueError, match="has no Z"):
        show.explorer(KEY, Z=1)


def test_moving_an_input_changes_picture_text_and_verdict():
    live = widgets.Live(explorers.find(KEY))
    picture, said = live.picture.value, live.said.value
    live.inputs["B"].value = live.explorer.controls["B"].stops[1]
    assert live.picture.value != picture
    assert live.texts["B"].value == "16,384"
    assert "compute-bound" in live.said.value
    live.reset()
    assert (live.picture.value, live.said.value) == (picture, said)


def test_what_cannot_be_read_is_said_and_the_picture_stays():
    live = widgets.Live(explorers.find(KEY))
    picture = live.picture.value
    live.inputs["left"].value = "H100"
    on_gpu = live.picture.value
    live.inputs["level"].value = "VMEM"
    assert live.picture.value == on_gpu
    assert "H100 has no documented VMEM bandwidth" in live.said.value
    live.inputs["level"].value = "HBM"
    assert live.picture.value != picture
    live.inputs["left"].value = "TPU v5e"
    assert live.picture.value == picture


def test_the_picture_is_the_pages_wide_and_narrow():
    live = widgets.Live(explorers.find(KEY))
    for wide in (True, False):
        assert draw.figure(live.explorer.evaluate(), wide=wide) in live.picture.value


def test_every_control_has_its_input_and_steps_a_player():
    def view(text, on, pick, step):
        chart = Chart(Scale("x"), Scale("y"), (Curve("c", [0, 1], [0, 1 + step]),))
        return View(f"<b>{text} {on} {pick} {step}</b>", (chart,), frames=4)

    controls = {
        "text": Notation("t", "A"),
        "on": Switch("s"),
        "pick": Choice("c", ("p", "q")),
        "step": Steps(),
    }
    live = widgets.Live(Explorer(key="a.b", title="t", question="q", controls=controls, view=view))
    assert live.state() == {"text": "A", "on": False, "pick": "p", "step": 0}
    assert live.inputs["step"].max == 3
    live.inputs["step"].value = 2
    assert live.texts["step"].value == "2 of 3"
    assert "&lt;b&gt;" in live.said.value
    assert list(live.texts) == ["step"]
    assert live.box().children


def test_a_player_starts_where_its_steps_do():
    live = widgets.Live(explorers.find("sharding.player"))
    (steps,) = (c for c in live.explorer.controls.values() if isinstance(c, Steps))
    players = [w for row in live.box().children[1].children for w in row.children if hasattr(w, "interval")]
    assert [w.value for w in players] == [steps.initial] == [2]


NOTEBOOK = f"""
from scalingbook_book import show
show.explorer("{KEY}")
"""


def test_in_a_kernel_the_bundle_is_live_and_what_is_stored_of_it_is_stable():
    """As nbval compares: with the widget's view left out, two runs give the same bundle."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    bundles = []
    for _ in range(2):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
        nbclient.NotebookClient(book, store_widget_state=False).execute()
        bundles.append(dict(book.cells[0].outputs[-1]["data"]))
        assert bundles[-1].pop(WIDGET)["model_id"]
    assert (
        bundles[0]
        == bundles[1]
        == {"text/plain": explorers.find(KEY).text(), "text/html": explorers.find(KEY).html()}
    )
