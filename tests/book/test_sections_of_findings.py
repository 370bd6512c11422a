"""The sections that findings about a program link to exist in the book, under the titles that they print."""

import re

import pytest

from scalingbook_lib.inspection.findings import finding
from scalingbook_lib.inspection.findings.finding import Section
from tools.environment import ROOT


@pytest.mark.parametrize(
    "section", [value for value in vars(finding).values() if isinstance(value, Section)], ids=str
)
def test_a_section_exists_under_its_title(section):
    text = (ROOT / "chapters" / f"{section.page}.md").read_text(encoding="utf-8")
    heading = re.search(rf"^\({section.anchor}\)=\n(?:\([\w-]+\)=\n)*#+ (.*)$", text, re.M)
    assert heading
    assert heading[1].startswith(section.title)
