"""Set the version of a release everywhere it is written: `python -m tools.bump 0.2.0`.

The version is `__version__` of `scalingbook_lib`. `CITATION.cff` and `.zenodo.json` repeat it, and the
unreleased notes of `CHANGELOG.md` move under it with today's date. If `_config.yml` names the address of
the site or of the repository, `pyproject.toml` and `CITATION.cff` repeat them. `--unreleased` begins the
version after a release instead: no file has a date, and the changelog gets an empty section. The page on
publishing has the next steps.
"""

import datetime
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tools.environment import ROOT

BEGIN = "--unreleased"
CHANGES, PROJECT = "CHANGELOG.md", "pyproject.toml"
UNRELEASED = r"^## \S+ \(unreleased\)$"
CITED = r"^version: .*\n(?:(?:date-released|url|repository-code): .*\n)*"
URLS = r"(^\[project\.scripts\]\n(?:.+\n)*)(?:\n\[project\.urls\]\n(?:.+\n)*)?"


class BumpError(ValueError):
    """A version that cannot be released, with what to write instead."""


def replaced(text: str, pattern: str, new: str) -> str:
    """Return a text with one part replaced; raises BumpError unless exactly one part matches the pattern."""
    found, count = re.subn(pattern, lambda _: new, text, flags=re.MULTILINE)
    if count != 1:
        raise BumpError(f"{pattern!r} matches {count} lines, and must match one")
    return found


def addresses(root: Path = ROOT) -> dict[str, str]:
    """Return the addresses that `_config.yml` names, by their labels on a package index."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    site = (config.get("html") or {}).get("baseurl") or ""
    code = ((config.get("repository") or {}).get("url") or "").removesuffix("/")
    found = {"Homepage": site, "Repository": code}
    if code.startswith("https://github.com/"):
        found |= {"Issues": f"{code}/issues", "Changelog": f"{code}/blob/HEAD/{CHANGES}"}
    return {label: address for label, address in found.items() if address}


def bump(root: Path, version: str, day: datetime.date | None) -> list[str]:
    """Write a version, its date and the addresses into the files below `root`, and return their names.

    Without a `day`, the version is unreleased. Raises BumpError for a version that is not three numbers, and
    for a changelog without unreleased notes to release, or with some when a version begins.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise BumpError(f"{version!r} is not a version; write three numbers, such as 0.2.0")
    known = addresses(root)
    edits: Mapping[str, tuple[str, str]] = {  # for each file, the part to replace
        "scalingbook_lib/__init__.py": (r"^__version__ = .*$", f'__version__ = "{version}"'),
        "CITATION.cff": (CITED, _cited(version, day, known)),
        ".zenodo.json": (r'^  "version": ".*",$', f'  "version": "{version}",'),
    }
    texts = {name: (root / name).read_text(encoding="utf-8") for name in (*edits, CHANGES, PROJECT)}
    changed = {name: replaced(texts[name], *edit) for name, edit in edits.items()}
    changed[CHANGES] = _notes(texts[CHANGES], version, day)
    changed[PROJECT] = _with_urls(texts[PROJECT], known)
    for name, text in changed.items():
        (root / name).write_text(text, encoding="utf-8")
    return [name for name, text in changed.items() if text != texts[name]]


def _cited(version: str, day: datetime.date | None, known: Mapping[str, str]) -> str:
    """Return the lines of `CITATION.cff` about the version."""
    site, code = (known.get(label, "") for label in ("Homepage", "Repository"))
    lines = {"version": version, "date-released": day, "url": site, "repository-code": code}
    return "".join(f"{name}: {value}\n" for name, value in lines.items() if value)


def _notes(changes: str, version: str, day: datetime.date | None) -> str:
    """Return the changelog with its unreleased notes under a version, or with a new section for them."""
    unreleased = len(re.findall(UNRELEASED, changes, re.MULTILINE))
    if day is None:
        if unreleased:
            raise BumpError(f"{CHANGES} has a section '(unreleased)' already; release that version first")
        return re.sub(r"^## ", f"## {version} (unreleased)\n\n## ", changes, count=1, flags=re.MULTILINE)
    if unreleased != 1:
        raise BumpError(f"{CHANGES} has no section '## VERSION (unreleased)'; add one with the changes")
    return replaced(changes, UNRELEASED, f"## {version} ({day})")


def _with_urls(project: str, known: Mapping[str, str]) -> str:
    """Return `pyproject.toml` with a table of these addresses, or without one if none is known."""
    lines = "".join(f'{label} = "{address}"\n' for label, address in known.items())
    table = f"\n[project.urls]\n{lines}" if known else ""
    return re.sub(URLS, lambda found: found[1] + table, project, count=1, flags=re.MULTILINE)


def main(words: list[str]) -> int:
    """Set the version that the command line names."""
    begins = BEGIN in words
    versions = [word for word in words if word != BEGIN]
    if len(versions) != 1:
        print(f"write one version: python -m tools.bump 0.2.0 [{BEGIN}]", file=sys.stderr)
        return 2
    try:
        changed = bump(ROOT, versions[0], None if begins else datetime.date.today())
    except BumpError as refused:
        print(refused, file=sys.stderr)
        return 2
    told = f"version {versions[0]} is written in {', '.join(changed)}"
    print(f"{told}; run `python -m tools.notebooks renew` next")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
