"""Predicted inference beside the 201 usable published runs: as fitted, source left out, within their band."""

import csv
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from scalingbook_lib.evidence.tables import frozen

from scalingbook_lib.evidence import inference
from scalingbook_lib.evidence.inference.efficiencies import EXPECTED, classes, expected, fit, key, of
from scalingbook_lib.evidence.inference.planned import planned
from scalingbook_lib.evidence.measured.inference_runs import RUNS, find
from scalingbook_lib.inference import Efficiency
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP4, FP8

TABLE, LEFT_OUT = frozen("inference").table, frozen("inference").left_out
DENSE, EXPERTS, PREFILL, ONE, BATCHES = inference.KINDS
DATA = Path(__file__).parents[3] / "data"
approx = pytest.approx


def test_every_usable_run_is_predicted():
    assert [s.run for s in inference.scores()] == list(RUNS)
    assert all(s.predicted > 0 and s.left_out > 0 and s.peak > 0 for s in inference.scores())
    assert [inference.total(kind).runs for kind in inference.KINDS] == [74, 108, 4, 8, 7]


def test_saturated_serving_is_predicted_within_a_tenth():
    assert inference.total(DENSE).mean < 0.04
    assert inference.total(EXPERTS).mean < 0.075
    assert inference.total(DENSE).p90 < 0.1
    assert inference.total(EXPERTS).p90 < 0.15
    assert all(abs(inference.total(kind).bias) < 0.01 for kind in (DENSE, EXPERTS))


def test_prefill_and_decode_of_one_sequence():
    assert inference.total(PREFILL).mean < 0.12
    assert inference.total(ONE).mean < 0.04
    assert inference.total(BATCHES).mean < 0.07


def test_sources_that_the_table_never_saw():
    assert inference.total(DENSE, left_out=True).mean < 0.12
    assert inference.total(EXPERTS, left_out=True).mean < 0.2
    assert inference.total(ONE, left_out=True).mean < 0.3


def test_a_band_holds_four_in_five_of_the_runs_of_a_source_that_it_never_saw():
    for experts in (False, True):
        held = inference.held_by_band(experts).values()
        assert sum(inside for inside, _ in held) / sum(runs for _, runs in held) >= inference.HOLDS
        assert 1.1 < inference.band(experts) < 1.5


def test_no_real_engine_beats_the_roofline():
    """But one by 1 %, where groups that own sequences are taken to have their prompts in different steps."""
    assert sorted(s.peak_error for s in inference.scores())[1] > 0.05
    assert min(s.peak_error for s in inference.scores()) > -0.01


def test_what_is_expected_of_caches_is_what_kernels_measure():
    """Where a decode step's attention reads 1 GiB of keys and values or more."""
    shares = {"H100 80GB HBM3": chips.H100.hbm_bytes_per_s, "B200": chips.B200.hbm_bytes_per_s}
    with (DATA / "decode_attention.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    large = [
        row for row in rows if 4 * 128 * prod(int(row[n]) for n in ("batch", "seq", "kv_heads")) >= 2**30
    ]
    found = sorted(float(row["hbm_GBps"]) * 1e9 / shares[row["system"]] for row in large)
    assert (len(rows), len(large)) == (376, 32)
    assert all(row["source"] for row in rows)
    assert (found[0], found[-1]) == (approx(0.83, abs=0.005), approx(0.93, abs=0.005))
    assert EXPECTED["kv"].value == approx(found[len(found) // 2], abs=0.02)


def test_the_table_is_what_the_fit_finds():
    for line in (("A100, 330 W", "bf16"), ("TPU v4", "bf16"), ("GB200", "fp4")):
        runs = [run for run in RUNS if key(run) == line]
        found = fit(runs)
        assert found == approx(TABLE[line], rel=6e-3)
        assert tuple(found) == classes(runs)


def test_one_line_for_a_chip_and_type_and_none_for_a_run_or_a_model():
    many = {line: sum(key(run) == line for run in RUNS) for line in {key(run) for run in RUNS}}
    assert set(TABLE) == {line for line, runs in many.items() if runs >= 3}
    assert set(LEFT_OUT) == {inference.source(run) for run in RUNS}
    for row in TABLE.values():
        assert set(row) <= set(EXPECTED)
        assert all(EXPECTED[name].low <= value <= EXPECTED[name].high for name, value in row.items())


def test_a_chip_that_the_table_never_saw_is_like_its_kin():
    gpus = [row for line, row in TABLE.items() if not line[0].startswith("TPU")]
    b300 = inference.calibrated(chips.B300, FP4)
    assert min(row["kv"] for row in gpus) < b300.of("kv", FP8) < max(row["kv"] for row in gpus)
    assert "kin" in b300.name
    assert inference.calibrated(chips.H100, BF16).matmul == inference.calibrated(chips.H100, FP8).matmul
    alone = {("H100", "fp8"): {"matmul": 0.5}}
    assert of(alone, replace(chips.H100, name="H100, 500 W"), FP8).matmul == 0.5
    assert of(alone, chips.V5E, BF16).matmul == expected("matmul", chips.V5E).value


def test_an_engine_that_schedules_loses_more_than_a_bare_loop():
    """Whatever ran on the chip: the A100's runs had no scheduler, those of the H100 had one."""
    for chip, compute in ((chips.A100, BF16), (chips.H100, FP8)):
        served, bare = (inference.calibrated(chip, compute, engine) for engine in ("", "gpt-fast"))
        assert served.host_s > 10 * bare.host_s
        assert served.fixed_s > 2 * bare.fixed_s
        assert served.weights == bare.weights
    assert inference.calibrated(chips.H100, BF16).fixed_s == TABLE["H100", "fp8"]["fixed_s"]


def test_plans_follow_what_the_engine_says_of_itself():
    """perf-overview.md and tuning.py of TensorRT-LLM: groups for experts, 4,096 sequences, whole prompts."""
    groups = planned(find("inf-0112"))
    assert (groups.layout.attention_dp, groups.layout.ep, groups.layout.tp) == (8, 8, 8)
    assert groups.batch == 30000  # all requests of the run at once
    assert planned(find("inf-0034")).batch == 4096
    assert planned(find("inf-0091")).step_tokens > 20000
    assert planned(find("inf-0254")).layout.pp == 2
    assert planned(find("inf-0332")).batch == 135  # vLLM was told so
    assert planned(find("inf-0003")).gathered


def test_a_score_tells_itself():
    score = next(s for s in inference.scores() if s.run is find("inf-0092"))
    assert str(score).startswith("LLaMA-3 70B on 1 H200, fp8, requests of 128 + 128 tokens: 3.8 ktokens/s")
    assert "by a table without LLaMA-3 70B, TensorRT-LLM 1.0" in str(score)
    assert isinstance(inference.calibrated(chips.H100), Efficiency)
    assert "runs: mean error" in str(inference.total(DENSE))
    assert len(inference.by_source()) == len(LEFT_OUT)
