"""Is every sentence of a page shown, and does the book keep its quarrels to the errata?"""

import re

import pytest

from tools.environment import ROOT

PROSE = sorted([*ROOT.glob("*.md"), *ROOT.glob("chapters/*.md"), *ROOT.glob("solutions/*.md")])
ROOMS = sorted(ROOT.glob("scalingbook_lib/chapters/**/*.py"))
COMMENT = re.compile(r"^%.*", re.MULTILINE)
THE_REFERENCE = re.compile(r"\bthe\s+reference\b", re.IGNORECASE)
ERRATA = "errata.md"

# Where "the reference" still stands, and how often. The figures only ever go down; a file that has none goes.
QUARRELS = {
    "chapters/jax.md": 1,
    "chapters/profiling.md": 2,
    "solutions/gpus.md": 11,
    "solutions/profiling.md": 4,
    "scalingbook_lib/chapters/gpus/checks/plans.py": 1,
    "scalingbook_lib/chapters/profiling/checks/predicted.py": 1,
}


def prose(path):
    """What is no cell and no block of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def named(path):
    text = prose(path) if path.suffix == ".md" else path.read_text(encoding="utf-8")
    return len(THE_REFERENCE.findall(text))


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_line_of_a_page_is_a_comment(path):
    lost = COMMENT.findall(prose(path))
    assert not lost, f"MyST shows no line that begins with %; break the line elsewhere: {lost}"


def test_the_reference_stands_in_the_errata_alone():
    found = {path.relative_to(ROOT).as_posix(): named(path) for path in (*PROSE, *ROOMS)}
    found = {name: count for name, count in found.items() if count and name != ERRATA}
    more = {name: count for name, count in found.items() if count > QUARRELS.get(name, 0)}
    assert not more, f"say what holds, and let {ERRATA} say what others print: {more}"
    mended = {name: count for name, count in QUARRELS.items() if found.get(name, 0) == 0}
    assert not mended, f"take these out of QUARRELS: {sorted(mended)}"
