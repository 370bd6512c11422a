"""Has everything a number and an address, does a link show what it leads to, can an explorer stand alone?"""

import html
import re

from tests.browser.conftest import SITE
from web import pdf, serve

NUMBERS = """() => [...document.querySelectorAll("figcaption .number, .ex-title .number, caption")]
  .map((one) => one.textContent.match(/(Figure|Explorer|Table) (\\w+)\\.(\\d+)/).slice(1))"""
ANCHORS = """() => [...document.querySelectorAll("figcaption, .ex-title, caption, .eqno, .exercise-title")]
  .map((one) => one.querySelector("a.headerlink").hash.slice(1))"""


def test_figures_explorers_and_tables_count_from_one_in_their_chapter(visit):
    for name, number in (("rooflines", "2"), ("rooflines_narrow", "2A"), ("gpus_network_plans", "12C")):
        page = visit(javascript=False).go(f"chapters/{name}.html")
        assert page.locator(".page-number").inner_text() == f"Chapter {number}"
        seen = page.evaluate(NUMBERS)
        assert {chapter for _, chapter, _ in seen} == {number}
        for kind in {kind for kind, _, _ in seen}:
            own = [int(at) for other, _, at in seen if other == kind]
            assert own == list(range(1, len(own) + 1)), kind
        exercises = page.locator(".exercise-title").all_inner_texts()
        told = [one.split(". ")[0] for one in exercises]
        assert len(set(told)) == len(told)
        assert {one.split(".")[0] for one in told} <= {number.rstrip("ABC")}, "of the chapter that asks"
        anchors = page.evaluate(ANCHORS)
        assert len(anchors) == len(set(anchors)) > len(seen)
        assert all(page.locator(f"[id='{one}']").count() == 1 for one in anchors)


REFERENCES = (  # by page: an anchor that it refers to, and what it reads
    ("posttraining_faults", "#fig-posttraining-ladder", r"Figure \d+\.\d+"),
    ("gpus_network_measured", "gpus_network.html#eq-t-3", r"formula of two stages \(\d+\.\d+\)"),
    ("tpus_generations", "tpus.html#table-tpus-table", r"one table of all generations \(\d+\.\d+\)"),
)


def test_a_reference_reads_the_number_of_what_it_leads_to():
    for name, address, reads in REFERENCES:
        page = SITE / f"chapters/{name}.html"
        said = re.search(
            rf'<a class="reference internal" href="{address}">(.*?)</a>', page.read_text("utf-8")
        )
        file, _, anchor = address.partition("#")
        shown = (page.with_name(file) if file else page).read_text("utf-8")
        number = re.search(r"[\d.]+(?=\)?$)", re.sub("<[^>]+>", "", said[1]))
        assert re.fullmatch(reads, re.sub("<[^>]+>", "", said[1]))
        assert re.search(
            rf'[ (]{re.escape(number[0])}(?:\)|</span>)<a class="headerlink" href="#{anchor}"', shown
        )


def test_a_number_is_a_link_that_is_copied(visit):
    visited = visit()
    page = visited.go("chapters/rooflines.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    link = page.locator("figcaption a.headerlink").first
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("figcaption a.headerlink[data-done]")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert page.url.endswith(link.get_attribute("href"))


LINK = "article a.reference.internal[href*='.html#']:not(.term)"


def test_a_link_shows_its_section_to_pointer_and_keyboard(visit):
    visited = visit(bypass_csp=False)
    page = visited.go("chapters/rooflines.html")
    link, card = page.locator(LINK).first, page.locator(".term-card")
    link.scroll_into_view_if_needed()
    link.hover()
    card.wait_for(state="visible")
    assert len(card.inner_text()) > 60
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    page.keyboard.press("Escape")
    assert card.is_hidden()
    assert link.get_attribute("aria-describedby") is None
    page.mouse.move(0, 0)
    page.keyboard.press("Tab")
    link.focus()
    card.wait_for(state="visible")
    visited.assert_clean()


def test_a_finger_sees_the_card_first_and_follows_with_the_second_touch(visit):
    page = visit(width=390, has_touch=True).go("chapters/rooflines.html")
    link, before = page.locator(LINK).first, page.url
    link.scroll_into_view_if_needed()
    link.tap()
    page.locator(".term-card").wait_for(state="visible")
    assert page.url == before
    link.tap()
    page.wait_for_url(lambda url: url != before)


SHOW = """(anchor) => {
  const link = document.querySelector("article a.reference.internal[href*='.html#']:not(.term)");
  link.href = anchor;
  link.scrollIntoView({ block: "center" });
}"""


def test_cards_show_figures_formulas_tables_exercises_and_works(visit):
    page = visit().go("chapters/rooflines.html")
    shown = {
        "#" + page.locator("figure.fig").first.get_attribute("id"): "figure svg",
        "#" + page.locator("div.math[id]").first.get_attribute("id"): ".katex-display",
        "#" + page.locator("table[id]").first.get_attribute("id"): "tr",
        "#" + page.locator(".exercise-title").first.get_attribute("id"): "strong",
        "../bibliography.html#" + re.findall(r'id="([^"]+)"', bibliography())[0]: ".citation a[href^=http]",
    }
    for anchor, part in shown.items():
        page.mouse.move(0, 0)
        page.evaluate(SHOW, anchor)
        page.wait_for_timeout(100)
        page.locator(f'a.reference.internal[href="{anchor}"]').first.hover()
        page.locator(f".term-card:visible {part}").first.wait_for(state="visible")
        page.keyboard.press("Escape")


def bibliography():
    text = (SITE / "bibliography.html").read_text("utf-8")
    return text[text.index('class="citation-list"') :]


def test_a_book_in_a_folder_has_plain_links(visit):
    page = visit().page
    page.goto((SITE / "chapters/rooflines.html").as_uri(), wait_until="load")
    page.locator(LINK).first.hover()
    page.wait_for_timeout(400)
    assert page.locator(".term-card:visible").count() == 0


def test_an_explorer_can_be_framed_with_its_values_and_nothing_else_can(visit):
    visited = visit(width=1366)
    page = visited.go("chapters/rooflines.html?rooflines.roofline-B=251")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visited.wake()
    root = page.locator('.explorer[data-explorer="rooflines.roofline"]')
    root.locator(".ex-verdict", has_text="251 tokens").wait_for(state="attached")
    told = root.locator(".ex-verdict").text_content()
    root.locator(".ex-more > summary").click()
    root.get_by_role("button", name="Copy embed code").click()
    root.get_by_role("button", name="Copied").wait_for()
    code = page.evaluate("navigator.clipboard.readText()")
    address = html.unescape(re.search(r'src="([^"]+)"', code)[1])
    assert address == f"{visited.base}/embed/rooflines-roofline.html?rooflines.roofline-B=251"
    alone = visit(bypass_csp=False)
    alone.go(address.removeprefix(f"{visited.base}/"))
    alone.page.locator("html[data-live]").wait_for()
    alone.page.locator(".explorer").dispatch_event("pointerdown")
    alone.page.locator("html[data-live=live]").wait_for()
    alone.page.locator(".ex-verdict", has_text=told).wait_for()
    back = alone.page.locator(".embedded-from a").first.get_attribute("href")
    assert back == "../chapters/rooflines.html#ex-rooflines-roofline"
    assert "CC BY" in alone.page.locator(".embedded-from").inner_text()
    alone.assert_clean()
    assert "frame-ancestors" not in serve.framed("/embed/rooflines-roofline.html")
    assert "frame-ancestors 'none'" in visit().page.request.get(f"{visited.base}/index.html").headers[
        "content-security-policy"
    ]  # fmt: skip


def test_contents_say_the_pages_of_a_pdf():
    told = b"7 0 obj\n<</Type /Page\n>>\n9 0 obj\n<</Type /Page\n>>\n<</chapters-a [9 0 R /XYZ 0 821 0]\n>>"
    assert pdf.places(told) == {"chapters-a": 2}
