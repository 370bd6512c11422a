"""Documents in shared rows: nothing is lost, no row is too full, no two could have been one."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from scalingbook_lib import training

ROW = 1024
LENGTHS = [Random(seed).randint(1, ROW) for seed in range(200)]


def test_every_document_stands_in_one_row_whole():
    packed = training.pack(LENGTHS, ROW)
    assert Counter(T for row in packed.rows for T in row) == Counter(LENGTHS)
    assert max(map(sum, packed.rows)) <= ROW
    assert all(sum(a) + sum(b) > ROW for a, b in combinations(packed.rows, 2))


def test_only_what_is_longer_than_a_row_is_cut():
    assert training.pack([2 * ROW + 100, ROW, 900], ROW).rows == ((ROW,), (ROW,), (ROW,), (900, 100))


def test_equal_documents_leave_the_pairs_of_one():
    packed = training.pack([128] * 64, ROW)
    assert (packed.empty, packed.mean_attention, max(packed.attention)) == (0, 1 / 8, 1 / 8)
    assert training.pack([ROW] * 3, ROW).mean_attention == 1


@pytest.mark.parametrize(
    ("documents", "row", "says"), [([], 8, "no documents"), ([3, 0], 8, "has 0 tokens"), ([3], 0, "row=0")]
)
def test_a_wrong_length_is_named(documents, row, says):
    with pytest.raises(ValueError, match=says):
        training.pack(documents, row)
