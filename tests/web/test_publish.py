"""Tests of releases: edition, licenses, feed, sitemap, archives and volumes."""

import hashlib
import json
import re
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from datetime import date

import nbformat
import pytest
import yaml

pytest.importorskip("sphinx", reason="the site's layer is not set up")
pytest.importorskip("playwright", reason="what prints the book is not set up")
pytest.importorskip("pikepdf", reason="what prints the book is not set up")
from docutils.core import publish_doctree

from scalingbook_lib import __version__
from tools import first_cell, notebooks
from tools.environment import ROOT
from web import bound, downloads, epub, offline, pdf, release, site, stamp, vendor, volumes
from web.bound import BoundPage, Volume
from web.extension import assets, head, licenses, site_files

DAY = date(2026, 11, 23)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ATOM = "{http://www.w3.org/2005/Atom}"


def test_the_citation_is_of_this_version():
    assert stamp.cited()["version"] == __version__
    entry = stamp.bibtex(DAY, "https://book.example/")
    assert (entry.count("{"), entry.count("@")) == (entry.count("}"), 1)
    assert f"Version {stamp.version()}, 2026-11-23" in entry
    assert "https://book.example/" in entry


def test_the_day_of_an_unreleased_version_is_the_last_commit_s_and_without_git_the_changelog_s(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(stamp, "released", lambda: None)
    shown = subprocess.run(["git", "log", "-1", "--format=%cs"], cwd=ROOT, capture_output=True, text=True)
    written = date.fromtimestamp(stamp.CHANGES.stat().st_mtime)
    assert stamp.day.__wrapped__(tmp_path) == written
    assert str(stamp.day.__wrapped__(ROOT)) == (shown.stdout.strip() or str(written))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_few_permissions_and_pinned_actions(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", "".join(one))] == []
    told = yaml.safe_load(text)
    may = [told["permissions"]] + [job.get("permissions", {}) for job in told["jobs"].values()]
    written = {name for one in may for name, right in one.items() if right == "write"}
    assert written <= ({"pages", "id-token"} if path.stem == "pages" else set())


def test_the_weekly_run_builds_on_the_newest_sphinx_and_does_nothing_else():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    weekly = {name for name, job in jobs.items() if job.get("if") != "github.event_name != 'schedule'"}
    assert weekly == {"newest-sphinx"}


def test_a_page_is_described_by_its_first_prose_without_formulas():
    prose = "The chip waits for its memory, " * 9
    text = f"Title\n=====\n\nShort.\n\n:math:`T` is a time, {prose}.\n\n{prose}.\n"
    tree = publish_doctree(text, settings_overrides={"doctitle_xform": False})
    told = head.described(tree)
    assert told.startswith("The chip waits for its memory, The")
    assert told.endswith(" …")
    assert len(told) <= head.LENGTH[1] + 2
    assert head.described(None) == ""


def test_an_old_page_gets_the_day_of_this_edition():
    old = (
        '<time class="edition" datetime="2020-01-01">2020-01-01</time> note    = {Version 0.1.0, 2020-01-01},'
        " note    = {Version 0.1.0 (unreleased), 2020-01-01},"
    )
    new = head.dated(old, DAY)
    assert "2020" not in new
    assert new.count("2026-11-23") == 4


CHANGES = (
    "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n- A < B\n  goes on.\n- C.\n\n## 0.1.0 (unreleased)\n\n- D.\n"
)


@pytest.mark.parametrize("address", ["", "https://book.example/deep/"])
def test_the_feed_has_an_entry_for_each_version(address):
    tree = ET.fromstring(site_files.feed("The book", address, CHANGES, DAY))
    entries = tree.findall(f"{ATOM}entry")
    assert [one.findtext(f"{ATOM}updated") for one in entries] == [
        "2026-12-01T00:00:00Z",
        "2026-11-23T00:00:00Z",
    ]
    assert entries[0].findtext(f"{ATOM}content") == "<ul><li>A &lt; B goes on.</li><li>C.</li></ul>"
    assert len({one.text for one in tree.iter(f"{ATOM}id")}) == 3
    assert [one.get("href") for one in tree.findall(f"{ATOM}link")] == [f"{address}feed.xml"] * bool(address)


def test_the_sitemap_has_absolute_addresses():
    tree = ET.fromstring(site_files.site_map("https://book.example/deep/", ["index.html", "a/b.html"], DAY))
    assert [one.text for one in tree.iter() if one.tag.endswith("loc")] == [
        "https://book.example/deep/index.html", "https://book.example/deep/a/b.html",
    ]  # fmt: skip


def test_a_site_with_an_address_names_it(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    address = "https://book.example/deep"
    (book / "_config.yml").write_text(config.replace('baseurl: ""', f'baseurl: "{address}"'))
    (book / "references.bib").write_text((ROOT / "references.bib").read_text(encoding="utf-8"))
    (book / "_toc.yml").write_text("format: jb-book\nroot: first\n")
    (book / "first.md").write_text("# First\n\nText.\n")
    made = site.build(book, tmp_path / "out")
    text = (made / "first.html").read_text(encoding="utf-8")
    assert f'<link rel="canonical" href="{address}/first.html"' in text
    assert f'property="og:image" content="{address}/_static/{head.CARD}"' in text
    assert (made / "_static" / head.CARD).exists()
    assert f"<loc>{address}/first.html</loc>" in (made / "sitemap.xml").read_text()
    assert f"Sitemap: {address}/sitemap.xml" in (made / "robots.txt").read_text()
    assert '<base href="/deep/">' in (made / "404.html").read_text(encoding="utf-8")
    assert f"url     = {{{address}}}" in text


def test_every_license_text_is_complete():
    texts = {one.file: one.text() for one in licenses.SHIPPED}
    assert len(texts) == len(licenses.SHIPPED)
    ends = re.compile(r"\bAS[ -]IS\b|as is|Attribution 4\.0|OPEN FONT LICENSE", re.I)
    assert {name for name, text in texts.items() if len(text) < 1000 or not ends.search(text)} == set()
    assert "Mozilla Public License Version 2.0" in texts["pyodide.txt"]
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in texts["python.txt"]


def test_everything_that_is_shipped_has_a_license():
    packages = json.loads((vendor.HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    # The text for Pyodide is kept here; the letters of the others are only drawn into pictures.
    unlisted = {"pyodide", "@fontsource/source-sans-3", "@fontsource/dejavu-sans"}
    assert set(packages) - {one.npm for one in licenses.SHIPPED} == unlisted
    covered = {pattern for one in licenses.SHIPPED for pattern in one.covers}
    assert set(assets.SHEETS) - covered == set()


def test_an_archive_says_its_edition_and_equal_folders_give_equal_bytes(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "a.html").write_text("a")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        release.archive(tmp_path / "made", tmp_path / name / "book.zip")
    with zipfile.ZipFile(tmp_path / "one" / "book.zip") as archive:
        assert archive.namelist() == ["book/EDITION.txt", "book/a.html"]
        assert f"Version {stamp.version()}, {stamp.day()}" in archive.read("book/EDITION.txt").decode()
    release.archive(tmp_path, tmp_path / "without.zip", without="made")
    with zipfile.ZipFile(tmp_path / "without.zip") as archive:
        assert [name for name in archive.namelist() if "made" in name] == []
    first, second = ((tmp_path / name / "book.zip").read_bytes() for name in ("one", "two"))
    assert first == second
    assert release.digests(tmp_path / "one") == f"{hashlib.sha256(first).hexdigest()}  book.zip\n"


def test_a_notebook_that_carries_the_library_is_reproducible():
    (notebook,) = (one for one in notebooks.every(["rooflines"]) if one.folder == "exercises")
    first, second = (nbformat.writes(first_cell.put(notebook.committed(), "'carried'")) for _ in range(2))
    assert first == second


def test_a_volume_has_every_page_in_order_and_answers_at_the_back():
    pages = bound.volume().pages
    back = [page.startswith("solutions/") for page in pages]
    assert back == sorted(back)
    assert len(pages) == len(set(pages)) > 60
    assert not {"index", "workbench"} & set(pages), "these live in a browser alone"
    one = bound.volume("rooflines")
    assert (one.pages[0], one.pages[-1]) == ("chapters/rooflines", "solutions/rooflines")
    assert one.title.startswith("Rooflines")
    with pytest.raises(SystemExit, match="no chapter"):
        bound.volume("nothing")


def test_an_e_book_lists_all_of_its_files():
    volume = Volume(name="v", title="A & B", pages=("a", "b"))
    pages = [
        BoundPage(name="a", title="A < 1", html="<math/>"),
        BoundPage(name="b", title="B", html="<p>b</p>"),
    ]
    files = epub.files(volume, pages, {"pictures/x.png": b"x"}, DAY)
    package = ET.fromstring(files["book/content.opf"])
    items = {one.get("href"): one for one in package.iter("{http://www.idpf.org/2007/opf}item")}
    assert {f"book/{name}" for name in items} == set(files) - {"book/content.opf", "META-INF/container.xml"}
    assert [items[name].get("properties") for name in ("a.xhtml", "b.xhtml", "nav.xhtml")] == [
        "mathml",
        None,
        "nav",
    ]
    order = [one.get("idref") for one in package.iter("{http://www.idpf.org/2007/opf}itemref")]
    assert order == ["title", "nav", "a", "b"]
    assert [ET.fromstring(files[f"book/{name}"]).tag for name in items if name.endswith("xhtml")]


def test_a_volume_has_a_title_page_and_names_each_page_above_its_sheets(monkeypatch):
    address = "https://book.example/"
    monkeypatch.setattr(stamp, "address", lambda: address)
    volume = bound.volume()
    page = BoundPage(name="a", title='A "B" </style>', number="2", part="Hardware", html="<article/>")
    text = pdf.document(volume, [page], DAY)
    title = text[text.index('class="front"') : text.index("</header>")]
    edition = f"Version {stamp.version()}, 23 November 2026"
    for said in (*stamp.titles(), stamp.authors(), edition, "CC BY 4.0", address):
        assert said in title
    assert '<li class="front-part">Hardware</li>' in text
    assert text.count("</style>") == 1, "no title ends the style sheet"
    assert (
        r'@page text-0 { @top-left { content: "2 A \22 B\22  \3c /style>"; } } #a { page: text-0; }' in text
    )


def test_the_cover_links_the_volumes_that_are_there(tmp_path):
    cover, dist = tmp_path / "site" / "index.html", tmp_path / "dist"
    (cover.parent / "_static").mkdir(parents=True)
    dist.mkdir()
    source = (ROOT / "index.md").read_text(encoding="utf-8")
    cover.write_text(re.search(r'<p class="volumes">.*?</p>', source)[0])
    for name in ("book-1.epub", "book-1.pdf", "book-1.pdf"):
        (dist / name).write_bytes(b"x" * 2000)
        volumes.offer(cover.parent, dist / name)
    links = re.findall(r'href="([^"]+)"', cover.read_text())
    assert links == ["downloads/book-1.pdf", "downloads/book-1.epub"]
    assert all((cover.parent / link).exists() for link in links)
    kept = json.loads((cover.parent / offline.LIST).read_text())["files"]
    assert list(kept) == ["index.html"], "browsers that keep the site keep no volume"


def test_kaggle_runs_a_notebook_of_the_archive_on_a_tpu():
    told = json.loads(downloads.kaggle("chapters/sharding.ipynb"))
    assert (ROOT / told["code_file"]).exists()
    assert (told["enable_tpu"], told["machine_shape"], told["kernel_type"]) == (True, "TpuV5E8", "notebook")
