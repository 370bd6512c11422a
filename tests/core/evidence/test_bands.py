"""Tests of the recorded bands of predictions, and of what doubts add to them."""

from math import exp, hypot, log

import pytest

from scalingbook_lib import evidence
from scalingbook_lib.calibrated import bands, records
from scalingbook_lib.evidence import bands as computed
from scalingbook_lib.evidence import inference, training
from scalingbook_lib.machines import chips


def test_the_recorded_bands_follow_from_the_recorded_fits():
    """After a fit: `python -m tools.calibrate bands`."""
    recorded = records.record("prediction_bands")
    assert recorded["bands"] == computed.computed()
    assert recorded["classes"] == computed.class_rows()


def test_who_knows_less_is_told_a_wider_band():
    for experts in (False, True):
        factors = [bands.training_band(experts=experts, seen=seen).factor for seen in computed.SEEN]
        assert factors == sorted(factors)
        known, unknown = (bands.serving_band(experts=experts, known=known).factor for known in (True, False))
        assert known < unknown


def test_bands_cover_the_runs_of_sources_that_were_left_out():
    covered = [
        training.interval_coverage(experts, seen) for experts in (False, True) for seen in computed.SEEN
    ]
    covered += [
        inference.interval_coverage(experts, full=full, known=known)
        for experts, full in ((False, True), (True, True), (False, False))
        for known in (True, False)
    ]
    for sources in covered:
        inside, runs = (sum(pair[k] for pair in sources.values()) for k in (0, 1))
        assert 0.75 <= inside / runs < 0.95


def test_doubts_add_as_independent_errors():
    one = bands.Band(name="a band", factor=1.2, rows=100)
    both = hypot(log(1.2), bands.DOUBTS["chip by its kin"], bands.DOUBTS["batch not given"])
    assert one.widened(("chip by its kin", "batch not given")) == pytest.approx(exp(both))
    assert one.widened(("remat not given",)) == pytest.approx(1.2)


def test_a_band_from_few_rows_says_so_and_is_wider():
    few = bands.Band(name="a band", factor=1.2, rows=bands.MIN_ROWS - 1)
    assert not few.calibrated
    assert few.widened() > 1.2
    assert str(few) == "a band: band not calibrated, from 19 left-out runs"
    row = {"model": "Llama-3.3-70B", "phase": "prefill", "chip": "H200", "chips": "2", "tp": "2",
           "weight_dtype": "fp8", "kv_dtype": "fp8", "input_len": "1000", "batch_or_concurrency": "1",
           "ttft_ms": "90", "engine": "TensorRT-LLM 1.0"}  # fmt: skip
    (scored,) = evidence.score([row]).rows
    assert scored.found
    assert "band not calibrated" in scored.found.assumed


def test_a_chip_without_published_runs_is_a_doubt():
    assert bands.chip_doubts("training", chips.H100, "bf16") == ()
    assert bands.chip_doubts("training", chips.MI300X, "bf16") == ("chip by its kin",)
