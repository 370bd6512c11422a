"""The command `explain` finds every term of the glossary, and says where it is taught."""

import pytest

from scalingbook_cli import glossary
from tools.reference import terms


@pytest.mark.parametrize("name", glossary.names())
def test_every_entry_of_the_glossary_is_found_with_its_section(name):
    found = glossary.find(name.upper())
    assert found.name == name
    assert found.section == {place.term: place.section for place in terms.places()}[name]
    assert found.chapter
    assert not any(sign in found.definition for sign in ("{term}", "{ref}", "`<"))


def test_the_glossary_is_whole():
    assert set(glossary.names()) == {forms[0] for forms in terms.entries()}


@pytest.mark.parametrize(
    ("typed", "name"), [("all gather", "AllGather"), ("rooflines", "roofline"), ("kv-cache", "KV cache")]
)
def test_a_term_is_found_under_other_spellings(ask, typed, name):
    assert ask(f"explain {typed} --json").values["term"] == name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("MTP", "multi-token prediction"),
        ("SDC", "silent data corruption"),
        ("\u00b5P", "maximal update parametrization"),  # a micro sign
        ("\u03bcP", "maximal update parametrization"),  # a Greek letter
        ("ZB-V", "zero-bubble schedule"),
        ("DualPipe-V", "DualPipe"),
        ("on-policy", "off-policy"),
        ("Pathways", "single controller"),
    ],
)
def test_a_term_is_found_under_its_abbreviation(typed, name):
    assert glossary.find(typed).name == name


def test_a_page_outside_the_chapters_is_named(ask):
    assert "Taught in: Training on many hosts, section many-hosts-pathways" in ask("explain pathways").out


def test_an_unknown_term_is_refused_with_similar_ones(ask):
    told = ask("explain rooflin")
    assert (told.code, told.out) == (2, "")
    assert "'rooflin' is not in the glossary; write one of roofline" in told.err
    assert "see the page Glossary" in ask("explain zzzz").err
