"""Does the search find what readers ask for, at the section, while they type, for few bytes?

What it answers is asked in Node, with the index of the built site; a browser shows the dialog alone.
"""

import csv
import functools
import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.browser.conftest import SITE, built
from tests.browser.test_reading import ids
from web import vendor
from web.extension.search import questions

HERE = Path(__file__).parent


def _rows(path):
    return list(csv.DictReader(path.open(encoding="utf-8")))


# Each list was written before any of it was asked: four of 40, half drawn from the glossary, half as readers
# type, and an older one with words that the book has in several places.
QUERIES = _rows(HERE / "queries.csv")
FIRST = {"tuned": 0.87, "first": 0.89, "second": 0.92, "third": 0.95, "fourth": 0.87}
IN_THREE = 0.95
TERMS = _rows(HERE / "terms.csv")  # words of the field, and the sections that may come first
ABSENT = _rows(vendor.HERE / "absent.csv")  # words of the field that the book does not treat
LIMIT_BYTES = 60_000  # compressed, before the first letter is typed
SOURCE = re.compile(
    r"\\[A-Za-z]+|\b[a-z]{3,}(?:19|20)\d\d[a-z]{3,}\b|→ [a-z_\d]+-[a-z-]+\b"
)  # TeX, citation keys, labels


@functools.cache
def everything():
    """What the search answers to every query of these lists."""
    asked = (
        [row["query"] for row in QUERIES] + [row["term"] for row in TERMS] + [row["word"] for row in ABSENT]
    )
    library = vendor.package("minisearch") / "dist/es/index.js"
    command = [vendor.node(), str(HERE / "ask.mjs"), str(library), str(built() / "_static")]
    told = subprocess.run(command, input=json.dumps(asked), capture_output=True, encoding="utf-8", check=True)
    return dict(zip(asked, json.loads(told.stdout), strict=True))


def first(query, count=3):
    """The addresses that come first: `chapters/rooflines#rooflines-matmul`."""
    found = everything()[query]["results"][:count]
    return [f"{one['page'].removesuffix('.html')}#{one['anchor']}" for one in found]


@pytest.mark.parametrize("name", FIRST)
def test_the_first_answers_are_of_the_page_that_teaches_it(name):
    later, missed, asked = {}, {}, [row for row in QUERIES if row["list"] == name]
    for row in asked:
        found = [Path(one.partition("#")[0]).name for one in first(row["query"])]
        if found[:1] and found[0] in row["pages"].split():
            continue
        (later if set(found) & set(row["pages"].split()) else missed)[row["query"]] = found
    assert len(missed) <= len(asked) * (1 - IN_THREE), missed
    assert len(missed) + len(later) <= len(asked) * (1 - FIRST[name]), missed | later


def test_the_fields_terms_lead_to_their_sections():
    assert len(TERMS) > 100
    wrong = {row["term"]: first(row["term"], 1) for row in TERMS}
    allowed = {row["term"]: row["sections"].split() for row in TERMS}
    assert {term: found for term, found in wrong.items() if not set(found) & set(allowed[term])} == {}


def test_a_word_that_the_book_does_not_treat_is_answered_with_the_nearest_section():
    for row in ABSENT:
        answer = everything()[row["word"]]
        assert (answer["absent"], first(row["word"], 1)) == (row["word"], [row["section"]])


def test_a_word_that_the_book_treats_by_now_is_not_listed_as_absent():
    """Whoever writes about one of these words removes its row from `web/absent.csv`."""
    source = (built() / "_static/search-texts.js").read_text(encoding="utf-8")
    treated = {
        row["word"]: bool(re.search(rf"\b{row['word'].replace(' ', '[- ]')}\b", source, re.I))
        for row in ABSENT
    }
    assert [word for word, found in treated.items() if found] == []


def test_results_show_readable_text_around_the_words_and_say_the_chapter():
    shown = [one for answer in everything().values() for one in answer["results"]]
    assert [one["excerpt"] for one in shown if SOURCE.search(one["excerpt"])] == []
    assert not any(one["page"].startswith("solutions/") for one in shown)
    inside = [one for one in shown if one["page"].startswith("chapters/") and one["anchor"]]
    assert all(one["where"] for one in inside)
    hits = [one for one in shown if any(word in one["excerpt"].lower() for word in one["words"])]
    assert len(hits) > 0.8 * len(shown)  # the others have the words in their heading alone


def test_what_readers_ask_leads_to_sections_of_the_book():
    told = {
        *questions(),
        *(row["section"] for row in ABSENT),
        *(s for row in TERMS for s in row["sections"].split()),
    }
    places = [section.split("#") for section in told]
    assert len(places) > 300
    lost = [(page, anchor) for page, anchor in places if anchor not in {"", *ids(SITE / f"{page}.html")}]
    assert lost == []


@pytest.fixture
def search(visit):
    """The dialog, open, with all prose loaded; and what it answers: addresses below the root."""
    page = visit().go("chapters/rooflines.html")
    page.keyboard.press("Control+k")
    field = page.locator("#search-dialog input")
    field.fill("roofline")
    page.wait_for_selector(".found-lead:not(:empty)")

    def ask(query):
        field.fill(query)
        return page.eval_on_selector_all(".found a", "links => links.map((one) => one.href)")

    return page, ask


@pytest.mark.smoke
def test_results_open_at_the_section_and_show_the_words(search):
    page, ask = search
    assert any("#rooflines-intensity" in link for link in ask("arithmetic intensity"))
    assert "arithmetic" in page.locator(".found mark").first.inner_text().lower()
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.href")
    page.keyboard.press("Enter")
    page.wait_for_url(chosen)
    page.wait_for_function("CSS.highlights.get('found')?.size > 0")
    assert not page.locator("#search-dialog").is_visible()


@pytest.mark.smoke
def test_the_dialog_says_what_is_not_found(search):
    page, ask = search
    assert ask("zzzzqqqq xxyyzz") == []
    assert "No results" in page.locator(".found-said").inner_text()
    for row in ABSENT[:1]:
        assert len(ask(row["word"])) == 1
        assert f"“{row['word']}” is not in this book" in page.locator(".found-said").inner_text()


def test_little_is_loaded_before_the_first_letter(visit):
    visited = visit()
    page = visited.go("chapters/rooflines.html")
    before = len(visited.asked)
    page.keyboard.press("Control+k")
    page.wait_for_selector(".found", state="attached")
    page.wait_for_load_state("networkidle")
    names = [Path(one).name for one in visited.asked[before:] if "search" in one]
    assert sorted(names) == ["search-heads.js", "search.js"]
    assert sum(len(gzip.compress((SITE / "_static" / one).read_bytes())) for one in names) <= LIMIT_BYTES


def test_a_book_in_a_folder_can_be_searched(visit):
    page = visit().page
    page.goto((SITE / "index.html").as_uri(), wait_until="load")
    page.keyboard.press("Control+k")
    page.locator("#search-dialog input").fill("rooflne")
    page.wait_for_selector(".found a")
    assert "rooflines" in page.locator(".found a").first.get_attribute("href")
