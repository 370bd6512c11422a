"""Tests of the computed wrong answers that common mistakes lead to."""

import csv

import pytest

from scalingbook_book.chapters import checks
from scalingbook_book.reader.checks import diagnosis
from tools import slips


def written():
    with slips.FILE.open(encoding="utf-8", newline="") as file:
        return {row["exercise"]: row for row in csv.DictReader(file)}


def test_every_exercise_has_its_row():
    assert list(written()) == sorted(checks.catalog())


def test_every_recorded_mistake_has_a_sentence():
    names = {slip.partition(":")[0] for row in written().values() for slip in row["slips"].split()}
    assert names <= diagnosis.SAYS.keys()
    assert len(names) > 20


@pytest.mark.parametrize("stem", ["intro", "lowprecision"])
def test_the_recorded_mistakes_are_up_to_date(stem):
    rows = written()
    for key, facts, found in slips.chapter(stem):
        assert (rows[key]["facts"], rows[key]["slips"]) == (facts, found), f"python -m tools.slips {stem}"


def test_facts_are_read_from_the_question():
    facts = {key: row["facts"].split() for key, row in written().items()}
    assert {"int8", "bytes"} <= {*facts["sharding.bytes-per-chip"]}
    assert "bf16" not in facts["sharding.bytes-per-chip"]
    assert {"hops", "64:chip"} <= {*facts["sharding.gather-one-axis"]}
    assert "8192:token" in facts["intro.cache-size"]


def test_only_counts_can_be_off_by_one():
    found = slips.changed("mfu = 6 * P * 2**20 / (64 * peak)", slips._Changes(["flops"], {}))
    assert {source for slip, source in found if slip == "off-by-one"} == {
        "mfu = 6 * P * 2 ** 20 / (63 * peak)",
        "mfu = 6 * P * 2 ** 20 / (65 * peak)",
    }


def test_terms_factors_and_directions_are_left_out():
    allowed = slips._Changes(["bf16", "link"], {})
    changed = {
        (slip, source) for slip, source in slips.changed("t = M / (2 * link_bytes) + 3 * hop_s", allowed)
    }
    assert ("hops-left-out", "t = 0 + M / (2 * link_bytes)") in changed
    assert ("one-direction", "t = M / link_bytes + 3 * hop_s") in changed
