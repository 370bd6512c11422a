"""Tests of predictions for rows that were collected later, of other software and chips."""

import pytest

from scalingbook_lib import evidence
from scalingbook_lib.evidence import resources

ADDED = {"training, dense": (0.12, 70), "training, experts": (0.15, 40)}
ADDED |= {"serving saturated, dense": (0.25, 70), "serving saturated, experts": (0.35, 35)}
ADDED |= {"serving prefill, dense": (0.25, 12), "serving decode, dense": (0.4, 50)}
ADDED |= {"serving decode, experts": (0.15, 5)}


@pytest.mark.parametrize("table", ["training", "inference"])
def test_runs_of_other_software_are_read_and_predicted(table):
    told = evidence.score(resources.rows(f"added_{table}_runs"))
    assert told.refused == {}
    for errors, _, _ in told.classes:
        most, least = ADDED[errors.name]
        assert errors.mean < most
        assert errors.runs >= least
