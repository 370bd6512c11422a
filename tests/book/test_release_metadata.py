"""A release has one version, and setting it changes every file that states it."""

import json
import re
import shutil
from datetime import date

import pytest

from scalingbook_lib import __version__
from tools.bump import BumpError, bump
from tools.environment import ROOT
from web import stamp

FILES = ("scalingbook_lib/__init__.py", "CITATION.cff", ".zenodo.json", "CHANGELOG.md")
DAY = date(2026, 12, 1)


@pytest.fixture
def copied(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_file_states_the_version_of_the_library():
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert stamp.cited()["version"] == archived["version"] == __version__
    assert archived["title"] == stamp.cited()["title"]
    versions = re.findall(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == __version__


def test_a_release_sets_the_version_and_dates_the_unreleased_notes(copied):
    assert bump(copied, "9.8.7", DAY) == list(FILES)
    library, citation, archive, changes = ((copied / name).read_text(encoding="utf-8") for name in FILES)
    assert '__version__ = "9.8.7"' in library
    assert "version: 9.8.7\ndate-released: 2026-12-01" in citation
    assert json.loads(archive)["version"] == "9.8.7"
    assert "## 9.8.7 (2026-12-01)" in changes
    assert "unreleased" not in changes
    with pytest.raises(BumpError, match="no section"):
        bump(copied, "9.8.8", DAY)


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "1.2.3rc1", "1.2.3\n"])
def test_a_version_is_three_numbers(copied, version):
    with pytest.raises(BumpError, match="write three numbers"):
        bump(copied, version, DAY)
    assert all((copied / name).read_bytes() == (ROOT / name).read_bytes() for name in FILES)


def test_the_paper_has_the_book_s_title_and_cites_entries_of_the_bibliography():
    paper = (ROOT / "paper.md").read_text(encoding="utf-8")
    assert f'title: "{stamp.cited()["title"]}"' in paper
    entries = re.findall(
        r"^@\w+\{(\S+),", (ROOT / "references.bib").read_text(encoding="utf-8"), re.MULTILINE
    )
    cited = re.findall(r"\[@(\S+?)\]", paper)
    assert len(cited) >= 5
    assert set(cited) <= set(entries)
