"""Every page has a Markdown twin with its computed numbers, and llms.txt lists them all."""

import re

import pytest

from tools.environment import ROOT
from web import twin_parts, twins

TWINS = {twin.page: twin for twin in twins.every(ROOT)}
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
SITE = re.compile(r"(?:\.\./)?notebooks/exercises/\w+\.ipynb|\w[\w-]*\.html|data/(?:chips|models)\.csv")


def test_pages_have_the_order_of_the_table_of_contents():
    assert list(TWINS)[:2] == ["index", "workbench"]
    assert {f"chapters/{path.stem}" for path in (ROOT / "chapters").glob("*.md")} <= set(TWINS)


@pytest.mark.parametrize("page", TWINS)
def test_a_twin_is_plain_markdown_and_its_links_lead_to_twins(page):
    text = CODE.sub("", TWINS[page].text)
    assert not re.search(r"^:::|\{[a-z:]+\}`|\{\{ \w+ \}\}", text, re.MULTILINE)
    folder = (ROOT / page).parent
    for found in LINK.finditer(text):
        path = found["path"]
        if SITE.fullmatch(path) or path in twin_parts.linked_files(text):
            continue
        target = (folder / path).resolve().relative_to(ROOT).with_suffix("").as_posix() if path else page
        assert target in TWINS, found[0]
        if anchor := found["anchor"]:
            assert f'<a id="{anchor}"></a>' in TWINS[target].text, found[0]


def test_computed_numbers_and_descriptions_of_figures_stand_in_the_text():
    text = TWINS["chapters/intro"].text
    assert "One training step on 256, 6,144 and 8,960 chips. With 24 times as many chips" in text
    assert "1 chip: 219 s; 256 chips: 857 ms" in text
    assert "show.figure" not in text
    assert "Set-up: finds the book" not in text


def test_tables_figures_and_lists_of_the_site_stand_in_the_text():
    for page, said in {
        "chips": "| TPU v5e | Google |",
        "models": "| Llama 3.1 405B |",
        "notation": "> The arrays of one layer, with the letter of each size at its side.",
        "teach": "**Week 10: [RL post-training systems](chapters/posttraining.md)",
        "bibliography": "- Austin et al. (2025). [How to Scale Your Model](https://",
        "index": "- [Rooflines](chapters/rooflines.md): How long does an operation take, and what limits it?",
    }.items():
        assert said in TWINS[page].text, page
    left = [page for page, twin in TWINS.items() if "This part is interactive" in twin.text]
    assert left == ["workbench", "inspect"]


def test_a_twins_code_names_its_language():
    assert '```python\n"""A training step of eight MLP layers' in TWINS["inspect"].text


def test_the_list_names_every_page_once_with_a_summary(tmp_path):
    twins.write(tmp_path, ROOT)
    listed = (tmp_path / twins.LISTED).read_text(encoding="utf-8")
    assert re.findall(r"^- \[.+?\]\((\S+)\.md\): \S", listed, re.MULTILINE) == list(TWINS)[1:]
    assert listed.startswith("# How fast can it run?")
    whole = (tmp_path / twins.WHOLE).read_text(encoding="utf-8")
    assert all(twin.text in whole for twin in TWINS.values())
    linked = {name for twin in TWINS.values() for name in twin_parts.linked_files(twin.text)}
    assert {"data/predictions/train-kimi-k2-rubin-1152-1.json", "jobs/slurm.sbatch"} <= linked
    there = {name for name in linked if (tmp_path / name).is_file()}
    assert linked - there == {"data/chips.csv", "data/instances.csv", "data/models.csv"}, (
        "these are written by Sphinx"
    )
    assert (tmp_path / "chapters" / "intro.md").read_text(encoding="utf-8") == TWINS["chapters/intro"].text
