"""Notation, errata and map say what the library computes."""

import re

import pytest

from scalingbook_lib import collectives, notation, roofline
from scalingbook_lib.chapters.intro.explorers.book_map import CHAPTERS
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Axis
from scalingbook_lib.roofline import scaling
from scalingbook_lib.units import INT8, MiB
from tools import pages
from tools.environment import ROOT

NOTATION, ERRATA, GLOSSARY, INTRO = (
    (ROOT / name).read_text() for name in ("notation.md", "errata.md", "glossary.md", "chapters/intro.md")
)
TYPED = re.findall(r"^\| \$[^|]*\| `([^`]+)` \|", NOTATION, re.MULTILINE)


def us(seconds):
    return f"{1e6 * seconds:.0f} µs"


@pytest.mark.parametrize("typed", TYPED)
def test_what_the_notation_page_types_is_read_and_printed_back(typed):
    read = notation.parse_product(typed) if "->" in typed else notation.parse(typed)
    assert str(read) == typed


def test_the_notation_page_has_every_form():
    assert len(TYPED) == 6


@pytest.mark.parametrize("illegal", ["A[I_X, J_X]", "A[I_X, J]{U_X}"])
def test_its_rules_are_the_librarys(illegal):
    with pytest.raises(notation.NotationError):
        notation.parse(illegal)


def test_its_link_rates_are_the_catalogues():
    assert chips.V5P.links * 2 * chips.V5P.link_bytes_per_s == 1200e9
    assert "1,200 GB/s is 6 links × 2 directions × 100 GB/s" in NOTATION.replace("\n", " ")
    assert {c.link_bytes_per_s for c in (chips.V4, chips.V5E)} == {50e9}
    assert {c.link_bytes_per_s for c in (chips.V5P, chips.V6E, chips.TPU7X)} == {100e9}
    assert chips.H100.links * chips.H100.link_bytes_per_s == 450e9
    assert f"{scaling.tokens_per_chip(chips.V5P):,.0f}" == "2,295"


def test_a_symbol_is_defined_once():
    rows = re.findall(r"^\| (\$[^|]+?\$) \|", NOTATION.split("(notation-sharding)=")[0], re.MULTILINE)
    symbols = [s.strip(" $") for row in rows for s in row.split(",") if row != "$I, J, K$"]
    assert len(symbols) == len(set(symbols)) > 30


@pytest.mark.parametrize(
    ("figure", "computed"),
    [
        ("5.2", chips.V5P.vector_flops_per_s / chips.V5P.hbm_bytes_per_s),
        ("229", roofline.ridge(chips.V4)),
        ("240.5", roofline.ridge(chips.V5E)),
        ("166", roofline.ridge(chips.V5P)),
        ("560", roofline.ridge(chips.V6E)),
        ("313", roofline.ridge(chips.TPU7X)),
        ("295", roofline.ridge(chips.H100)),
        ("153", roofline.ridge(chips.A100)),
        ("206", roofline.ridge(chips.H200)),
        ("136", roofline.break_even_batch(4096, 4096, chips.V5E, weights=INT8)),
        ("227", roofline.break_even_batch(1024, 1024, chips.V5E, weights=INT8)),
        ("7,880", 2 * chips.V5E.bf16_flops_per_s / chips.V5E.link_bytes_per_s),
        ("8,756", 2 * chips.V5E.bf16_flops_per_s / 45e9),
        ("308 ns", 1e9 * MiB / 3.4e12),
        ("2,295", scaling.tokens_per_chip(chips.V5P)),
        ("268 MB", 2 * 2 * 8192 * 32768 / 4 / 1e6),
    ],
)
def test_a_figure_of_the_errata_is_what_the_library_computes(figure, computed):
    number = figure.split()[0]
    decimals = len(number.partition(".")[2])
    assert f"{computed:,.{decimals}f}" == number
    assert figure in ERRATA


def test_the_errata_time_an_axis_of_four_without_its_wrap():
    theirs, ours = (Axis(4, wrapped=False, link_bytes_per_s=rate, hop_s=0.0) for rate in (45e9, 50e9))
    times = [us(collectives.all_gather(2 * 2048 * 8192, axis).bandwidth_s) for axis in (theirs, ours)]
    assert times == ["559 µs", "503 µs"]
    assert all(t in ERRATA for t in times)


def test_the_errata_time_the_all_reduce_of_problem_2():
    ring = Axis(4, wrapped=True, link_bytes_per_s=45e9, hop_s=0.0)
    assert f"{1e6 * collectives.all_reduce(2 * 1024 * 4096 / 16, ring).textbook_s:.2f} µs" in ERRATA


def test_a_term_is_defined_once():
    terms = re.findall(r"^(?=[A-Za-z])(\S.*)\n  \S", GLOSSARY, re.MULTILINE)
    assert len(terms) == len({term.casefold() for term in terms}) > 80


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.stem)
def test_every_chapter_of_the_map_exists_and_is_linked_by_the_introduction(chapter):
    assert (ROOT / "chapters" / f"{chapter.stem}.md").exists()
    assert chapter.stem == "intro" or f"{{ref}}`{chapter.title} <{chapter.stem}>`" in INTRO


def test_the_map_is_the_table_of_contents():
    assert {page.name for page in pages.every() if not page.deeper} == {chapter.stem for chapter in CHAPTERS}
