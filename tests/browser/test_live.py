"""Explorers move and their numbers change; answer boxes judge; the address holds what was set."""

import json
import random

import pytest

from benchmarks import fit
from scalingbook_book.reader.explorers.controls import Notation, Steps
from tests.browser.conftest import SITE
from tests.browser.touching import PAINT, boxes, drag, give, others, reset, right, roots, wrong

ABOVE = "(error) => error.closest('.ex-control')?.querySelector('[name]').name"
TWICE = """(button) => [1, 2].map(() => {  // in one go: after six seconds the first press is forgotten
  button.click();
  return localStorage.getItem('scalingbook.progress');
})"""


def test_every_control_paints_what_the_library_computes_and_reset_gives_back_the_height(live):
    for root, explorer in roots(live):
        reset(live, root)
        before = root.evaluate("(root) => root.offsetHeight")
        for name, control in explorer.controls.items():
            for state in others(control)[:1]:
                live.page.evaluate(PAINT, [root, name, state])
                painted = explorer.render({name: state})
                said = painted.evaluated.error or painted.verdict
                where = ".ex-error" if painted.evaluated.error else ".ex-verdict"
                assert (name, root.query_selector(where).text_content()) == (name, said), explorer.key
                reset(live, root)
        after = root.evaluate("(root) => root.offsetHeight")
        assert abs(after - before) <= 2, explorer.key  # heights are rounded to pixels


def test_the_live_view_at_the_start_is_the_view_that_was_built(live, live_path):
    built = (SITE / live_path).read_text(encoding="utf-8")
    for root, explorer in roots(live):
        reset(live, root)
        painted = explorer.render(explorer.state())
        assert root.query_selector(".ex-verdict").text_content() == painted.verdict
        assert painted.figure in built, f"{explorer.key}: make execute, then build again"


@pytest.mark.chapters_only
def test_notation_that_cannot_be_read_says_why_and_loses_nothing(live):
    for root, explorer in roots(live):
        for name, control in explorer.controls.items():
            if isinstance(control, Notation):
                before = root.query_selector(".ex-figure").inner_html()
                field = root.query_selector(f'[name="{name}"]')
                field.fill("A[I_X, J_X")
                live.page.wait_for_function("(root) => !root.querySelector('.ex-error').hidden", arg=root)
                said = root.query_selector(".ex-error")
                assert said.inner_text().strip()
                assert field.get_attribute("aria-invalid") == "true"
                assert said.get_attribute("id") in field.get_attribute("aria-describedby").split()
                assert said.evaluate(ABOVE) == name
                assert "ex-stale" in root.get_attribute("class")
                assert root.query_selector(".ex-figure").inner_html() == before
                root.query_selector(".ex-reset").click()
                live.page.wait_for_function("(root) => root.querySelector('.ex-error').hidden", arg=root)
                assert field.get_attribute("aria-invalid") is None
                assert "ex-stale" not in root.get_attribute("class")


@pytest.mark.chapters_only
def test_sliders_answer_to_the_keyboard(live):
    for root, _ in roots(live):
        slider = root.query_selector('input[type="range"]')
        if slider is None:
            continue
        slider.focus()
        before, words = slider.input_value(), slider.get_attribute("aria-valuetext")
        key = "ArrowLeft" if float(before) >= float(slider.get_attribute("max")) else "ArrowRight"
        for _ in range(12):  # neighboring positions may round to one value
            live.page.keyboard.press(key)
        assert slider.input_value() != before
        live.page.wait_for_function(
            "([slider, words]) => slider.getAttribute('aria-valuetext') !== words"
            " && !slider.closest('[aria-busy]')",
            arg=[slider, words],
        )
        root.query_selector(".ex-reset").press("Enter")
        live.page.wait_for_function("([slider, value]) => slider.value === value", arg=[slider, before])


@pytest.mark.chapters_only
def test_steps_play(live):
    for root, explorer in roots(live):
        steps = next((n for n, c in explorer.controls.items() if isinstance(c, Steps)), None)
        if steps is None:
            continue
        field, play = root.query_selector(f'[name="{steps}"]'), root.query_selector(".ex-play")
        if float(field.get_attribute("max")) == 0:
            continue
        before = field.input_value()
        assert play.is_enabled()
        after = live.page.evaluate("([field, play]) => { play.click(); return field.value; }", [field, play])
        assert after != before
        if play.get_attribute("aria-pressed") == "true":
            play.click()
        root.query_selector(".ex-reset").click()


HELD = """([key, told]) => {  // what was shared before may stand there for a moment
  const held = new URLSearchParams(location.search).get(key);
  return held !== null && (held === told || Number(held) === told);
}"""


@pytest.mark.chapters_only
def test_the_address_holds_what_is_not_at_its_start(live):
    for root, explorer in roots(live):
        name = next((n for n, c in explorer.controls.items() if others(c)), None)
        if name is None:
            continue
        live.page.evaluate(PAINT, [root, name, others(explorer.controls[name])[0]])
        control = explorer.controls[name]
        value = control.read(others(control)[0]).value
        told = str(value).lower() if isinstance(value, bool) else value
        live.page.wait_for_function(HELD, arg=[f"{explorer.key}-{name}", told])
        root.query_selector(".ex-reset").click()
        live.page.wait_for_function("(key) => !location.search.includes(key)", arg=f"{explorer.key}-")


def test_answers_are_judged_and_hints_come_one_by_one(live):
    # the core's tests judge answers to every exercise; here each kind of box judges one
    one_of_a_kind = {check.kind: (form, check) for form, check in reversed(boxes(live))}
    for form, check in one_of_a_kind.values():
        if check.kind != "program":  # a function is wrong in its notebook
            state, text = give(live, form, wrong(check))
            assert (check.key, state) == (check.key, "wrong"), text
            assert right(check) not in text.split()
        assert give(live, form, right(check))[0] == "right", check.key
        if check.hints:
            form.query_selector(".answer-hint").click()
            live.page.wait_for_function(
                "(form) => form.querySelectorAll('.answer-hints li').length === 1", arg=form
            )
            assert form.query_selector(".answer-hints").inner_text().strip() == check.hints[0].strip()


def test_no_answer_and_no_hint_is_in_the_page(live, live_path, base):
    source = live.page.request.get(f"{base}/{live_path}").text()
    for _, check in boxes(live):
        form = source[source.index(f'data-check="{check.key}"') :]
        form = form[: form.index("</form>")]
        assert not any(hint in form for hint in check.hints)
        if check.kind == "number":
            assert right(check) not in form


@pytest.mark.chapters_only
def test_progress_is_kept_shown_exported_and_erased(live):
    solved = boxes(live)
    if not solved:
        return
    form, check = random.Random(0).choice(solved)
    give(live, form, right(check))
    kept = json.loads(live.page.evaluate("localStorage.getItem('scalingbook.progress')"))
    assert kept[check.key]["solved"]
    count = live.page.locator('.bd-sidebar-primary a[href="#"] .progress-count')
    assert not count.first.inner_text().startswith("0/")
    with live.page.expect_download() as saved:
        live.page.click('[data-progress="export"]')
    exported = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert exported["progress"] == kept
    once, twice = live.page.locator('[data-progress="erase"]').first.evaluate(TWICE)
    assert json.loads(once) == kept, "one press erases nothing"
    assert json.loads(twice) == {}
    with live.page.expect_file_chooser() as chooser:
        live.page.click('[data-progress="import"]')
    chooser.value.set_files(
        {"name": "p.json", "mimeType": "application/json", "buffer": json.dumps(exported).encode()}
    )
    live.page.wait_for_function(
        "(key) => JSON.parse(localStorage.getItem('scalingbook.progress'))[key]?.solved", arg=check.key
    )


def test_a_drag_leaves_nothing_outside_of_its_box(live):
    for root, explorer in roots(live):
        assert drag(live, root) <= 1, explorer.key


# explorers are fitted when the window rests: 200 ms after a frame has told of its size
RESTED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let n = 0; n < 2; n++) await frame();
  await new Promise((done) => setTimeout(done, 400));
  for (let n = 0; n < 2; n++) await frame();
}"""


# last of those that touch the page, for it leaves it small
def test_explorers_fit_a_laptop_and_a_phone(live):
    for width, height in fit.SCREENS.values():
        live.page.set_viewport_size({"width": width, "height": height})
        live.page.evaluate(RESTED)
        assert [one for one in fit.misses(live.page) if one["missed"]] == []


@pytest.mark.parametrize("last", [True])
def test_all_that_was_clean(live, last):
    live.assert_clean()
