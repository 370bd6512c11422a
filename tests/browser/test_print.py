"""On paper a page is its text: light, titled, unfolded; bound, its links lead inside."""

import re
import xml.etree.ElementTree as ET
import zipfile
from datetime import date
from fnmatch import fnmatch

import pikepdf
import pytest

from conftest import SITE, pages
from scalingbook_book.chapters.conclusion import sheet
from tools.environment import ROOT
from web import bound, epub, pdf, stamp
from web.extension import licenses

STEM = "rooflines"
DAY = date(2026, 11, 23)
AROUND = ".bd-sidebar, .bd-header-article, .prev-next-footer, button, input[type=range]"
SEEN = """(around) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const flat = (selector) => all(selector).filter((one) => !one.getBoundingClientRect().height).length;
  return {
    title: document.querySelector('h1').checkVisibility(),
    around: all(around).filter((one) => one.checkVisibility()).map((one) => one.className),
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.querySelector('article section > p:not([class])')).color,
    settings: flat('.ex-control label'),
    waiting: flat('[hidden=until-found]'),
    folded: flat('article details:not(.ex-more) > :not(summary)'),
  };
}"""
TOLD = """addEventListener('beforeprint', () => {
  globalThis.printed = document.documentElement.dataset.theme;
})"""


def test_a_dark_page_is_printed_light_and_whole(visit):
    page = visit(dark=True).go("chapters/rooflines.html")
    page.evaluate(TOLD)
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("printed") == "light"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark", "the reader's own again"
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.emulate_media(media="print")
    seen = page.evaluate(SEEN, AROUND)
    ink = [int(part) for part in re.findall(r"\d+", seen.pop("ink"))[:3]]
    assert max(ink) < 80
    assert seen == {
        "title": True, "around": [], "paper": "rgb(255, 255, 255)", "settings": 0, "waiting": 0, "folded": 0
    }  # fmt: skip


ASKED = (
    'name="description" content="', 'property="og:title"', 'type="application/atom+xml"', 'rel="license"',
    f"Version {stamp.version()}, <time", "@misc{howfast,", "licenses of everything on this site",
)  # fmt: skip


def test_every_page_says_what_it_is():
    texts = {name: (SITE / name).read_text(encoding="utf-8") for name in pages()}
    assert [(name, one) for name, text in texts.items() for one in ASKED if one not in text] == []
    described = [re.search(r'name="description" content="([^"]*)"', text)[1] for text in texts.values()]
    assert min(map(len, described)) >= 50
    assert len(set(described)) > 0.9 * len(described)


def test_a_lost_reader_is_led_back_from_any_depth(visit):
    visited = visit()
    answer = visited.page.goto(f"{visited.base}/no/such/place.html")
    assert answer.status == 404
    assert visited.page.locator("h1").inner_text() == "Not here"
    visited.page.get_by_role("link", name="The cover").click()
    assert visited.page.url == f"{visited.base}/index.html"
    assert [line for line in visited.failed if "place.html" not in line] == []


def test_every_shipped_file_has_a_license():
    static = SITE / "_static"
    patterns = [pattern for one in licenses.SHIPPED for pattern in one.covers]
    names = [path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()]
    own = [name for name in names if not name.startswith(f"{licenses.FOLDER}/")]
    assert [name for name in own if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert {f"{licenses.FOLDER}/{one.file}" for one in licenses.SHIPPED} == set(names) - set(own)


@pytest.fixture(scope="module")
def e_book(browser, base, tmp_path_factory):
    path = epub.bind(
        bound.script_free_page(browser), base, bound.volume(STEM), tmp_path_factory.mktemp("bound")
    )
    with zipfile.ZipFile(path) as archive:
        assert archive.infolist()[0].filename == "mimetype"
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
        yield {name: archive.read(name) for name in archive.namelist()}


def test_an_e_book_is_well_formed_and_its_links_lead_inside(e_book):
    kinds = (".xhtml", ".opf", ".xml")
    trees = {name: ET.fromstring(text) for name, text in e_book.items() if name.endswith(kinds)}
    ids = {name: [one.get("id") for one in tree.iter() if one.get("id")] for name, tree in trees.items()}
    assert {name for name, found in ids.items() if len(found) != len(set(found))} == set()
    inside, dead = 0, []
    for name, tree in trees.items():
        for link in (one.get("href") for one in tree.iter("{http://www.w3.org/1999/xhtml}a")):
            if link and not link.startswith("http"):
                file, _, place = link.partition("#")
                target, inside = f"book/{file}" if file else name, inside + 1
                dead += [link] * (target not in trees or bool(place and place not in ids[target]))
    assert dead == []
    assert inside > 20
    listed = e_book["book/nav.xhtml"].decode()
    assert 'epub:type="lof"' in listed
    assert {f"book/{name}" for name in re.findall(r'href="([^"#]+)#', listed)} <= set(trees)
    assert f"chapters-{STEM}.xhtml#fig-" in listed, "figures"
    assert len(re.findall(rf'href="chapters-{STEM}\.xhtml#(?!fig-)', listed)) > 5, "sections"


def test_a_bound_table_keeps_its_headings(browser, base):
    chips = bound.Volume(name="v", title="v", pages=("chips",))
    (page,) = bound.read_pages(bound.script_free_page(browser), base, chips, joined=False)
    heads = re.findall(r'<th [^>]*scope="col"[^>]*>([^<]+)</th>', page.html)
    assert heads[:4] == ["Chip", "Vendor", "Status", "16-bit FLOPs/s"]
    assert 'class="widest"' not in page.html


def test_an_e_book_keeps_formulas_figures_and_what_they_say(e_book):
    text = e_book[f"book/chapters-{STEM}.xhtml"].decode()
    assert text.count("<math") > 50
    assert "katex" not in text
    assert text.count("<svg") >= 10
    assert re.search(r"<(?:script|form|button|input|details)\b", text) is None
    assert "Answer hidden" not in text
    marked = (ROOT / "chapters" / f"{STEM}.md").read_text(encoding="utf-8").count(":::{answer}")
    assert text.count('<div class="answer ') == marked > 0, "every answer is there once"
    assert "var(--" not in text
    assert 'class="ex-parameters"' in text
    pictures = re.findall(r"<img[^>]*>", text)
    assert [one for one in pictures if not re.search(r'\balt="[^"]+"', one)] == []


def test_a_printed_chapter_has_pages_an_outline_and_tags(browser, base, tmp_path):
    path = pdf.bind(bound.script_free_page(browser), base, bound.volume(STEM), tmp_path)
    with pikepdf.open(path) as told:
        assert len(told.pages) > 20
        assert {"/Outlines", "/StructTreeRoot", "/Lang"} <= set(told.Root.keys())
        assert str(told.docinfo["/Author"]) == stamp.authors()
        number = {page.obj.objgen: at for at, page in enumerate(told.pages, 1)}
        named = {name[1:]: number[place[0].objgen] for name, place in told.Root.Dests.items()}
    drawn = [at for name, at in named.items() if "--fig-" in name]
    assert len(drawn) >= 10, "the list of figures says where they are"
    assert min(drawn) >= named[f"chapters-{STEM}"] > 2, "none before the chapter, which the lists precede"


def test_the_sheet_of_formulas_is_one_page(browser):
    page = browser.new_page()
    page.set_content(sheet.page().document())
    for paper in ("A4", "Letter"):
        told = page.pdf(format=paper, landscape=True, prefer_css_page_size=False)
        assert len(re.findall(rb"/Type /Page\b", told)) == 1, paper


def test_a_pdf_is_of_the_day_of_its_commit_and_the_same_whenever_it_is_printed(browser):
    page = browser.new_page()

    def printed():
        page.set_content("<title>A page</title><h1>A page</h1><table><tr><th>a<th>b<tr><td>1<td>2</table>")
        return page.pdf(**pdf.PRINT)

    one, other = printed(), re.sub(rb"(D:\d{10})\d{4}", rb"\g<1>9999", printed())
    named = [set(re.findall(rb"\(node\d+\)", told)) for told in (one, other)]
    assert named[0] != named[1]
    assert pdf.settled(one, DAY) == pdf.settled(other, DAY)
    assert len(pdf.settled(one, DAY)) == len(one), "the table of places at its end counts bytes"
    assert b"(D:20261123000000+00'00')" in pdf.settled(one, DAY)
