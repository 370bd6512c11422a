"""Published steps of matmul kernels stay below their ceilings, up to the clock that is not known."""

import itertools

import pytest

from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.kernel_ladders import ladder
from scalingbook_lib.machines import chips
from scalingbook_lib.units import KiB

BOTH = (chips.H100, chips.B200)
HIGHEST_OVER_QUOTED = 1.98 / 1.83  # clocks of an H100


@pytest.mark.parametrize("chip", BOTH, ids=lambda chip: chip.name)
def test_no_measurement_exceeds_its_ceiling_by_more_than_the_clock_may(chip):
    assert all(rung.of_ceiling < HIGHEST_OVER_QUOTED for rung in ladder(chip))


@pytest.mark.parametrize("chip", BOTH, ids=lambda chip: chip.name)
def test_ceilings_and_measurements_rise(chip):
    rungs = ladder(chip)
    for before, after in itertools.pairwise(rungs):
        assert after.flops_per_s > before.flops_per_s
        assert after.ceiling >= before.ceiling


def test_the_last_steps_reach_what_their_authors_print():
    assert [round(100 * ladder(chip)[-1].reached) for chip in BOTH] == [77, 79]
    assert "79% of the peak measured, ceiling 86% (waves)" in str(ladder(chips.B200)[-1])


def test_the_code_of_every_step_fits_an_sm():
    for rung in (*ladder(chips.H100), *ladder(chips.B200)):
        assert rung.tile is None or rung.tile.smem_bytes <= 227 * KiB
        assert 0.8 < rung.used <= 1


def test_every_row_has_a_source_with_its_day():
    for row in resources.rows("kernel_ladders"):
        assert row["source"]
        assert row["source_url"].startswith("https://")
        assert row["as_of"] == "2026-11-29"


def test_other_chips_have_no_ladder():
    with pytest.raises(ValueError, match="choose one of B200, H100"):
        ladder(chips.A100)
