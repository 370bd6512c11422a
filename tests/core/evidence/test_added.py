"""Rows of software, chips and regimes that no fit has seen are all read, and predicted as well as now."""

from pathlib import Path

import pytest

from scalingbook_lib import evidence

DATA = Path(__file__).parents[3] / "data"
ADDED = {"training, dense": (0.25, 70), "training, experts": (0.25, 40)}
ADDED |= {"serving saturated, dense": (0.25, 70), "serving saturated, experts": (0.35, 35)}
ADDED |= {"serving prefill, dense": (0.25, 12), "serving decode, dense": (0.4, 50)}


@pytest.mark.parametrize("table", ["training", "inference"])
def test_runs_of_other_software_are_read_and_predicted(table):
    told = evidence.score(DATA / f"added_{table}_runs.csv")
    assert told.refused == {}
    for errors, _, _ in told.classes:
        most, least = ADDED[errors.name]
        assert errors.mean < most
        assert errors.runs >= least
