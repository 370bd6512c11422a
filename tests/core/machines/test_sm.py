"""Rates of an SM per cycle agree with the catalog of chips, and each has a source."""

import pytest

from scalingbook_lib.machines import chips
from scalingbook_lib.machines.occupancy import KernelError
from scalingbook_lib.machines.sm import sm_rates

KNOWN = (chips.H100, chips.H200, chips.B200, chips.B300, chips.GB200, chips.GB300)
FIGURES = {"tensor_flops_per_cycle", "smem_bytes_per_cycle", "exponentials_per_cycle", "mma_rows"}


@pytest.mark.parametrize("chip", KNOWN, ids=lambda chip: chip.name)
def test_all_sms_at_the_quoted_clock_give_the_peak(chip):
    sm = sm_rates(chip)
    assert sm.tensor_flops * sm.clock_hz * chip.cores == pytest.approx(chip.bf16_flops_per_s)
    assert sm.hbm_bytes * sm.clock_hz * chip.cores == pytest.approx(chip.hbm_bytes_per_s)
    if chip.clock_hz:  # the GB200's is its highest clock
        assert sm.clock_hz <= chip.clock_hz * 1.001


@pytest.mark.parametrize("chip", KNOWN, ids=lambda chip: chip.name)
def test_every_rate_has_a_source(chip):
    sources = sm_rates(chip).sources
    assert set(sources) - {"l2_bytes_per_cycle", "l2_bytes_per_s"} == FIGURES
    assert len(sources) == len(FIGURES) + 1
    assert all(source.url for source in sources.values())


def test_memories_are_slower_the_farther_they_are_from_the_tensor_cores():
    for chip in KNOWN:
        sm = sm_rates(chip)
        assert sm.smem_bytes > sm.l2_bytes > sm.hbm_bytes


def test_blackwell_doubles_the_tensor_cores_only():
    hopper, blackwell = sm_rates(chips.H100), sm_rates(chips.B200)
    assert blackwell.tensor_flops == 2 * hopper.tensor_flops
    assert (blackwell.smem_bytes, blackwell.exponentials) == (hopper.smem_bytes, hopper.exponentials)
    assert sm_rates(chips.B300).exponentials == sm_rates(chips.GB300).exponentials == 2 * hopper.exponentials


def test_an_h100_computes_the_exponentials_that_flashattention_3_counts():
    sm = sm_rates(chips.H100)
    assert sm.exponentials * sm.clock_hz * 132 == pytest.approx(3.9e12, rel=0.01)  # arXiv 2407.08608


@pytest.mark.parametrize("chip", [chips.A100, chips.MI300X, chips.V5E], ids=lambda chip: chip.name)
def test_a_chip_without_recorded_rates_is_refused(chip):
    with pytest.raises(KernelError, match="choose one of B200, B300, GB200, GB300, H100, H200"):
        sm_rates(chip)
