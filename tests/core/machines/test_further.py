"""Other vendors' and announced chips: every figure has a source, is dense and one-way, and has an age."""

from dataclasses import replace
from datetime import date

import pytest

from scalingbook_lib import rules
from scalingbook_lib.machines import Cluster, Slice, age, chips
from scalingbook_lib.machines.chips import FURTHER, KNOWN
from scalingbook_lib.units import DTYPES

approx = pytest.approx


def test_every_figure_is_sourced():
    for chip in FURTHER:
        assert all(chip.sources[figure].text for figure in chip.figures())


@pytest.mark.parametrize(
    ("chip", "ridges", "sweep_ms"),
    [
        (chips.TRAINIUM2, (230, 448), 36), (chips.TRAINIUM3, (137, 514, 514), 32),
        (chips.GAUDI3, (453, 453), 35),
        (chips.MI455X, (215, 429, 865), 19), (chips.RUBIN, (182, 795, 1591), 13), (chips.TPU8T, (1930,), 33),
        (chips.TPU8I, (1174,), 33), (chips.JALAPENO, (870,), 15), (chips.ASCEND950DT, (122, 230, 446), 24),
        (chips.GROQ3, (8,), 0.003), (chips.WSE3, (6,), 0.002),
    ],
)  # fmt: skip
def test_ridges_and_hbm_read_times_match_hand_counts(chip, ridges, sweep_ms):
    found = [rules.ridge(chip, DTYPES[name]) for name in chip.rates()]
    assert found == [approx(ridge, abs=0.5) for ridge in ridges]
    assert chip.hbm_bytes / chip.hbm_bytes_per_s == approx(sweep_ms / 1e3, rel=0.08)


@pytest.mark.parametrize(
    ("chips_of_it", "rate", "printed"),
    [
        (9600, chips.TPU8T.fp4_flops_per_s, 121e18),
        (9600, chips.TPU8T.hbm_bytes, 2e15),
        (1152, chips.TPU8I.fp4_flops_per_s, 11.6e18),  # printed as fp8
        (72, 2 * chips.MI455X.fp4_flops_per_s, 2.9e18),  # without a word on sparsity
        (72, chips.RUBIN.fp4_flops_per_s / 0.7, 3.6e18),
        (144, chips.TRAINIUM3.fp8_flops_per_s, 362e15),
        (256, chips.GROQ3.fp8_flops_per_s, 315e15),
    ],
)
def test_rack_totals_of_press_releases_match_the_figures_of_one_chip(chips_of_it, rate, printed):
    assert chips_of_it * rate == approx(printed, rel=0.04)


def test_further_chips_work_as_machines():
    (level,) = Cluster.of(chips.RUBIN, 72).levels
    assert (level.bytes_per_s, level.name) == (1800e9, "NVLink")
    assert Cluster.of(chips.TRAINIUM3, 64).levels[0].name == "switches"
    assert Cluster.of(chips.GAUDI3, 8).levels[0].peer_bytes_per_s == 75e9
    assert Slice.of(chips.TRAINIUM2, "4x4").mesh(X=4, Y=4).axes("X")[0].wrapped
    assert chips.find("tpu 8t") is chips.TPU8T
    assert {chip.name for chip in KNOWN.values() if chip.status == "announced"} >= {
        "Rubin",
        "MI455X",
        "TPU 8i",
    }
    assert str(chips.RUBIN).endswith("announced")
    assert "SRAM" in str(chips.WSE3)


def test_prices_and_announcements_grow_old_and_shipping_figures_do_not():
    known = [chips.H100, chips.TPU8T, chips.TRAINIUM2]
    young, old = (age.stale_candidates(known, date(2026, month, 1)) for month in (10, 12))
    assert [(one.chip.name, one.what) for one in young] == [("H100", "price"), ("TPU 8t", "announced")]
    assert [one.stale for one in young] == [False, False]
    assert [one.stale for one in old] == [False, True]
    assert [replace(old[0], days=days).stale for days in (182, 183)] == [False, True]  # half a year and a day
