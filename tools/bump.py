"""Set the version of a release everywhere it is written: `python -m tools.bump 0.2.0`.

The version is `__version__` of `scalingbook_lib`. `CITATION.cff` and `.zenodo.json` repeat it, and the
unreleased notes of `CHANGELOG.md` move under it with today's date. The page on publishing has the next steps.
"""

import datetime
import re
import sys
from pathlib import Path

from tools.environment import ROOT

UNRELEASED = r"^## \S+ \(unreleased\)$"


class BumpError(ValueError):
    """A version that cannot be released, with what to write instead."""


def replaced(text: str, pattern: str, new: str) -> str:
    """Return a text with one line replaced; raises BumpError unless exactly one line matches the pattern."""
    found, count = re.subn(pattern, lambda _: new, text, flags=re.MULTILINE)
    if count != 1:
        raise BumpError(f"{pattern!r} matches {count} lines, and must match one")
    return found


def bump(root: Path, version: str, day: datetime.date) -> list[str]:
    """Write a version and its date into the four files below `root`, and return their names.

    Raises BumpError for a version that is not three numbers, and for a changelog without unreleased notes.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise BumpError(f"{version!r} is not a version; write three numbers, such as 0.2.0")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if len(re.findall(UNRELEASED, changes, re.MULTILINE)) != 1:
        raise BumpError("CHANGELOG.md has no section '## VERSION (unreleased)'; add one with the changes")
    edits: dict[str, dict[str, str]] = {  # for each file, the lines to replace
        "scalingbook_lib/__init__.py": {r"^__version__ = .*$": f'__version__ = "{version}"'},
        "CITATION.cff": {
            r"^version: .*$": f"version: {version}",
            r"^date-released: .*$": f"date-released: {day}",
        },
        ".zenodo.json": {r'^  "version": ".*",$': f'  "version": "{version}",'},
        "CHANGELOG.md": {UNRELEASED: f"## {version} ({day})"},
    }
    for name, lines in edits.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern, new in lines.items():
            text = replaced(text, pattern, new)
        (root / name).write_text(text, encoding="utf-8")
    return list(edits)


def main(words: list[str]) -> int:
    """Set the version that the command line names."""
    if len(words) != 1:
        print("write one version: python -m tools.bump 0.2.0", file=sys.stderr)
        return 2
    try:
        changed = bump(ROOT, words[0], datetime.date.today())
    except BumpError as refused:
        print(refused, file=sys.stderr)
        return 2
    print(
        f"version {words[0]} is written in {', '.join(changed)}; run `python -m tools.notebooks renew` next"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
