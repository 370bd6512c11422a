"""Explorers: values and positions, malformed states, static HTML, and the worker's JSON."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.controls import Choice, Notation, Slider, Steps, Switch
from scalingbook_book.reader.explorers.explorer import Explorer
from scalingbook_book.reader.explorers.view import Chart, Curve, Readout, Scale, View
from scalingbook_lib.words import joined_units

SLIDERS = [
    Slider("B", 1, 16384, 64, "log"),
    Slider("W", 1e9, 1e12, 4.5e10, "log", "B/s"),
    Slider("D", 256, 32768, 8192, "pow2"),
    Slider("share", 0.0, 1.0, 0.25),
    Slider("n", 0, 10, 3),
    Slider("ms", 0.0, 10.0, 4.0, step=0.5),
    Slider("grain", 100, 10000, 4300, "log", step=100),
]


def view(B=1, chip="a", on=False, text="", step=0):
    if "bad" in text:
        raise ValueError(f"{text!r} is not an array; write A[I_X, J]")
    chart = Chart(Scale("x"), Scale("y"), (Curve(chip, [0, 1], [0, B]),))
    return View(f"{B} {chip} {on} {text} {step}.", (chart,), (Readout("B", B),), frames=min(B, 5))


DEMO = Explorer(
    key="demo.one",
    title="One & all",
    question="What <then>?",
    controls={
        "B": Slider("tokens", 1, 1024, 8, "pow2"),
        "chip": Choice("chip", ("a", "b <b>")),
        "on": Switch("wrapped", True),
        "text": Notation("array", 'A[I, J] "q"', "as in A[I_X, J]"),
        "step": Steps(),
    },
    view=view,
)


def test_a_start_between_two_steps_is_refused_as_a_page_would_move_it():
    with pytest.raises(ValueError, match="not a whole number of steps"):
        Slider("load", 0.1, 1.2, 0.8)
    assert Slider("load", 0.1, 1.2, 0.8, step=0.05).initial == 0.8


@pytest.mark.parametrize("slider", SLIDERS, ids=lambda s: s.label)
def test_a_position_and_its_value_go_round(slider):
    first, last, step = slider.stops
    positions = [first + i * step for i in range(round((last - first) / step) + 1)]
    values = [slider.value(p) for p in positions]
    assert values == sorted(values)
    assert (values[0], values[-1]) == pytest.approx((slider.low, slider.high))
    assert slider.start in values
    assert slider.value(slider.initial) == slider.start
    for value in values:
        assert slider.value(slider.position(value)) == pytest.approx(value, rel=0.05)
        assert isinstance(value, int) == slider.whole


def test_a_grain_keeps_values_of_a_log_slider_round():
    grain = SLIDERS[-1]
    assert all(grain.value(p) % 100 == 0 for p in range(97))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Slider("s", 1, 10, 20), "start 20 is not within 1 to 10"),
        (lambda: Slider("s", 0, 10, 5, "log"), "starts above 0"),
        (lambda: Slider("s", 1, 10, 4, "pow2"), "powers of two"),
        (lambda: Slider("s", 1, 10, 4, "cubic"), "is not a scale"),
        (lambda: Choice("c", ()), "at least one option"),
        (lambda: Choice("c", ("a",), "b"), "'b' is not one of a"),
    ],
)
def test_a_control_that_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("state", ["1e99", -5, "nan", "inf", "", "x", True, "<script>", None, [], {}])
def test_a_control_reads_whatever_arrives(state):
    for control in (*SLIDERS, *DEMO.controls.values()):
        reading = control.read(state)
        again = control.read(reading.state)
        assert (again.value, again.note) == (reading.value, "")


def test_values_out_of_range_are_clamped_with_a_note():
    reading = SLIDERS[0].read(1e9)
    assert reading.value == 16384
    assert "from 1 to 16,384" in reading.note
    assert DEMO.controls["chip"].read("z").value == "a"


def test_a_switch_reads_what_pages_and_addresses_write():
    assert [Switch("s").read(s).value for s in (True, "true", "1", 1, "on")] == [True] * 5
    assert [Switch("s").read(s).value for s in (False, "false", "0", "", "off")] == [False] * 5


def test_rendering_is_pure():
    assert DEMO.render({"B": 5}) == DEMO.render({"B": 5})
    assert DEMO.render({}) == DEMO.render(DEMO.state())
    assert DEMO.render({"B": 5}).figure != DEMO.render({"B": 6}).figure


def test_an_error_of_the_view_is_reported_and_the_controls_stay():
    painted = DEMO.render({"text": "bad(", "B": 5})
    assert painted.evaluated.error == "'bad(' is not an array; write A[I_X, J]"
    assert painted.figure == ""
    assert painted.evaluated.state["text"] == "bad("
    assert painted.evaluated.outputs["B"] == "32"


def test_no_line_of_a_painted_text_ends_between_a_number_and_its_unit():
    def timed(B=1):
        if B > 9:
            raise ValueError(f"{B} tokens are more than 9 tokens")
        return View(f"{B} tokens take 1.5 ms on 4 chips.", (), (Readout("step", 1.5e-3, "s"),))

    explorer = replace(DEMO, view=timed, controls={"B": Slider("tokens", 1, 16, 8, unit="tokens")})
    painted, refused = explorer.render({}), explorer.render({"B": 10}).evaluated
    assert painted.verdict == "8\xa0tokens take 1.5\xa0ms on 4\xa0chips."
    assert "<dd>1.5\xa0ms</dd>" in painted.readouts
    assert painted.evaluated.outputs == {"B": "8\xa0tokens"}
    assert refused.error == "10\xa0tokens are more than 9\xa0tokens"
    assert explorer.render({"B": 99}).evaluated.notes == (
        "tokens: the slider goes from 1\xa0token to 16\xa0tokens",
    )
    assert painted.verdict == joined_units(explorer.evaluate().verdict)


def test_a_step_beyond_the_last_frame_reads_as_the_last():
    assert DEMO.render({"step": 99, "B": 2}).evaluated.outputs["step"] == "3 of 3"
    assert DEMO.render({"step": 99, "B": 2}).frames == 4


def test_unknown_controls_of_a_state_are_noted():
    assert DEMO.render({"B": 3, "evil": 1}).evaluated.notes == ("demo.one has no control 'evil'",)


def test_other_initial_values_make_another_explorer():
    other = DEMO.starting(B=128, chip="b <b>", on=False)
    assert other.evaluate().verdict.startswith("128 b <b> False")
    assert DEMO.evaluate().verdict.startswith("8 a True")
    with pytest.raises(ValueError, match=r"demo\.one has no D; it has B"):
        DEMO.starting(D=1)
    with pytest.raises(ValueError, match="not one of a, b"):
        DEMO.starting(chip="c")


def test_a_key_names_chapter_and_explorer():
    with pytest.raises(ValueError, match=r"chapter\.name"):
        Explorer(key="one", title="t", question="q", controls={}, view=view)


class Page(HTMLParser):
    """What the HTML holds: every element with its attributes, and that all are closed."""

    VOID = ("input", "br")

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, *tags):
        return [attrs for tag, attrs in self.found if tag in tags]


def test_the_page_has_native_controls_with_labels_and_names():
    page = Page(DEMO.html())
    inputs = page.all("input", "select")
    assert [i["name"] for i in inputs] == list(DEMO.controls)
    labelled = {label["for"] for label in page.all("label")}
    assert labelled == {i["id"] for i in inputs}
    slider = inputs[0]
    assert (slider["min"], slider["max"], slider["step"], slider["value"]) == ("0", "10", "1", "3")
    assert slider["aria-valuetext"] == "8"
    assert {o["for"] for o in page.all("output")} <= {i["id"] for i in inputs}
    assert "data-steps" in inputs[-1]
    assert inputs[-1]["max"] == "4"
    assert inputs[3]["value"] == 'A[I, J] "q"'
    ids = [attrs["id"] for _, attrs in page.found if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_page_holds_the_first_view_in_both_widths():
    html = DEMO.html()
    for wide in (True, False):
        assert DEMO.render({}, wide=wide).figure in html
    assert DEMO.evaluate().verdict.replace('"', "&quot;") in html
    assert 'aria-live="polite"' in html
    assert "<b>" not in html


def test_html_is_the_same_to_the_byte_and_a_suffix_keeps_ids_apart():
    assert DEMO.html() == DEMO.html()
    first, second = (set(re.findall(r' id="([^"]+)"', DEMO.html(s))) for s in ("", "2"))
    assert not first & second


def test_the_sentence_is_title_and_verdict():
    assert str(DEMO) == 'One & all: 8 a True A[I, J] "q" 0.'


def test_the_worker_gets_json_for_whatever_it_sends():
    told = json.loads(explorers.paint_json("rooflines.roofline", '{"B": 100}', True))
    assert set(told) == {
        "figure",
        "readouts",
        "verdict",
        "frames",
        "outputs",
        "state",
        "notes",
        "error",
        "values",
    }
    assert told["error"] is None
    assert told["figure"].startswith("<svg")
    page = "rooflines.roofline"
    for key, state in (("none.such", "{}"), (page, "{"), ("draw.x", "{}"), (page, "[1]")):
        assert json.loads(explorers.paint_json(key, state, False))["error"]
    wrong = json.loads(explorers.paint_json("rooflines.roofline", '{"level": "VMEM", "left": "H100"}', True))
    assert "H100 has no documented VMEM bandwidth" in wrong["error"]
    assert "figure" not in wrong


def test_a_key_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(LookupError, match=r"there are .*rooflines\.roofline"):
        explorers.find("rooflines.none")
    with pytest.raises(LookupError, match=r"rooflines\.roofline"):
        explorers.find("nowhere.at_all")


@pytest.mark.parametrize("key", explorers.catalog())
def test_every_explorer_of_the_book_has_a_page(key):
    assert Page(explorers.find(key).html())


def test_the_roofline_gives_the_published_numbers():
    view = explorers.find("rooflines.roofline").evaluate(B=64, D=8192, F=8192)
    assert "memory-bound on both chips" in view.verdict
    bars = view.panels[1]
    assert bars.series[0].values[0] == pytest.approx(43.6e-6, rel=1e-2)
    slope, roof = view.panels[0].marks[0], 1.97e14
    assert slope.ys[-1] == roof
    assert slope.ys[0] == pytest.approx(8.2e11, rel=0.02)
