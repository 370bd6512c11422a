"""The edition of the book: the package's version, the date of the last commit, and how to cite it."""

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
def day(folder: Path = ROOT) -> date:
    """Return the date of the last commit, or the release date in `CITATION.cff` if there is no git."""
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cs"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        told = ""
    return date.fromisoformat(told or str(cited()["date-released"]))


def substitutions() -> dict[str, str]:
    """Return the values of the cover's substitutions, such as `{{ version }}` and `{{ byline }}`."""
    by = authors()
    return {
        "version": VERSION,
        "released": str(day()),
        "work": cited()["title"],
        "authors": by,
        "byline": "the " + by.removeprefix("The ") if by.startswith("The ") else by,
    }


def bibtex(when: date, address: str = "") -> str:
    """Return the BibTeX entry, with the site's address if it has one."""
    url = [f"  url     = {{{address}}},"] if address else []
    lines = [
        "@misc{howfast,", f"  title   = {{{{{cited()['title']}}}}},", f"  author  = {{{{{authors()}}}}},",
        f"  year    = {{{when.year}}},", f"  note    = {{Version {VERSION}, {when}}},", *url,
    ]  # fmt: skip
    return "\n".join([*lines, "}"])
