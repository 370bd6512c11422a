"""Next and previous follow the reading, solutions fold under their chapter, and a reader's place is kept."""

import re

import pytest

from web.extension import order

BELOW = {
    "index": ["workbench", "chapters/a", "chapters/b", "notation"],
    "chapters/a": ["chapters/a_x", "chapters/a_y", "solutions/a"],
}


def test_the_order_of_reading():
    told = order.neighbors(BELOW, "index")
    assert told["index"] == (None, "chapters/a")
    assert told["chapters/a"] == ("index", "chapters/b")
    assert told["chapters/a_x"] == ("chapters/a", "chapters/a_y")
    assert told["chapters/a_y"] == ("chapters/a_x", "chapters/b")
    assert told["chapters/b"] == ("chapters/a", "workbench")
    assert told["workbench"] == ("chapters/b", "notation")
    assert told["solutions/a"] == ("chapters/a", None)


def test_a_chapter_leads_to_the_next(visit):
    page = visit().go("chapters/rooflines.html")
    assert page.locator("a.right-next").get_attribute("href") == "tpus.html"
    assert page.locator("a.left-prev").get_attribute("href") == "intro.html"


def test_the_cover_offers_where_one_was(visit):
    page = visit().go("chapters/rooflines.html")
    page.evaluate("document.getElementById('rooflines-plot').scrollIntoView()")
    page.goto(page.url.replace("chapters/rooflines.html", "index.html"))
    link = page.locator(".place a")
    assert re.search("Rooflines: The roofline plot", link.inner_text())
    link.click()
    page.wait_for_url("**/chapters/rooflines.html#*")


def test_the_contents_number_chapters_and_end_each_with_its_solutions(visit):
    page = visit(javascript=False).go("chapters/rooflines_narrow.html")
    branch = page.locator(".bd-sidebar-primary li.toctree-l1.current")
    rows = branch.locator("a.reference").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["2", "2A", "2B", "2C", "Solutions"]
    assert branch.locator("a.reference").last.get_attribute("href") == "../solutions/rooflines.html"
    parts = page.locator(".bd-sidebar-primary .caption").all_text_contents()
    assert (parts[0].strip(), parts[-1].strip()) == ("Tools and tables", "About this book")


@pytest.mark.parametrize("stem", ["rooflines", "gpus"])
def test_an_exercise_and_its_solution_have_one_number_and_link_each_other(visit, stem):
    page = visit(javascript=False).go(f"solutions/{stem}.html")
    assert page.locator("h1").inner_text().startswith("Solutions: ")
    assert "three dots" not in page.locator("article").inner_text()
    links = page.locator(".solution-from > a")
    solved = {link.get_attribute("href"): link for link in links.all()}
    numbers = {address: link.inner_text().split()[-1] for address, link in solved.items()}
    own = [int(number.split(".")[1]) for number in numbers.values()]
    assert own == list(range(1, len(own) + 1)), "the page counts without a gap"
    anchors = {}
    for address, number in numbers.items():
        heading = page.locator(f"section:has(> .solution-from > a[href='{address}']) > h2")
        assert heading.inner_text().startswith(f"{number}. ")
        anchors[address] = heading.locator("xpath=..").get_attribute("id")
    for file in sorted({address.partition("#")[0] for address in numbers}):
        page.goto(page.url.split("/solutions/")[0] + file.removeprefix(".."))
        for address, number in numbers.items():
            if address.startswith(file + "#"):
                title = page.locator(f"[id='{address.partition('#')[2]}']")
                assert title.inner_text().startswith(f"{number}. ")
                box = page.locator(f".exercise:has([id='{address.partition('#')[2]}']) .answer-solution")
                assert box.get_attribute("href") == f"../solutions/{stem}.html#{anchors[address]}"
        if len({address.partition("#")[0] for address in numbers}) > 1:
            assert page.locator(".exercise-others a").count()
        page.go_back()
