"""Predicted steps beside the 402 usable published ones: as fitted, source left out, in series, in order."""

import csv
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, median

import pytest

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.measured.training_runs import HELD_OUT, RUNS, find
from scalingbook_lib.evidence.tables import frozen
from scalingbook_lib.evidence.training.efficiencies import EXPECTED, classes, fit, of, ramp
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.machines import chips
from scalingbook_lib.training import Efficiency, memory

DATA = Path(__file__).parents[3] / "data"
TABLE, LEFT_OUT = frozen("training").table, frozen("training").left_out
CONSTANT_MFU, CALCULON = 0.158, 0.165  # mean errors of dense runs: data/README.md


def test_every_usable_run_is_predicted():
    assert [s.run for s in training.scores()] == list(RUNS)
    assert all(s.predicted > 0 and s.left_out > 0 for s in training.scores())


def test_dense_steps_are_predicted_within_5_percent_and_nine_in_ten_within_10():
    dense = training.total(experts=False)
    assert dense.runs == 312
    assert dense.mean < 0.05 < min(CONSTANT_MFU, CALCULON)
    assert dense.p90 < 0.105
    assert abs(dense.bias) < 0.01


def test_dense_steps_of_a_source_that_the_table_never_saw():
    dense = training.total(experts=False, left_out=True)
    assert dense.mean < 0.1 < min(CONSTANT_MFU, CALCULON)
    assert dense.p90 < 0.18
    assert abs(dense.bias) < 0.02


def test_steps_with_experts_are_predicted_within_a_quarter():
    assert training.total(experts=True).mean < 0.17
    assert training.total(experts=True, left_out=True).mean < 0.275


def test_runs_that_are_held_out_are_predicted_within_6_percent():
    errors = [s.error for s in training.held_out()]
    assert len(errors) == 3
    assert max(map(abs, errors)) < 0.06
    assert not {s.run.family for s in training.held_out()} & set(LEFT_OUT)


@pytest.mark.parametrize("experts", [False, True])
def test_a_band_holds_four_in_five_of_the_runs_of_sources_that_it_never_saw(experts):
    found = training.held_by_band(experts)
    assert sum(runs for _, runs in found.values()) == training.total(experts).runs
    assert sum(inside for inside, _ in found.values()) > 0.8 * sum(runs for _, runs in found.values())
    assert mean(inside / runs for inside, runs in found.values()) > 0.8  # each source counted once
    assert training.band(experts) < (1.7 if experts else 1.25)


def test_ratios_within_a_series_are_right():
    errors = sorted(abs(one.error) for one in training.ratios())
    assert len(errors) == 228
    assert sum(errors) / len(errors) < 0.022
    assert sum(error <= 0.05 for error in errors) / len(errors) > 0.91


def test_what_goes_with_the_errors_of_ratios():
    assert 0.005 < training.per_doubling() < 0.015  # steps grow with the chips, and predictions do not
    crowded = training.crowded()
    assert len(crowded) > 50
    assert abs(mean(one.error for one in crowded)) < 0.005  # a full memory is no reason


def test_a_rule_for_many_chips_was_tried_and_helps_only_those_that_it_was_fitted_to():
    tried = frozen("training").tried["doubling"]
    assert tried["near"] > sum(abs(one.error) <= 0.05 for one in training.ratios())
    assert tried["dense"] < training.total(experts=False, left_out=True).mean
    assert tried["experts"] > training.total(experts=True, left_out=True).mean
    assert tried["held_out"] > 2 * mean(abs(s.error) for s in training.held_out())


def test_plans_that_a_source_compares_are_put_in_its_order():
    pairs = training.orders()
    assert len(pairs) == 7
    assert all(pair.right for pair in pairs)


def test_the_most_memory_of_a_chip():
    found = training.held()
    assert len(found) == 10
    assert all(abs(one.error) < 0.15 for one in found)
    assert sum(abs(one.error) for one in found) / len(found) < 0.06


def test_a_plan_that_ran_fits():
    """As the source says what is done again; else with some policy. What is left has its reason."""
    beyond = {
        "tpu-recipes-tpuv6e-tpuv6e-256-bf16-07": 1.01,  # by half a percent
        "tpu-recipes-tpuv6e-tpuv6e-32-bf16-02": 1.29,  # 12 bytes a parameter and fp32 gradients are more
        "mbridge-26-02-01-gb300-64-nvfp4-01": 1.11,  # whole weights and gradients alone are 282 GB
        "llama3-405b-h100-sxm-8192-bf16-01": 1.16,  # frees more of a stage than fused kernels do
    }
    for run in (*RUNS, *HELD_OUT):
        given = planned(run)
        said = run.remat if (run.remat or "").startswith("offload") else given.plan.remat  # whatever the host
        policies = (said,) if run.remat else (said, "selective", "full")
        plans = (replace(given.plan, remat=remat) for remat in policies)
        asked = {"batch": run.batch, "T": run.T, "machine": given.machine}
        held = min(memory(given.model, plan, **asked).total for plan in plans)
        assert held <= beyond.get(run.id, 1.0) * run.chip.hbm_bytes, run.id


def test_the_table_is_what_the_fit_finds():
    for chip, precision in (("TPU7x", "fp8"), ("GB200", "nvfp4")):
        runs = [run for run in RUNS if (run.chip.name, run.precision) == (chip, precision)]
        found = fit(runs)
        assert found == pytest.approx(TABLE[chip, precision], rel=6e-3)
        assert tuple(found) == classes(runs)


def test_attention_is_as_measured_kernels_are():
    with (DATA / "attention.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"] for row in rows)
    for chip, T in product((chips.H100, chips.B200), (1024, 2048, 4096, 8192, 16384)):
        alike = (row for row in rows if row["system"].startswith(chip.name) and int(row["seq"]) == T)
        share = median(float(row["tflops"]) * 1e12 for row in alike) / chip.bf16_flops_per_s
        assert 0.55 / (1 + ramp(chip) / T) == pytest.approx(share, rel=0.1)
    assert ramp(chips.H100) == 1024
    assert training.calibrated(chips.B200).ramp == ramp(chips.B200)


def test_one_row_for_a_chip_and_type_and_none_for_a_run_or_a_model():
    assert set(TABLE) == {(run.chip.name, run.precision) for run in RUNS}
    assert set(LEFT_OUT) == {training.source(run) for run in RUNS}
    for row in TABLE.values():
        assert set(row) <= set(EXPECTED)
        assert all(EXPECTED[name].low <= value <= EXPECTED[name].high for name, value in row.items())


def test_a_chip_that_the_table_never_saw_is_like_its_kin():
    v4, tpus = training.calibrated(chips.V4), [row for key, row in TABLE.items() if key[0].startswith("TPU")]
    assert min(row["matmul"] for row in tpus) < v4.matmul < max(row["matmul"] for row in tpus)
    assert "kin" in v4.name
    assert training.calibrated(chips.H200).matmul < 0.8


def test_a_variant_of_less_power_is_slower_by_the_cube_root():
    table = {("H100", "bf16"): {"matmul": 0.7, "memory": 0.8}}
    half = replace(chips.H100, name="H100 at half its power", power_w=350)
    assert of(table, half, "bf16").matmul == pytest.approx(0.7 * 0.5 ** (1 / 3))
    assert of(table, half, "bf16").memory == pytest.approx(0.8)


def test_a_score_tells_itself():
    score = next(s for s in training.scores() if s.run is find("dgxc-llama3-8b-h100-sxm-8-bf16-02"))
    assert str(score).startswith(
        "LLaMA-3 8B on 8 H100, bf16, fsdp 4 cp 2, 128 sequences of 8,192: 12.3 s a step"
    )
    assert "without dgxc-llama3-8b" in str(score)
    assert isinstance(training.calibrated(chips.H100), Efficiency)
    for one in (
        training.total(False),
        *training.held()[:1],
        *training.orders()[:1],
        *training.ratios()[:1],
    ):
        assert "%" in str(one) or "times as long" in str(one)
