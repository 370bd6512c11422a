"""What was typed is there after a return, what is not stored is said, and a hostile file runs nothing."""

import json

import pytest
from playwright.sync_api import expect

from scalingbook_book.chapters import checks
from tests.browser.touching import right

PAGE = "chapters/rooflines.html"
STORE = "scalingbook.progress"
FULL = "Storage.prototype.setItem = () => { throw new DOMException('no room', 'QuotaExceededError'); }"
PRIVATE = """Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('no', 'SecurityError'); }
})"""
NOTE = ".progress-note"


def numbers(page):
    """The boxes on the page that ask for a number, by their keys."""
    keys = page.eval_on_selector_all(".answer-box", "boxes => boxes.map((box) => box.dataset.check)")
    return [check for key in keys if (check := checks.find(key)).kind == "number" and len(check.hints) > 1]


def choose(page, content):
    """Import a file of this content."""
    with page.expect_file_chooser() as chooser:
        page.locator('[data-progress="import"]').first.click()
    chooser.value.set_files({"name": "p.json", "mimeType": "application/json", "buffer": content.encode()})


def test_answers_and_hints_are_there_after_a_return(visit):
    visited = visit()
    page = visited.go(PAGE)
    check, other = numbers(page)[:2]
    box, typed = (page.locator(f'.answer-box[data-check="{one.key}"]') for one in (check, other))
    visited.wake()
    for _ in range(2):
        box.locator(".answer-hint").click()
        page.wait_for_function(
            "(button) => !button.disabled || button.textContent.startsWith('No')",
            arg=box.locator(".answer-hint").element_handle(),
        )
    box.locator("input[type=text]").fill(str(right(check)))
    box.locator("button[type=submit]").click()
    box.locator('[data-state="right"]').wait_for()
    typed.locator("input[type=text]").press_sequentially("17 ms")
    typed.locator("input[type=text]").press("Tab")  # not even checked
    page.reload()
    # the script that puts it back comes after the page
    expect(box.locator("input[type=text]")).to_have_value(str(right(check)))
    expect(typed.locator("input[type=text]")).to_have_value("17 ms")
    assert box.locator(".answer-hints li").count() == 0
    assert box.locator(".answer-hint").inner_text() == "Hints 1 to 2 again"
    box.locator(".answer-hint").click()
    box.locator(".answer-hints li").nth(1).wait_for()
    assert [hint.inner_text() for hint in box.locator(".answer-hints li").all()] == list(check.hints[:2])


@pytest.mark.parametrize("without", [FULL, PRIVATE])
def test_where_nothing_is_stored_the_reader_is_told_and_may_export(visit, without):
    visited = visit()
    visited.page.add_init_script(without)
    page = visited.go(PAGE)
    expect(page.locator(NOTE).first).to_contain_text("Not saved: this browser does not store data")
    if without == PRIVATE:  # then Predict boxes ask, too
        page.locator(".guess-choices button").first.click()
        expect(page.locator(".guess").first).to_contain_text("Not saved")
    check = numbers(page)[0]
    page.locator(f'.answer-box[data-check="{check.key}"] input[type=text]').fill("17 ms")
    page.keyboard.press("Tab")
    with page.expect_download() as saved:
        page.click('[data-progress="export"]')
    exported = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert exported["progress"][check.key]["answer"] == "17 ms"
    assert visited.console == []


def test_a_hostile_file_runs_nothing_and_takes_nothing_back(visit):
    visited = visit()
    page = visited.go(PAGE)
    held = {"rooflines.no-overlap": {"solved": True, "tries": 2, "hints": 1, "when": "2026-11-22"}}
    page.evaluate(f"(kept) => localStorage.setItem('{STORE}', JSON.stringify(kept))", held)
    page.reload()
    bad = "<img src=x onerror=\"document.title='ran'\">"
    entry = {
        "solved": True,
        "tries": 1,
        "hints": 0,
        "answer": bad,
        "guess": bad,
        "judged": "near",
        "page": bad,
    }
    hostile = {f"{bad}.x": entry, "__proto__": entry, "guess.x-1": entry, numbers(page)[1].key: entry}
    for content, said in (
        ("not JSON", "Not imported: it is not JSON. Choose a file that Export wrote."),
        (
            json.dumps({"book": bad}),
            "Not imported: it is not an export of this book. Choose a file that Export wrote.",
        ),
        (
            json.dumps({"book": "scalingbook", "version": 1, "progress": hostile}),
            "Imported: 2 exercises and guesses; 2 more could not be read.",
        ),
    ):
        choose(page, content)
        page.wait_for_function(f"(said) => document.querySelector('{NOTE}').textContent === said", arg=said)
    page.reload()
    page.goto(page.url.replace("rooflines", "conclusion"))
    assert bad in page.locator(".guess-report").inner_text()
    assert page.title() != "ran"
    kept = json.loads(page.evaluate(f"localStorage.getItem('{STORE}')"))
    assert kept["rooflines.no-overlap"] == held["rooflines.no-overlap"]
    assert visited.console == []
