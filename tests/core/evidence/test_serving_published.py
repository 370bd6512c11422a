"""Tests of the serving simulator against a published load test that nothing was fitted to."""

from itertools import pairwise

import pytest

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.sweeps import SWEEP, simulated


def test_the_sweep_has_the_rows_of_the_table():
    rows = resources.rows("serving_sweeps")
    assert [p.clients for p in SWEEP] == [1, 5, 25, 50, 100, 150, 200, 250]
    assert [p.tokens_per_s for p in SWEEP] == [float(row["output_tok_s_total"]) for row in rows]
    assert SWEEP[0].ttft_s == pytest.approx(0.40677)
    assert SWEEP[-1].itl_s == pytest.approx(0.0932)
    assert all(row["source"] for row in rows)


def test_throughput_and_itl_are_close_at_every_load():
    for mine, theirs in zip(simulated(), SWEEP, strict=True):
        assert mine.tokens_per_s == pytest.approx(theirs.tokens_per_s, rel=0.15)
        assert mine.itl_s == pytest.approx(theirs.itl_s, rel=0.15)


def test_ttft_rises_at_the_same_load_as_on_the_real_server():
    """TTFT is short while the cache holds all clients; further clients queue."""
    for points in (SWEEP, simulated()):
        at = {p.clients: p for p in points}
        assert at[50].ttft_s < 1.1
        assert at[100].ttft_s > 2 * at[50].ttft_s
        late = [at[n] for n in (150, 200, 250)]
        for a, b in pairwise(late):  # 50 more clients are 50 more answers to wait for
            assert b.ttft_s - a.ttft_s == pytest.approx(50 * 500 / b.tokens_per_s, rel=0.05)
            assert b.tokens_per_s == pytest.approx(a.tokens_per_s, rel=0.01)
            assert b.itl_s == pytest.approx(a.itl_s, rel=0.01)
    for mine, theirs in zip(simulated()[:4], SWEEP, strict=False):
        assert mine.ttft_s == pytest.approx(theirs.ttft_s, rel=0.25)
    for mine, theirs in zip(simulated()[5:], SWEEP[5:], strict=True):
        assert mine.ttft_s == pytest.approx(theirs.ttft_s, rel=0.25)
