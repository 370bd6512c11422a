"""The explorers of RL post-training, fault tolerance and energy obey the laws of what they show."""

import pytest
from looked import panel, readout

from scalingbook_book.chapters import explorers
from scalingbook_book.reader.explorers.view import Bars, Chart, Curve

ALL = {e.key.partition(".")[2]: e for e in explorers.chapter("posttraining")}
approx = pytest.approx


def test_equal_answers_leave_no_tail_and_the_spread_lengthens_it():
    even, uneven = (ALL["slots"].evaluate(spread=s) for s in (0.0, 0.8))
    assert "at most 256 responses are running" in even.verdict
    assert "at most 52 responses" in uneven.verdict
    assert readout(uneven, "tokens/s") < readout(even, "tokens/s")
    ys = panel(uneven, Chart).marks[0].ys
    assert list(ys) == sorted(ys, reverse=True)
    assert ys[0] == 256
    assert ys[-1] == 0


def test_an_allowed_age_is_kept_and_never_slower():
    views = [ALL["split"].evaluate(staleness=s) for s in (0, 1, 4)]
    times = [readout(view, "fastest design") for view in views]
    assert times == sorted(times, reverse=True)
    assert "colocated" in views[0].verdict
    assert all(readout(view, "colocated") >= one for view, one in zip(views, times, strict=True))


def test_restarts_become_the_larger_loss_as_machines_grow():
    assert "Halving the save time" in ALL["ladder"].evaluate(n=1024).verdict
    assert "Halving the restart time" in ALL["ladder"].evaluate(n=262_144).verdict
    alone, peers = (readout(ALL["ladder"].evaluate(peers=p), "goodput") for p in (False, True))
    assert peers > alone


def test_spares_are_counted_in_units_that_go_out_together():
    view = ALL["spares"].evaluate()
    assert readout(view, "spare units") == 25
    assert readout(view, "spare chips") == 200
    assert 99 < sum(panel(view, Chart).marks[0].ys) < 100  # the curve goes on


def test_the_site_takes_twice_what_its_chips_take():
    values = panel(ALL["energy"].evaluate(), Bars).series[0].values
    assert values[2] / values[0] == approx(10.2 / 5.6 * 1.09)
    assert readout(ALL["energy"].evaluate(mfu=60.0), "chip-hours") < readout(
        ALL["energy"].evaluate(), "chip-hours"
    )


def test_seldom_syncs_can_be_hidden_and_frequent_ones_cannot():
    often, seldom = (ALL["sites"].evaluate(every=h) for h in (1, 128))
    assert "longer than" in often.verdict
    assert "can be hidden" in seldom.verdict
    assert readout(often, "time of a sync") == approx(144)
    waited = next(m for m in panel(seldom, Chart).marks if isinstance(m, Curve))
    assert list(waited.ys) == sorted(waited.ys, reverse=True)
