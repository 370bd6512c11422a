"""The sweeps over widths: the best learning rate moves, except under muP."""

import pytest

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.measured.widths import BASE, Sweep, sweeps

approx = pytest.approx


def test_without_mup_the_best_rate_falls_as_one_over_the_width():
    narrow, middle, wide = sweeps(mup=False)
    assert (narrow.D, middle.D, wide.D) == (64, 128, 256)
    assert narrow.best_rate / middle.best_rate == approx(2, rel=0.1)
    assert narrow.best_rate / wide.best_rate == approx(4, rel=0.1)


def test_under_mup_the_best_rate_stays_and_wider_models_are_better():
    found = sweeps(mup=True)
    assert [sweep.best_rate for sweep in found] == approx([found[0].best_rate] * 3, rel=0.12)
    lowest = [min(sweep.losses) for sweep in found]
    assert lowest == sorted(lowest, reverse=True)


def test_at_the_base_width_both_parametrizations_are_the_same():
    assert sweeps(mup=True)[0].losses == sweeps(mup=False)[0].losses
    assert {row["muP"] for row in resources.rows("own_widths") if row["D"] == str(BASE)} == {"0"}


def test_a_parabola_is_read_at_its_vertex():
    rates = tuple(2.0**e for e in range(-10, -3))
    losses = tuple((e + 7.25) ** 2 + 2 for e in range(-10, -3))
    sweep = Sweep(128, mup=True, rates=rates, losses=losses)
    assert (sweep.best_rate, sweep.lowest_rate) == (approx(2**-7.25), 2**-7)
    assert str(sweep) == "width 128, muP: best learning rate 0.0066, lowest loss 2.062"
