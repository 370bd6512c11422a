"""What was kept or linked when exercises had numbers for keys is found under their names."""

import json

import pytest

from scalingbook_lib.chapters import checks

STORE = "scalingbook.progress"
ORDINALS = ("rooflines.1", "rooflines.3", "jax.6")
# As the site of 2026-11 stored it: one solved, one under both keys, one of another chapter.
KEPT = {
    "rooflines.1": {"solved": True, "tries": 2, "hints": 1, "when": "2026-10-01"},
    "rooflines.3": {"solved": True, "tries": 1, "hints": 0, "when": "2026-10-02"},
    "rooflines.int8-weights": {"solved": False, "tries": 4, "hints": 2, "when": "2026-11-23"},
    "jax.6": {"solved": False, "tries": 3, "hints": 3, "when": "2026-10-03"},
}


@pytest.fixture
def page(visit):
    return visit().go("chapters/rooflines.html")


def progress(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{STORE}') ?? '{{}}'"))


def assert_read_by_name(found):
    names = [checks.ordinals()[ordinal] for ordinal in ORDINALS]
    assert sorted(found) == sorted(names)
    assert found[names[0]] == KEPT["rooflines.1"]
    assert [found[names[1]][what] for what in ("solved", "tries", "hints")] == [True, 4, 2]
    assert found[names[2]] == KEPT["jax.6"]


def test_progress_under_numbers_is_kept_under_names(page):
    page.evaluate(f"(kept) => localStorage.setItem('{STORE}', JSON.stringify(kept))", KEPT)
    for _ in range(2):  # the second time nothing is left to rename
        page.reload()
        page.wait_for_function(f"localStorage.getItem('{STORE}').includes('scattered-sum')")
        assert_read_by_name(progress(page))
    page.wait_for_selector('.answer-box.solved[data-check="rooflines.no-overlap"]', state="attached")
    counts = page.locator('.bd-sidebar-primary a[href="#"] .progress-count')
    assert counts.first.inner_text().startswith("2/")


def test_a_file_that_was_exported_under_numbers_takes_nothing_back(page):
    solved = {"jax.scattered-sum": {"solved": True, "tries": 1, "hints": 0, "when": "2026-11-23"}}
    page.evaluate(f"(kept) => localStorage.setItem('{STORE}', JSON.stringify(kept))", solved)
    page.reload()
    file = json.dumps({"book": "scalingbook", "version": 1, "progress": KEPT})
    with page.expect_file_chooser() as chooser:
        page.locator('[data-progress="import"]').first.click()
    chooser.value.set_files({"name": "p.json", "mimeType": "application/json", "buffer": file.encode()})
    page.wait_for_function(f"localStorage.getItem('{STORE}').includes('no-overlap')")
    found = progress(page)
    assert found["jax.scattered-sum"]["solved"]
    assert found["jax.scattered-sum"]["tries"] == 3
    assert found["rooflines.no-overlap"] == KEPT["rooflines.1"]


@pytest.mark.parametrize("ordinal", ["rooflines.1", "rooflines.16"])
def test_an_anchor_with_a_number_leads_to_its_exercise(visit, ordinal):
    page = visit().go(f"chapters/rooflines.html#exercise-{ordinal.replace('.', '-')}")
    key = checks.ordinals()[ordinal].replace(".", "-")
    top = page.locator(f"#exercise-{key}").bounding_box()["y"]
    assert 0 <= top < page.viewport_size["height"]


def moved(anchor):
    return f"chapters/rooflines.html#{anchor}"


@pytest.mark.parametrize(
    ("asked", "page", "anchor"),
    [
        (moved("rooflines-measure"), "rooflines_measured", "rooflines-measure"),
        (moved("what-your-own-machine-says"), "rooflines_measured", "what-your-own-machine-says"),
        (moved("exercise-rooflines-6"), "rooflines_narrow", "exercise-rooflines-int8-exact"),
        (moved("exercise-rooflines-int8-exact"), "rooflines_narrow", "exercise-rooflines-int8-exact"),
        ("chapters/rooflines.html?rooflines.critical_batch.w=1", "rooflines_narrow", ""),
        (moved("rooflines-batch"), "rooflines", "rooflines-batch"),
        (moved("no-such-place"), "rooflines", "no-such-place"),
    ],
)
def test_an_old_address_leads_to_the_page_that_has_it_now(visit, asked, page, anchor):
    visited = visit()
    tab = visited.go("chapters/intro.html")
    for _ in ("from another page", "from the page itself"):
        tab.goto(f"{visited.base}/{asked}")
        tab.wait_for_url(f"**/{page}.html*")
        tab.wait_for_load_state("networkidle")
        assert tab.url.partition("#")[0].partition("?")[0].endswith(f"/{page}.html")
        told = tab.evaluate("[location.hash.slice(1), location.search]")
        if "?" in asked:
            assert told[1] == asked[asked.index("?") :]
        if anchor not in ("", "no-such-place"):
            assert tab.locator(f"[id='{told[0]}']").count() == 1
            shown = tab.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", told[0])
            assert -5 <= shown < tab.viewport_size["height"]
    assert visited.console == []  # a page that is left early asks for files in vain
