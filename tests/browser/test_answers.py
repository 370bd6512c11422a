"""Answer boxes judge, hints come one by one, and progress is kept, exported and erased."""

import json
import random

from scalingbook_lib.chapters import checks
from scalingbook_lib.reader.checks.programs import SOLVED

TWICE = """(button) => [1, 2].map(() => {  // in one go: after six seconds the first press is forgotten
  button.click();
  return localStorage.getItem('scalingbook.progress');
})"""


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
