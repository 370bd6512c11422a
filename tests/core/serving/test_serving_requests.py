"""Tests of request generators and of traces."""

import pytest

from scalingbook_lib import serving
from scalingbook_lib.serving import (
    Request,
    poisson,
)


def test_random_requests_have_their_means_and_are_reproduced_by_their_seed():
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


def test_a_trace_is_read_from_mappings_and_from_sequences():
    rows = [
        {"arrival_s": "0.5", "prompt": "10", "output": "3", "model": "x", "cancel_s": ""},
        (1, 20, 4, 5, 2),
    ]
    assert serving.trace(rows) == (Request(0.5, 10, 3), Request(1.0, 20, 4, 5, 2))
