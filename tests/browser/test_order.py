"""Next and previous follow the reading, answers stand apart, and a reader's place is kept."""

from web.extension import order

BELOW = {
    "index": ["chapters/a", "chapters/b", "solutions/a", "notation"],
    "chapters/a": ["chapters/a_x", "chapters/a_y"],
}


def test_the_order_of_reading():
    told = order.neighbors(BELOW, "index")
    assert told["index"] == (None, "chapters/a")
    assert told["chapters/a"] == ("index", "chapters/b")
    assert told["chapters/a_x"] == ("chapters/a", "chapters/a_y")
    assert told["chapters/a_y"] == ("chapters/a_x", "chapters/b")
    assert told["chapters/b"] == ("chapters/a", "notation")
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
    assert "The roofline plot" in link.inner_text()
    link.click()
    page.wait_for_url("**/chapters/rooflines.html#*")
