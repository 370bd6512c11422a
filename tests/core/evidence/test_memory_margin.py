"""The count of a chip's memory against what published runs held, and the headroom that follows from it."""

import pytest

from scalingbook_lib import models
from scalingbook_lib.calibrated import recommendation
from scalingbook_lib.calibrated.memory_margin import FITS_WITH, memory_margin
from scalingbook_lib.evidence import memory
from scalingbook_lib.machines import chips

approx = pytest.approx


def test_at_most_3_in_100_published_runs_are_said_not_to_fit():
    assert len(memory.refused()) <= memory.REFUSED * len(memory.counted_runs())
    assert len(memory.counted_runs()) > 480


def test_the_headroom_is_what_a_plan_needs_to_fit_with_90_in_100():
    for chip in (chips.H100, chips.V5P):
        margin = memory_margin(chip)
        counted = (1 - margin.headroom) * chip.hbm_bytes
        assert margin.probability(counted, chip.hbm_bytes) == approx(FITS_WITH)
        assert 0.1 < margin.headroom < 0.3


def test_pytorch_holds_more_than_is_counted_and_xla_what_is_counted():
    pytorch, xla = memory_margin(chips.H100), memory_margin(chips.V5P)
    assert 1.05 < pytorch.median < 1.2
    assert 0.95 < xla.median < 1.05
    assert (pytorch.deviation, xla.deviation) == (approx(0.11, abs=0.03), approx(0.15, abs=0.03))
    assert "fits with a probability of 90%" in str(pytorch)


def test_printed_peaks_are_ratios_of_the_count():
    one = next(one for one in memory.counted_runs() if one.measured)
    assert one.run.memory_bytes == approx(one.measured * one.counted)
    assert "counted" in str(one)


def test_a_margin_follows_from_ratios_and_from_the_counts_of_runs():
    found = memory.margin("PyTorch", [1.0, 1.21])
    assert (found.median, found.measured) == (approx(1.1), 2)
    assert found.error == memory_margin(chips.MI300X).error


def test_habits_are_those_of_the_published_software():
    deepseek, llama = models.find("DeepSeek-V3"), models.find("Llama 3 70B")
    assert recommendation.habits(deepseek, chips.H100)["expert_domains"] == 4
    assert recommendation.habits(llama, chips.V5P) == {"collective_matmul": True, "logit_bytes": 2.0}
    assert recommendation.habits(llama, chips.H100) == {"collective_matmul": True}
