"""The Workbench is live: it computes, keeps results through an error, is shared by its address, and saved."""

import contextlib
import json
import subprocess
import sys

import pytest

from scalingbook_lib.units import si
from tests.browser.conftest import PATIENCE_MS

SMALL = "model=llama-3-8b&machine=v5e%3A4x4&server=v5e%3A2x2&batch=64&weights=int8"
# a round, because the page is built with the answers to its default set-up
DONE = """() => document.querySelector('.workbench').dataset.round
  && /^(Computed|Not)/.test(document.querySelector('.workbench-status').textContent)
  && !document.querySelector('.workbench-stale')"""


@pytest.fixture(scope="module")
def bench(browser, base):
    """The page with a small set-up, computed once; its tests share it."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, bypass_csp=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{base}/workbench.html#{SMALL}")
    settle(page)
    yield page
    context.close()


def settle(page):
    page.wait_for_function(DONE)


def change(page, name, value, which=0):
    with begun(page):
        page.locator(f'[name="{name}"]').nth(which).fill(value)


@contextlib.contextmanager
def begun(page):
    """What happens within begins another round."""
    before = page.get_attribute(".workbench", "data-round")
    yield
    page.wait_for_function("(n) => document.querySelector('.workbench').dataset.round !== n", arg=before)


def told(page, panel):
    return page.inner_text(f'[data-panel="{panel}"] .workbench-shown')


@pytest.mark.smoke
def test_a_change_computes_anew_and_the_page_answers_meanwhile(bench):
    before = told(bench, "plan")
    change(bench, "batch", "128")
    bench.locator("summary").first.focus()  # while Python searches
    bench.keyboard.press("Enter")
    assert bench.locator("details").first.get_attribute("open") is not None
    settle(bench)
    assert told(bench, "plan") != before
    assert "batch=128" in bench.evaluate("location.hash")
    change(bench, "batch", "64")
    settle(bench)
    assert told(bench, "plan") == before


def test_each_panel_opens_into_its_derivation_and_the_section_that_teaches_it(bench):
    panels = bench.locator(".workbench-panel")
    opens = panels.filter(has=bench.locator("summary", has_text="Derivation"))
    taught = panels.filter(has=bench.locator(".workbench-teaches a[href*='#']"))
    assert taught.count() == panels.count() == 5
    assert opens.count() == 4  # the cost follows from the panels of training and serving


def test_its_pictures_have_the_colours_of_the_theme(bench):
    ink = "getComputedStyle(document.querySelector('.workbench-picture')).getPropertyValue('--ex-c0')"
    light = bench.evaluate(ink)
    bench.evaluate("document.documentElement.dataset.theme = 'dark'")
    dark = bench.evaluate(ink)
    bench.evaluate("document.documentElement.dataset.theme = 'light'")
    assert light
    assert dark not in ("", light)


def test_one_bad_field_is_marked_and_the_last_results_stay_dimmed(bench):
    before = told(bench, "plan")
    change(bench, "machine", "v5e:none")
    bench.wait_for_function("document.querySelector('[name=machine]').ariaInvalid === 'true'")
    field = bench.locator('[name="machine"]')
    assert field.input_value() == "v5e:none"
    assert "write" in field.locator("..").locator(".workbench-error").inner_text()
    assert bench.locator(".workbench-error:visible").count() == 1
    assert told(bench, "plan") == before
    opacity = "Number(getComputedStyle(document.querySelector('[data-panel=plan] .workbench-shown')).opacity)"
    assert bench.evaluate(opacity) < 1
    assert "Correct the marked field" in bench.inner_text(".workbench-status")
    change(bench, "machine", "v5e:4x4")
    settle(bench)
    assert field.get_attribute("aria-invalid") is None
    assert bench.evaluate(opacity) == 1


def test_old_numbers_are_dimmed_with_the_first_key(bench):
    with begun(bench):
        bench.locator('[name="prompt"]').fill("512")
        assert bench.locator(".workbench.workbench-stale").count() == 1
    settle(bench)
    change(bench, "prompt", "1024")
    settle(bench)


def test_what_does_not_fit_says_so_first_and_a_button_sets_a_machine_that_does(bench):
    change(bench, "server", "1xv5e")
    settle(bench)
    assert "Read as v5e:1x1" in bench.inner_text(".workbench-note:visible")
    change(bench, "model", "llama-3-70b")
    settle(bench)
    first = bench.inner_text('[data-panel="serve"] .workbench-column > :first-child')
    assert first.startswith("Serving does not fit on TPU v5e 1x1")
    assert "Serving does not fit" in bench.inner_text(".workbench-bar")
    with begun(bench):
        bench.click('[data-panel="serve"] [data-apply="server"]')
    settle(bench)
    assert "Serving fits" in bench.inner_text(".workbench-bar")
    change(bench, "model", "llama-3-8b")
    change(bench, "server", "v5e:2x2")
    settle(bench)


def test_a_pasted_config_names_itself(bench):
    config = {
        "model_type": "qwen3", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 32000,
    }  # fmt: skip
    bench.locator(".workbench-setup summary").click()
    change(bench, "config", json.dumps(config))
    settle(bench)
    assert bench.input_value('[name="model"]') == "qwen3 (config.json)"
    change(bench, "config", "")
    settle(bench)
    assert bench.input_value('[name="model"]') == "llama-3-8b"


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_the_status_stays_in_view(visit, width, height):
    page = visit(width=width).go("workbench.html")
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
    box = page.locator(".workbench-bar").bounding_box()
    assert 0 <= box["y"] < 120
    seen = "([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('.workbench-bar'))"
    assert page.evaluate(seen, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    assert width > 400 or box["height"] < 45  # one line
    if width > 1000:  # the fields are beside the results
        field = page.locator('[name="model"]').bounding_box()
        assert 0 <= field["y"] < height


def test_two_set_ups_stand_side_by_side_and_share_one_address(bench):
    with begun(bench):
        bench.click('[data-do="compare"]')
    settle(bench)
    change(bench, "machine", "v5e:4x8", which=1)
    settle(bench)
    shown = bench.inner_text(".workbench-differences")
    assert "v5e:4x8 instead of v5e:4x4" in shown
    assert "Training step" in shown
    assert "b.machine=v5e" in bench.evaluate("location.hash")
    assert bench.locator(".workbench-panel .workbench-column").count() == 10
    first, second = (bench.locator(".workbench-setup").nth(n).bounding_box() for n in range(2))
    assert first["y"] == second["y"]
    assert first["x"] < second["x"]
    with begun(bench):
        bench.click('[data-do="compare"]')
    settle(bench)


def test_what_is_saved_repeats_the_figures(bench, tmp_path):
    with bench.expect_download() as saved:
        bench.click('[data-do="json"]')
    (kept,) = json.loads(saved.value.path().read_text(encoding="utf-8"))
    line = next(x for x in bench.inner_text(".workbench-repeat pre").splitlines() if " plan " in x)
    command = [sys.executable, "-m", "scalingbook_cli", *line.split()[1:], "--json"]
    again = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert again["plan"] == kept["plan"]["plan"]
    assert again["step_time_s"] == pytest.approx(kept["plan"]["step_time_s"], rel=1e-9)
    with bench.expect_download() as saved:
        bench.click('[data-do="notebook"]')
    first, *cells = [
        cell["source"]
        for cell in json.loads(saved.value.path().read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    (tmp_path / "told.py").write_text("\n".join(["".join(first), *cells]), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, tmp_path / "told.py"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert f"{si(kept['plan']['run']['chip_hours'])} chip-hours" in ran.stdout


def test_an_input_that_flips_the_decision_is_found(bench):
    bench.click('[data-flip="plan"]')
    count = len(bench.get_attribute('[data-flip="plan"]', "data-inputs").split(","))
    bench.wait_for_function(
        "(n) => document.querySelectorAll('[data-panel=plan] .workbench-flips li').length === n", arg=count
    )
    assert "HBM capacity" in bench.inner_text('[data-panel="plan"] .workbench-flips')


def test_the_first_set_up_is_answered_before_any_python_has_come(visit):
    visited = visit()
    page = visited.go("workbench.html")
    page.wait_for_function("!document.querySelector('.workbench-stale')")
    assert page.locator(".workbench-shown dl").count() == 4  # the derivations
    assert "when the book was built" in page.inner_text(".workbench-status")
    assert not [url for url in visited.asked if "/live/" in url]
    before = told(page, "plan")
    change(page, "batch", "8Mi")
    page.wait_for_function(
        "document.querySelector('.workbench-status').textContent === 'Computed in your browser.'"
    )
    assert told(page, "plan") != before


def test_without_scripts_every_panel_has_what_was_computed_at_the_build(visit):
    page = visit(javascript=False).go("workbench.html")
    assert "scalingbook plan" in page.inner_text(".workbench-repeat pre")
    assert "Training fits" in page.inner_text(".workbench-bar")
    for panel in page.locator(".workbench-panel").all():
        assert len(panel.locator(".workbench-shown").inner_text()) > 50
