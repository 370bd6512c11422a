"""Requests drawn at random have their means and their seed, and a trace is read as it was written."""

import pytest

from scalingbook_lib import serving
from scalingbook_lib.serving import (
    Request,
    poisson,
)


def test_workloads_have_their_means_and_their_seed():
    rows = poisson(5, 20_000, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=9)
    assert rows[-1].arrival_s / 20_000 == pytest.approx(0.2, rel=0.02)
    assert sum(r.prompt for r in rows) / 20_000 == pytest.approx(700, rel=0.03)
    assert sum(r.output for r in rows) / 20_000 == pytest.approx(200, rel=0.03)
    assert rows == poisson(
        5, 20_000, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=9
    )
    assert rows[:9] != poisson(
        5, 9, prompt=serving.lognormal(700, 0.8), output=serving.geometric(200), seed=8
    )
    evenly = [r.prompt for r in poisson(5, 5000, prompt=serving.uniform(3, 7), output=1)]
    assert (min(evenly), max(evenly)) == (3, 7)
    shared = poisson(5, 200, prompt=10, output=1, families=3, prefix=30, patience_s=2.0)
    assert {r.family for r in shared} == {1, 2, 3}
    assert all(r.prompt == 40 and r.cancel_s == pytest.approx(r.arrival_s + 2) for r in shared)


def test_a_trace_is_read_with_and_without_names():
    rows = [
        {"arrival_s": "0.5", "prompt": "10", "output": "3", "model": "x", "cancel_s": ""},
        (1, 20, 4, 5, 2),
    ]
    assert serving.trace(rows) == (Request(0.5, 10, 3), Request(1.0, 20, 4, 5, 2))
