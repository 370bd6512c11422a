"""The edition of the book: its version, its date, and how to cite it.

The version is that of the package. Its heading in `CHANGELOG.md` says when it was released, or that it is
not. Every page, volume and feed that names an edition asks this module.
"""

import re
import subprocess
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from scalingbook_lib import __version__
from tools.environment import ROOT

VERSION = __version__
CHANGES = ROOT / "CHANGELOG.md"
UNRELEASED = "unreleased"


@cache
def cited() -> dict[str, Any]:
    """Return the content of `CITATION.cff`."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def titles() -> tuple[str, str]:
    """Return the title and the subtitle."""
    title, subtitle = re.split(r"(?<=[?!:]) ", cited()["title"], maxsplit=1)
    return title, subtitle


@cache
def address() -> str:
    """Return the configured address of the site, or ""."""
    told = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return str(told["html"].get("baseurl") or "")


def authors() -> str:
    """Return the authors in one line."""
    return ", ".join(author["name"] for author in cited()["authors"])


@cache
def released() -> date | None:
    """Return the date of the release that the changelog gives, or None if this version is unreleased."""
    text = CHANGES.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(VERSION)} \((.*)\)$", text, re.MULTILINE)
    if not found:
        raise ValueError(f"{CHANGES.name} has no section '## {VERSION} ({UNRELEASED})'; add one, or a date")
    return None if found[1] == UNRELEASED else date.fromisoformat(found[1])


def version() -> str:
    """Return the version as readers see it: '0.1.0' or '0.1.0 (unreleased)'."""
    return VERSION if released() else f"{VERSION} ({UNRELEASED})"


@cache
def day(folder: Path = ROOT) -> date:
    """Return the date of the release, or of the last commit if this version is unreleased.

    A copy without git has the date of its changelog.
    """
    if of_release := released():
        return of_release
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cs"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        told = ""
    return date.fromisoformat(told) if told else date.fromtimestamp(CHANGES.stat().st_mtime)


def substitutions() -> dict[str, str]:
    """Return the values of the cover's substitutions, such as `{{ version }}` and `{{ byline }}`."""
    by = authors()
    return {
        "version": version(),
        "day": str(day()),
        "work": cited()["title"],
        "authors": by,
        "byline": "the " + by.removeprefix("The ") if by.startswith("The ") else by,
    }


def bibtex(when: date, address: str = "") -> str:
    """Return the BibTeX entry, with the site's address if it has one."""
    url = [f"  url     = {{{address}}},"] if address else []
    lines = [
        "@misc{howfast,", f"  title   = {{{{{cited()['title']}}}}},", f"  author  = {{{{{authors()}}}}},",
        f"  year    = {{{when.year}}},", f"  note    = {{Version {version()}, {when}}},", *url,
    ]  # fmt: skip
    return "\n".join([*lines, "}"])
