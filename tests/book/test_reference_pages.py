"""Notation, errata, map and cover say what the library computes and the book has."""

import re
from types import SimpleNamespace

import pytest

from scalingbook_book.chapters.intro.explorers.book_map import CHAPTERS, PATHS
from scalingbook_lib import collectives, notation, rules
from scalingbook_lib.machines import chips
from scalingbook_lib.machines.chips import Axis
from scalingbook_lib.units import INT8, MiB, si
from tools import pages, words
from tools.environment import ROOT
from tools.reference import terms
from web import stamp

NOTATION, ERRATA, INTRO = (
    (ROOT / name).read_text() for name in ("notation.md", "errata.md", "chapters/intro.md")
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


def test_its_link_rates_are_the_catalogs():
    assert chips.V5P.links * 2 * chips.V5P.link_bytes_per_s == 1200e9
    assert "1,200 GB/s is 6 links × 2 directions × 100 GB/s" in NOTATION.replace("\n", " ")
    assert {c.link_bytes_per_s for c in (chips.V4, chips.V5E)} == {50e9}
    assert {c.link_bytes_per_s for c in (chips.V5P, chips.V6E, chips.TPU7X)} == {100e9}
    assert chips.H100.links * chips.H100.link_bytes_per_s == 450e9
    assert f"{rules.data_parallel_tokens(chips.V5P):,.0f}" == "2,295"


@pytest.mark.parametrize(
    ("figure", "computed"),
    [
        ("5.2", chips.V5P.vector_flops_per_s / chips.V5P.hbm_bytes_per_s),
        ("229", rules.ridge(chips.V4)),
        ("240.5", rules.ridge(chips.V5E)),
        ("166", rules.ridge(chips.V5P)),
        ("560", rules.ridge(chips.V6E)),
        ("313", rules.ridge(chips.TPU7X)),
        ("295", rules.ridge(chips.H100)),
        ("153", rules.ridge(chips.A100)),
        ("206", rules.ridge(chips.H200)),
        ("136", rules.matmul_critical_batch(4096, 4096, chips.V5E, weights=INT8)),
        ("227", rules.matmul_critical_batch(1024, 1024, chips.V5E, weights=INT8)),
        ("7,880", 2 * chips.V5E.bf16_flops_per_s / chips.V5E.link_bytes_per_s),
        ("8,756", 2 * chips.V5E.bf16_flops_per_s / 45e9),
        ("308 ns", 1e9 * MiB / 3.4e12),
        ("2,295", rules.data_parallel_tokens(chips.V5P)),
        ("2,550", rules.data_parallel_tokens(chips.V5P) / 0.9),
        ("1.56 s", 2 * 140e9 / (2 * 90e9)),
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
    names = [name for entry in terms.entries() for name in entry]
    assert len(names) == len({name.casefold() for name in names}) > 280


def test_the_glossary_links_the_first_word_of_each_letter():
    nodes = pytest.importorskip("docutils.nodes", reason="the site's layer is not set up")
    pytest.importorskip("sphinx", reason="the site's layer is not set up")
    from web.extension import terms as find

    page = nodes.Element(
        "", *(nodes.term("", name, ids=[f"term-{name}"]) for name in ("1F1B", "axis", "AllGather", "bf16"))
    )
    links = re.findall(r'<a href="#(term-\w+)">([^<]+)</a>', find._box(page))
    assert links == [("term-1F1B", "0–9"), ("term-axis", "A"), ("term-bf16", "B")]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.stem)
def test_every_chapter_of_the_map_exists_and_is_linked_by_the_introduction(chapter):
    assert (ROOT / "chapters" / f"{chapter.stem}.md").exists()
    assert chapter.stem == "intro" or f"{{ref}}`{chapter.title} <{chapter.stem}>`" in INTRO


def test_the_map_is_the_table_of_contents():
    assert {page.name for page in pages.every() if not page.deeper} == {chapter.stem for chapter in CHAPTERS}


def test_the_units_are_shown_with_what_the_explorer_says():
    assert si(chips.V5E.hbm_bytes / 2).startswith("8.59 G")
    assert si(chips.V5E.hbm_bytes / chips.V5E.hbm_bytes_per_s, "s") == "21 ms"
    assert all(said in NOTATION for said in ("8.59 billion", "21 milliseconds", "{explorer} intro.units"))


# The cover

TOC = {
    "parts": [
        {"caption": "One", "chapters": [{"file": "chapters/a", "sections": [{"file": "chapters/a_b"}]}]},
        {"caption": "Reference", "chapters": [{"file": "notation"}]},
    ]
}
INDEX = (ROOT / "index.md").read_text(encoding="utf-8")


@pytest.fixture
def cover():
    pytest.importorskip("sphinx", reason="the site's layer is not set up")
    from web.extension import cover

    return cover


def test_parts_hold_chapters_and_what_is_deeper(cover):
    assert cover.parts(TOC) == {"One": (cover.Chapter("chapters/a", ("chapters/a_b",)),)}


def test_the_contents_are_the_map_in_its_order(cover):
    listed = [chapter.stem for chapters in cover.contents().values() for chapter in chapters]
    assert listed == [chapter.stem for chapter in CHAPTERS]


def test_a_page_takes_a_minute_for_two_hundred_words(cover):
    page = next(page for page in pages.every() if page.name == "rooflines")
    assert cover.minutes("chapters/rooflines") == pytest.approx(words.of(page).words / 200, abs=0.5)


@pytest.mark.parametrize(("minutes", "said"), [(45, "45 min"), (60, "1 h"), (95, "1 h 35 min")])
def test_minutes_are_told_as_hours(cover, minutes, said):
    assert cover.duration(minutes) == said


def test_every_way_of_the_cover_is_one_of_the_map_and_links_its_pages(cover):
    ways = re.search(r"```\{paths\}\n(.*?)```", INDEX, re.DOTALL)[1].strip().splitlines()
    names = [way.split(" | ")[0] for way in ways]
    assert len(names) == 6
    assert set(names) <= set(PATHS)
    made = cover._way(*ways[3].split(" | "))
    assert 'data-pages="chapters/intro.html chapters/jax.html' in made


def test_the_release_is_the_librarys(cover):
    config = SimpleNamespace()
    cover.name_the_release(None, config)
    assert config.myst_substitutions["version"] == stamp.version()
    assert all(f"{{{{ {name} }}}}" in INDEX for name in config.myst_substitutions)
