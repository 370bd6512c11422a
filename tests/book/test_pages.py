"""Every committed notebook says what its source says, was executed, and can be read a cell at a time."""

import itertools
import re
import statistics
from collections import Counter

import pytest
from docutils.nodes import make_id

from scalingbook_book.chapters import checks, explorers, stems
from scalingbook_book.chapters.explorers import catalog
from tools import exercises, notebooks, pages
from tools.environment import ROOT
from tools.notebooks import Notebook

EVERY = [pytest.param(notebook, id=str(notebook)) for notebook in notebooks.every()]
CHAPTERS = [pytest.param(n, id=str(n)) for n in notebooks.every() if n.folder == "chapters"]
ON_THE_SITE = [pytest.param(n, id=str(n)) for n in notebooks.every() if n.folder != "exercises"]
FOLDERS = ("chapters", "solutions", "exercises")
_PAGES = (*ROOT.glob("*.md"), *ROOT.glob("chapters/*.md"), *ROOT.glob("solutions/*.md"))

COLUMN = 84  # characters of code that fit beside the sidebar of a window of 1,280 pixels
HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell"}
UNCOMPARED = re.compile(r"#\s*(NBVAL_IGNORE_OUTPUT|PYTEST_VALIDATE_IGNORE_OUTPUT|NBVAL_SKIP)")
UNCOMPARED_TAGS = {"nbval-ignore-output", "pytest-validate-ignore-output", "nbval-skip"}
MACHINE = re.compile(
    r"/root/|/home/(?!jovyan|user\b)\w|/Users/\w|/work/|/tmp/|/mnt/|pyenv|site-packages|[A-Z]:\\\\Users"
)


def code(notebook: Notebook):
    return [cell for cell in notebook.made().cells if cell.cell_type == "code"]


def tags(cell):
    return set(cell.metadata.get("tags", ()))


def length(cell):
    return len(cell.source.splitlines())


@pytest.mark.parametrize("notebook", EVERY)
def test_a_notebook_is_what_its_source_makes_and_every_cell_was_executed(notebook):
    assert notebooks.differences(notebook) == []


def test_every_notebook_has_a_source():
    committed = {path for folder in FOLDERS for path in (ROOT / folder).glob("*.ipynb")}
    assert committed == {notebook.path for notebook in notebooks.every()}


@pytest.mark.parametrize("notebook", EVERY)
def test_code_cells_are_short(notebook):
    long = [cell.source.splitlines()[0] for cell in code(notebook) if length(cell) > 25]
    assert not long, f"{notebook}: these cells exceed 25 lines; name a step and move it to the library"
    if not any(
        page.deeper for page in pages.every() if page.name == notebook.stem
    ):  # few cells, each a program
        assert statistics.median(length(cell) for cell in code(notebook)) <= 5


@pytest.mark.parametrize("notebook", ON_THE_SITE)
def test_visible_code_fits_its_column(notebook):
    long = [
        line
        for cell in code(notebook)[1:]  # without the first cell, which the site leaves out
        if not tags(cell) & {"remove-cell", "remove-input"}
        for line in cell.source.splitlines()
        if len(line) > COLUMN
    ]
    assert not long, f"{notebook}: wrap these lines at {COLUMN} characters: {long}"


@pytest.mark.parametrize("notebook", CHAPTERS)
def test_prose_stands_before_every_visible_code_cell(notebook):
    shown = [cell for cell in notebook.made().cells if "remove-cell" not in tags(cell)]
    alone = [
        cell.source
        for before, cell in zip([None, *shown], shown, strict=False)
        if cell.cell_type == "code"
        and not tags(cell) & HIDDEN
        and (before is None or before.cell_type == "code")
    ]
    assert not alone, f"{notebook}: say what to expect before each of these cells: {alone}"


@pytest.mark.parametrize("notebook", EVERY)
def test_few_outputs_are_exempt_from_comparison(notebook):
    cells = code(notebook)
    uncompared = [c for c in cells if tags(c) & UNCOMPARED_TAGS or UNCOMPARED.search(c.source)]
    assert not [c.source for c in cells if "nbval-skip" in tags(c) or "NBVAL_SKIP" in c.source]
    assert len(uncompared) <= max(2, len(cells) // 20), [c.source for c in uncompared]


@pytest.mark.parametrize("notebook", CHAPTERS)
def test_a_chapter_stands_in_the_table_of_contents(notebook):
    assert re.search(rf"(file|root): {notebook}\s", (ROOT / "_toc.yml").read_text())


@pytest.mark.parametrize("notebook", EVERY)
def test_no_page_needs_another_page_to_run(notebook):
    chapters = {n.stem for n in notebooks.every() if n.folder == "chapters"}
    stems = "|".join(chapters - {"jax"})  # `import jax` is the library's
    for cell in code(notebook):
        assert not re.search(
            r"^\s*(from|import) (chapters|solutions|exercises)\b|%run|%store", cell.source, re.M
        )
        assert not re.search(rf"^\s*(from|import) ({stems})\b", cell.source, re.M)


@pytest.mark.parametrize("notebook", EVERY)
def test_no_page_contains_a_path_of_a_machine(notebook):
    for path in (notebook.source_path, notebook.path):
        assert not MACHINE.findall(path.read_text()), path


@pytest.mark.parametrize("notebook", EVERY)
def test_stored_outputs_load_nothing_from_elsewhere(notebook):
    for cell in notebook.committed().cells:
        for output in cell.get("outputs", ()):
            page = output.get("data", {}).get("text/html", "")
            assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(\s*["']?http""", page)
            assert "<script" not in page


@pytest.mark.parametrize("notebook", EVERY)
def test_a_notebook_is_small_enough_to_be_shown(notebook):
    assert notebook.path.stat().st_size < 2_000_000


@pytest.mark.parametrize("stem", stems())
def test_the_pages_of_a_chapter_ask_its_exercises_once_and_show_its_explorers(stem):
    asked = exercises.asking(stem).values()  # a page may show exercises and explorers of other chapters too
    shown = [one.key for names in asked for one in exercises.shown(stem, names)]
    assert sorted(shown) == sorted(check.key for check in checks.catalog(stem).values())
    text = "\n".join(page.text for page in pages.every())
    text += "".join(path.read_text() for path in ROOT.glob("*.md"))
    explored = set(re.findall(r'(?:show\.explorer\("|^```\{explorer\} )([\w.]+)', text, re.M))
    assert explored <= set(catalog())
    assert {key for key in catalog() if key.startswith(f"{stem}.")} <= explored


@pytest.mark.parametrize("page", [page for page in pages.every() if page.deeper], ids=str)
def test_a_deeper_page_stands_below_its_chapter_and_each_links_the_other(page):
    contents = (ROOT / "_toc.yml").read_text()
    mains = [main for main in pages.of(page.stem) if not main.deeper]  # two where a chapter was split
    below = [contents.split(f"file: {main}\n")[-1].split("\n      - ")[0] for main in mains]
    assert page.name != page.stem
    assert any(f"- file: {page}\n" in f"{part}\n" for part in below)
    labels = re.findall(r"^\(([\w-]+)\)=$", page.text, re.M)
    assert any(
        re.search(rf"\{{ref\}}`(?:[^`<]*<)?{label}>?`", main.text) for main in mains for label in labels
    )
    assert labels[0] == page.name


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT) for path in _PAGES), ids=str)
def test_no_two_labels_of_a_page_have_the_same_anchor(page):
    """docutils writes `_` as `-` and calls the second of two equal anchors `id1`, which is not stable."""
    labels = re.findall(r"^\(([^()\n]+)\)=$|^:name: *(\S+)$", (ROOT / page).read_text(), re.M)
    anchors = Counter(make_id(label or name) for label, name in labels)
    assert [anchor for anchor, times in anchors.items() if times > 1] == []


@pytest.mark.parametrize("notebook", EVERY)
def test_headings_go_down_one_step_at_a_time(notebook):
    prose = re.sub(
        r"```.*?```",
        "",
        "\n".join(c.source for c in notebook.made().cells if c.cell_type == "markdown"),
        flags=re.S,
    )
    levels = [len(marks) for marks in re.findall(r"^(#{1,6}) ", prose, re.M)]
    assert levels[0] == 1
    assert levels.count(1) == 1, "one title a page"
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "errata.md", "CHANGELOG.md"])
def test_links_between_the_projects_files_lead_somewhere(page):
    links = re.findall(
        r"\]\((?!https?:|#)([^)#\s]+)", re.sub(r"````?.*?````?", "", (ROOT / page).read_text(), flags=re.S)
    )
    missing = [link for link in links if not (ROOT / link).exists()]
    assert not missing


def test_the_explorers_of_rooflines_stand_in_the_order_of_the_page():
    main, *_ = pages.of("rooflines")
    shown = re.findall(r'show\.explorer\("(rooflines\.\w+)"', main.text)
    assert [one.key for one in explorers.chapter("rooflines") if one.key in shown] == shown
