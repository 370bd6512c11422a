"""A release has one version, and setting it changes every file that states it."""

import json
import re
import shutil
import tomllib
from datetime import date
from types import SimpleNamespace

import pytest
import yaml

from scalingbook_lib import __version__
from tools.bump import BumpError, addresses, bump
from tools.environment import ROOT
from web import front, release, stamp
from web.bound import Volume
from web.extension import head, site_files

FILES = ("scalingbook_lib/__init__.py", "CITATION.cff", ".zenodo.json", "CHANGELOG.md")
COPIED = (*FILES, "pyproject.toml", "_config.yml")
SITE, CODE = "https://book.example/deep/", "https://github.com/someone/book"
DAY = date(2026, 12, 1)


@pytest.fixture
def copied(tmp_path):
    for name in COPIED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_file_states_the_version_of_the_library():
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert stamp.cited()["version"] == archived["version"] == __version__
    assert archived["title"] == stamp.cited()["title"]
    versions = re.findall(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == __version__
    assert stamp.cited().get("date-released") == stamp.released()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {}) == addresses()


@pytest.fixture(params=["unreleased", "2026-12-01"])
def edition(request, tmp_path, monkeypatch):
    """The word or the date in the changelog, in an edition whose heading has it."""
    heading = f"## {__version__} ({request.param})"
    changes = tmp_path / "CHANGELOG.md"
    text = re.sub(r"^## .*$", heading, stamp.CHANGES.read_text(encoding="utf-8"), count=1, flags=re.M)
    changes.write_text(text, encoding="utf-8")
    monkeypatch.setattr(stamp, "CHANGES", changes)
    for kept in (stamp.released, stamp.day):
        kept.cache_clear()
    yield request.param
    monkeypatch.undo()
    for kept in (stamp.released, stamp.day):
        kept.cache_clear()


def test_cover_footer_feed_volumes_and_citation_agree_with_the_changelog(edition):
    released = edition != "unreleased"
    said = f"{__version__}" if released else f"{__version__} (unreleased)"
    day = stamp.day()
    assert str(day) == edition or not released
    volume = Volume(name="book", title="T", subtitle="S", pages=())
    app = SimpleNamespace(srcdir=ROOT, config=SimpleNamespace(html_baseurl="", book_description=""))
    footer: dict[str, object] = {}
    head.tell(app, "index", "page.html", footer, None)
    assert (footer["book_version"], footer["book_day"]) == (said, day)
    cover = stamp.substitutions()
    assert (cover["version"], cover["day"]) == (said, str(day))
    assert f"note    = {{Version {said}, {day}}}" in stamp.bibtex(day)
    assert f"Version {said}, {day}\n" in release.edition()
    assert f"Version {said}, {day.day} {day:%B %Y}" in front.title_page(volume, day)
    entry = next(site_files.releases(stamp.CHANGES.read_text(encoding="utf-8"), day))
    assert (entry.title, entry.day) == (f"{__version__} ({edition})", day)


def test_a_changelog_without_this_version_is_refused(tmp_path, monkeypatch):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    monkeypatch.setattr(stamp, "CHANGES", tmp_path / "CHANGELOG.md")
    with pytest.raises(ValueError, match=r"has no section '## \S+ \(unreleased\)'; add one"):
        stamp.released.__wrapped__()


def test_a_release_sets_the_version_and_dates_the_unreleased_notes(copied):
    assert bump(copied, "9.8.7", DAY) == list(FILES)
    library, citation, archive, changes = ((copied / name).read_text(encoding="utf-8") for name in FILES)
    assert '__version__ = "9.8.7"' in library
    assert "version: 9.8.7\ndate-released: 2026-12-01\nlicense:" in citation
    assert json.loads(archive)["version"] == "9.8.7"
    assert "## 9.8.7 (2026-12-01)" in changes
    assert "(unreleased)" not in changes
    with pytest.raises(BumpError, match="no section"):
        bump(copied, "9.8.8", DAY)


def test_the_version_after_a_release_has_no_date_and_an_empty_section(copied):
    with pytest.raises(BumpError, match="release that version first"):
        bump(copied, "9.8.8", None)
    bump(copied, "9.8.7", DAY)
    assert bump(copied, "9.9.0", None) == list(FILES)
    _, citation, _, changes = ((copied / name).read_text(encoding="utf-8") for name in FILES)
    assert "version: 9.9.0\nlicense:" in citation
    assert "\n## 9.9.0 (unreleased)\n\n## 9.8.7 (2026-12-01)\n" in changes


@pytest.mark.parametrize(
    ("site", "code", "labels"),
    [
        ("", "", []),
        (SITE, "", ["Homepage"]),
        (SITE, f"{CODE}/", ["Homepage", "Repository", "Issues", "Changelog"]),
        ("", "https://forge.example/book", ["Repository"]),
    ],
)
def test_a_release_states_the_configured_addresses_and_no_others(copied, site, code, labels):
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    told = config.replace('baseurl: ""', f'baseurl: "{site}"').replace('\n  url: ""', f'\n  url: "{code}"')
    (copied / "_config.yml").write_text(told, encoding="utf-8")
    assert bump(copied, "9.8.7", DAY)
    project = tomllib.loads((copied / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert list(project.get("urls", {})) == labels
    assert project["scripts"] == {"scalingbook": "scalingbook_cli:main"}
    cited = yaml.safe_load((copied / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited.get("url", ""), cited.get("repository-code", "")) == (site, code.removesuffix("/"))
    if code.startswith(CODE):
        assert project["urls"]["Changelog"] == f"{CODE}/blob/HEAD/CHANGELOG.md"
    (copied / "_config.yml").write_text(config, encoding="utf-8")  # an address that is gone goes
    bump(copied, "9.9.0", None)
    assert (copied / "pyproject.toml").read_bytes() == (ROOT / "pyproject.toml").read_bytes()
    assert "url" not in (copied / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "1.2.3rc1", "1.2.3\n"])
def test_a_version_is_three_numbers(copied, version):
    with pytest.raises(BumpError, match="write three numbers"):
        bump(copied, version, DAY)
    assert all((copied / name).read_bytes() == (ROOT / name).read_bytes() for name in COPIED)


def test_the_paper_has_the_book_s_title_and_cites_entries_of_the_bibliography():
    paper = (ROOT / "paper.md").read_text(encoding="utf-8")
    assert f'title: "{stamp.cited()["title"]}"' in paper
    entries = re.findall(
        r"^@\w+\{(\S+),", (ROOT / "references.bib").read_text(encoding="utf-8"), re.MULTILINE
    )
    cited = re.findall(r"\[@(\S+?)\]", paper)
    assert len(cited) >= 5
    assert set(cited) <= set(entries)
