"""Explorers move and their numbers change; answer boxes judge; the address holds what was set."""

import json
import random
import re

import pytest

from scalingbook_lib.chapters import checks, explorers
from scalingbook_lib.reader.checks.programs import SOLVED
from scalingbook_lib.reader.explorers.controls import Choice, Notation, Slider, Steps, Switch
from tests.browser.conftest import PATIENCE_MS, SITE

EXAMPLE = re.compile(r"[A-Z]\[[^\]]*\](?:\{\w+\})?")  # an array in the notation
SHOWN = """(root) => ['.ex-figure', '.ex-readouts', '.ex-verdict', '.ex-error']
  .map((part) => root.querySelector(part)?.innerHTML ?? '').join('|')"""
PAINT = """([root, name, value]) => new Promise((done, failed) => {
  const all = [...root.querySelectorAll(`[name="${name}"]`)];
  const input = all.find((one) => one.type !== 'radio' || one.value === value);
  const timer = setTimeout(() => failed(new Error('nothing was painted')), PATIENCE_MS);
  const finish = () => { clearTimeout(timer); setTimeout(done, 0); };
  root.addEventListener('book:painted', finish, { once: true });
  if (['radio', 'checkbox'].includes(input.type)) input.checked = value === true || input.type === 'radio';
  else input.value = value;
  input.dispatchEvent(new Event('input', { bubbles: true }));
})""".replace("PATIENCE_MS", str(PATIENCE_MS))
TWICE = """(button) => [1, 2].map(() => {  // in one go: after six seconds the first press is forgotten
  button.click();
  return localStorage.getItem('scalingbook.progress');
})"""


def others(control):
    """Some states that a control is not in at the start, near and far."""
    match control:
        case Slider():
            low, high, step = control.stops
            near = (low, high, control.initial + step, control.initial - step)
            return [stop for stop in near if stop != control.initial and low <= stop <= high]
        case Choice():
            return [option for option in control.options if option != control.initial]
        case Switch():
            return [not control.initial]
        case Steps():
            return [control.initial + 1, control.initial + 2]
        case Notation():  # the examples that its hint gives
            return [text for text in EXAMPLE.findall(control.hint) if text != control.initial]
    raise TypeError(control)


def roots(live):
    """Each explorer of a page with the object behind it."""
    return [
        (root, explorers.find(root.get_attribute("data-explorer")))
        for root in live.page.query_selector_all(".explorer")
    ]


def test_every_control_of_every_explorer_moves_something(live):
    idle = []
    for root, explorer in roots(live):
        for name, control in explorer.controls.items():
            if others(control) and not moves(live, root, explorer, name):
                idle.append(f"{explorer.key}: {name}")
    assert idle == []


def moves(live, root, explorer, name):
    """Whether a control changes anything, at the start or after some other control was moved."""
    control = explorer.controls[name]
    if any(changes(live, root, name, state) for state in others(control)):
        return True
    rest = [(n, s) for n, c in explorer.controls.items() if n != name for s in others(c)[:3]]
    return any(changes(live, root, name, state, first) for first in rest for state in others(control)[:2])


def changes(live, root, name, state, first=None):
    """Whether the picture, the numbers, the verdict or the error differ after one control was set."""
    reset(live, root)
    if first:
        live.page.evaluate(PAINT, [root, *first])
    before = root.evaluate(SHOWN)
    live.page.evaluate(PAINT, [root, name, state])
    after = root.evaluate(SHOWN)
    return after != before


def reset(live, root):
    """Press Reset and wait for the view at the start."""
    live.page.evaluate(
        """(root) => new Promise((done) => {
          root.addEventListener('book:painted', () => setTimeout(done, 0), { once: true });
          root.querySelector('.ex-reset').click();
        })""",
        root,
    )


def test_the_live_view_at_the_start_is_the_view_that_was_built(live, live_path):
    built = (SITE / live_path).read_text(encoding="utf-8")
    for root, explorer in roots(live):
        reset(live, root)
        painted = explorer.paint(explorer.state())
        assert root.query_selector(".ex-verdict").text_content() == painted.verdict
        assert painted.figure in built, f"{explorer.key}: make execute, then build again"


def test_notation_that_cannot_be_read_says_why_and_loses_nothing(live):
    for root, explorer in roots(live):
        for name, control in explorer.controls.items():
            if isinstance(control, Notation):
                before = root.query_selector(".ex-figure").inner_html()
                field = root.query_selector(f'[name="{name}"]')
                field.fill("A[I_X, J_X")
                live.page.wait_for_function("(root) => !root.querySelector('.ex-error').hidden", arg=root)
                assert root.query_selector(".ex-error").inner_text().strip()
                assert root.query_selector(".ex-figure").inner_html() == before
                root.query_selector(".ex-reset").click()
                live.page.wait_for_function("(root) => root.querySelector('.ex-error').hidden", arg=root)


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
            "([slider, words]) => slider.getAttribute('aria-valuetext') !== words", arg=[slider, words]
        )
        root.query_selector(".ex-reset").press("Enter")
        live.page.wait_for_function("([slider, value]) => slider.value === value", arg=[slider, before])


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


def test_the_address_holds_what_is_not_at_its_start(live):
    for root, explorer in roots(live):
        name = next((n for n, c in explorer.controls.items() if others(c)), None)
        if name is None:
            continue
        live.page.evaluate(PAINT, [root, name, others(explorer.controls[name])[0]])
        live.page.wait_for_function("(key) => location.search.includes(key)", arg=f"{explorer.key}.{name}=")
        root.query_selector(".ex-reset").click()
        live.page.wait_for_function("(key) => !location.search.includes(key)", arg=f"{explorer.key}.")


# ---- answer boxes


def boxes(live):
    """Each answer box of a page with its check."""
    return [
        (form, checks.find(form.get_attribute("data-check")))
        for form in live.page.query_selector_all("form.answer-box")
    ]


def give(live, form, text):
    """Type or choose an answer, press Check, and return the judgement."""
    live.page.evaluate("(form) => { form.querySelector('.answer-result').dataset.state = 'asked'; }", form)
    if form.query_selector("input[type=radio]"):
        form.query_selector(f"input[type=radio][value={json.dumps(text)}]").check()
    else:
        form.query_selector("input[type=text]").fill(text)
    form.query_selector(".answer-check").click()
    live.page.wait_for_function(
        "(form) => !['asked', 'starting'].includes(form.querySelector('.answer-result').dataset.state)",
        arg=form,
    )
    result = form.query_selector(".answer-result")
    return result.get_attribute("data-state"), result.inner_text()


def right(check):
    if check.kind == "program":
        return SOLVED
    answer = check.answer()
    return repr(float(answer)) if check.kind == "number" else str(answer)


def wrong(check):
    if check.kind == "choice":
        return next(choice for choice in check.choices if choice != check.answer())
    return "Q[Z, W_X]" if check.kind == "notation" else repr(float(check.answer()) * 17.3 + 1)


def test_answers_are_judged_and_hints_come_one_by_one(live):
    for form, check in boxes(live):
        if check.kind != "program":  # a function is wrong in its notebook, not in the page
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


@pytest.mark.parametrize("last", [True])
def test_all_that_was_clean(live, last):
    live.assert_clean()


AHEAD = """async ([root, name]) => {
  const slider = root.querySelector(`[name="${name}"]`), verdict = root.querySelector('.ex-verdict');
  let painted = false;
  root.addEventListener('book:painted', () => { painted = true; });
  const step = Number(slider.value) < Number(slider.max) ? 1 : -1;
  for (let waited = 0; waited < 200; waited++) {       // until a move is painted within its own event
    slider.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    await new Promise((done) => setTimeout(done, 50));
    painted = false;
    slider.value = Number(slider.value) + step;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    const figure = root.querySelector('.ex-wide').innerHTML;
    if (painted) return { value: slider.value, verdict: verdict.textContent, figure };
    await new Promise((done) => root.addEventListener('book:painted', done, { once: true }));
    slider.value = Number(slider.value) - step;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  }
  return null;
}"""


def beside(slider):
    """The position that AHEAD moves a slider to from its start."""
    _, last, step = slider.stops
    return slider.initial + (step if slider.initial < last else -step)


def test_a_picture_made_ahead_is_painted_at_once_and_is_the_right_one(live):
    root, explorer, name = next(
        (root, explorer, name)
        for root, explorer in roots(live)
        for name, control in explorer.controls.items()
        if isinstance(control, Slider) and not explorer.paint({name: beside(control)}).seen.error
    )
    reset(live, root)
    ahead = live.page.evaluate(AHEAD, [root, name])
    assert ahead is not None, "no move was painted within its own event"
    painted = explorer.paint(explorer.state() | {name: ahead["value"]})
    assert ahead["verdict"] == painted.verdict
    expected = live.page.evaluate(
        "(html) => { const t = document.createElement('div'); t.innerHTML = html; return t.innerHTML; }",
        painted.figure,
    )
    assert ahead["figure"] == expected
