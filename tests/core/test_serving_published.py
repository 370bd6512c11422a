"""A published latency-throughput curve, and the simulator's, to which nothing of it was shown."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from scalingbook_lib.evidence.sweeps import SWEEP, Point, simulated

DATA = Path(__file__).parents[2] / "scalingbook_lib/evidence/data/serving_sweeps.csv"


def test_the_library_carries_the_table():
    if not DATA.exists():
        pytest.skip("data/ is not here")
    with DATA.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    read = [
        Point(
            int(row["clients"]), float(row["ttft_ms"]) / 1e3, float(row["itl_ms"]) / 1e3,
            float(row["output_tok_s_total"]),
        )
        for row in rows
    ]  # fmt: skip
    assert [p.clients for p in read] == [p.clients for p in SWEEP]
    for mine, theirs in zip(SWEEP, read, strict=True):
        assert (mine.ttft_s, mine.itl_s, mine.tokens_per_s) == pytest.approx(
            (theirs.ttft_s, theirs.itl_s, theirs.tokens_per_s)
        )
    assert all(row["source"] for row in rows)


def test_throughput_and_gaps_are_near_at_every_load():
    for mine, theirs in zip(simulated(), SWEEP, strict=True):
        assert mine.tokens_per_s == pytest.approx(theirs.tokens_per_s, rel=0.15)
        assert mine.itl_s == pytest.approx(theirs.itl_s, rel=0.15)


def test_the_curve_has_its_knee_and_its_wall_where_the_server_had_them():
    """A first token is quick as long as the cache has room for all clients; each more waits for its turn."""
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
