"""Tests that glossary links show a definition in the sense of their sentence."""

import difflib

import pytest

from tools.reference import links, terms

NAMES = {name: names for names in terms.entries() for name in names}
COINED = {  # single lowercase words that have one sense in this field
    *("collective", "jaxpr", "logits", "logsumexp", "matmul", "megacore", "microbatch", "multislice"),
    *("oversubscription", "remat", "rematerialization", "ridge", "roofline", "straggler", "sublane"),
    *("torus", "unembedding", "warp", "warpgroup", "wraparound"),
}
REGENERATE = (
    "The links of words with several senses have changed. Run `python -m tools.reference.links`, read every "
    "changed row of data/ambiguous_links.csv, and check that the entry has the sense of the sentence:\n"
)


def test_a_linked_term_is_in_the_glossary():
    listed = links.LINKED.read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed), key=lambda term: (term.casefold(), term))
    assert links.linked() <= NAMES.keys()


def test_only_phrases_and_coined_words_are_linked_without_a_mark():
    ordinary = {term for term in links.linked() if term.isalpha() and term.islower()}
    assert ordinary == COINED, (
        "a single word is linked without a mark only if it has one sense and is never a verb"
    )


def test_a_word_with_several_senses_has_no_entry_without_one():
    several = {terms.bare(name) for name in NAMES if terms.bare(name) != name}
    assert {"cache", "chunk", "goodput", "mesh"} <= several
    assert several & NAMES.keys() == set()


def test_the_links_of_ambiguous_words_have_been_read():
    committed = links.TABLE.read_text(encoding="utf-8").splitlines()
    found = links.table().splitlines()
    changed = "\n".join(difflib.unified_diff(committed, found, "committed", "found", n=0, lineterm=""))
    assert changed == "", REGENERATE + changed


def test_a_marked_link_leads_to_an_entry():
    entries = {names[0] for names in NAMES.values()}
    assert [link for link in links.ambiguous() if link.entry not in entries] == []


@pytest.mark.parametrize(
    ("sentence", "linked"),
    [
        ("A decode step below the critical batch has arithmetic to spare.", []),
        ("State a latency target, then shard the optimizer state.", ["optimizer state"]),
        ("The Tensor Memory Accelerator loads a patch of tiles, chunk by chunk.", []),
        ("On a full mesh the KV cache is cached.", ["full mesh", "KV cache"]),
        (
            "Collective matmuls hide AllGathers; an AllGather moves shards.",
            ["Collective matmuls", "AllGathers"],
        ),
    ],
)
def test_the_site_links_terms_with_one_sense_once(sentence, linked):
    nodes = pytest.importorskip("docutils.nodes", reason="the site's layer is not set up")
    pytest.importorskip("sphinx", reason="the site's layer is not set up")
    from web.extension import term_links

    parts = list(term_links._parts(sentence, set(), "chapters/inference"))
    assert [part.astext() for part in parts if not isinstance(part, nodes.Text)] == linked
    assert "".join(part.astext() for part in parts) == sentence
