"""Tests of predicted inference against published runs, as fitted and with sources or software left out."""

import csv
from dataclasses import replace
from math import exp, log, prod
from pathlib import Path
from statistics import mean, median

import pytest

from scalingbook_lib import calibrated, models
from scalingbook_lib import inference as formulas
from scalingbook_lib.calibrated.factors import figure_key, record
from scalingbook_lib.calibrated.serving_efficiency import UNSCHEDULED, efficiency
from scalingbook_lib.evidence import inference
from scalingbook_lib.evidence.inference.efficiencies import (
    CALIBRATION,
    CLASSES,
)
from scalingbook_lib.evidence.inference.planned import planned
from scalingbook_lib.evidence.measured import inference_runs
from scalingbook_lib.evidence.measured.inference_runs import RUNS, find
from scalingbook_lib.inference import Layout, ServingEfficiency
from scalingbook_lib.machines import Cluster, chips
from scalingbook_lib.units import BF16, FP4, FP8

RECORD = record("inference")
VALUES = RECORD.values
PRIOR_VALUES = {name: prior.value for name, prior in CLASSES.items()}
EVERY = inference.all_runs()
DENSE, EXPERTS, PREFILL, ONE, BATCHES = inference.KINDS
DATA = Path(__file__).parents[3] / "data"
approx = pytest.approx


def test_every_usable_run_is_predicted():
    assert [s.run for s in inference.scores()] == list(EVERY)
    assert set(RUNS) < set(EVERY)
    assert all(s.predicted > 0 and s.leave_one_out > 0 and s.peak > 0 for s in inference.scores())
    assert [inference.total(kind).runs for kind in inference.KINDS] == [119, 178, 16, 14, 85]


def test_saturated_serving_is_predicted_within_10_percent():
    assert inference.total(DENSE).mean < 0.055
    assert inference.total(EXPERTS).mean < 0.115
    assert inference.total(DENSE).p90 < 0.11
    assert all(abs(inference.total(kind).bias) < 0.01 for kind in (DENSE, EXPERTS))


def test_prefill_and_single_sequence_decode_are_predicted():
    assert inference.total(PREFILL).mean < 0.1
    assert inference.total(ONE).mean < 0.07
    assert inference.total(BATCHES).median < 0.06  # long prompts on Trainium are twice as slow as their p50


OUT = {
    DENSE: (0.1, 0.2),
    EXPERTS: (0.14, 0.24),
    PREFILL: (0.12, 0.15),
    ONE: (0.09, 0.19),
    BATCHES: (0.16, 0.45),
}


@pytest.mark.parametrize("kind", inference.KINDS)
def test_leave_one_out_errors_of_sources_and_software_are_bounded(kind):
    most, unseen = OUT[kind]
    assert inference.total(kind, leave_one_out=True).mean < most
    assert inference.total(kind, leave_one_out=True, known=False).mean < unseen


def _line(run):
    return figure_key(run.chip, run.compute.name)


@pytest.mark.parametrize("kind", inference.KINDS)
def test_a_constant_share_of_the_roofline_is_at_least_a_fifth_less_accurate(kind):
    """The constant is that of other models on the same chip, in the same dtype and of the same kind."""
    scores = [s for s in inference.scores() if s.kind == kind]
    found = []
    for s in scores:
        others = [one for one in scores if one.source != s.source]
        alike = [
            one
            for one in others
            if figure_key(one.run.chip, one.run.compute.name) == figure_key(s.run.chip, s.run.compute.name)
        ]
        shares = [one.published / one.peak for one in alike or others]
        found.append(abs(median(shares) * s.peak / s.published - 1))
    assert inference.total(kind, leave_one_out=True).mean < 0.8 * mean(found)


def test_an_interval_covers_four_in_five_runs_of_unseen_sources():
    for experts, full in ((False, True), (True, True), (False, False)):
        held = inference.interval_coverage(experts, full=full, known=True).values()
        assert 0.75 < sum(inside for inside, _ in held) / sum(runs for _, runs in held) < 0.92
        known, unseen = (
            inference.prediction_interval(experts, full=full, known=one) for one in (True, False)
        )
        assert 1.1 < known < unseen < 1.7


def test_no_real_engine_beats_the_roofline():
    """One does, by 1%: its attention-DP groups are assumed to prefill in different steps."""
    one, *rest = sorted(s.peak_error for s in inference.scores())
    assert -0.01 < one < 0 < 0.05 < rest[0]


def test_the_prior_of_cache_reads_agrees_with_measured_kernels():
    """For decode attention that reads at least 1 GiB of keys and values."""
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
    assert CLASSES["kv"].value == approx(found[len(found) // 2], abs=0.02)


def test_the_recorded_values_are_a_fixed_point_of_the_fit():
    """A fit that starts at the record changes little and does not lower the objective."""
    found = CALIBRATION.fit(EVERY, VALUES, rounds=1)
    assert found == approx(VALUES, rel=0.03)
    assert set(CALIBRATION.priors(EVERY)) == set(VALUES)
    far = sum(error**2 for error in CALIBRATION.errors(EVERY)(VALUES))
    assert sum(error**2 for error in CALIBRATION.errors(EVERY)(found)) == approx(far, rel=0.01)


def test_fitted_values_belong_to_classes_chips_and_software_only():
    chip = {figure_key(run.chip, run.compute.name) for run in EVERY} | {
        f"{run.chip.name}: reads" for run in EVERY
    }
    software = {key for key in VALUES if key.split(": ")[0] in {run.software[0] for run in EVERY}}
    assert set(VALUES) == set(CLASSES) | chip | software
    assert all(one.low <= VALUES[name] <= one.high for name, one in CALIBRATION.priors(EVERY).items())
    assert all(set(ratios) == {run.id for run in EVERY} for ratios in RECORD.leave_one_out.values())


def test_an_unfitted_chip_takes_the_values_of_its_nearest_variant():
    b300 = calibrated.serving(chips.B300, FP4)
    assert "kin" in b300.name
    assert b300.of("kv", FP8) == calibrated.serving(chips.B200, FP4).of("kv", FP8)  # one for all chips
    alone = PRIOR_VALUES | {"H100, 8 bits": 0.5, "H100: reads": 1.1}
    assert efficiency(alone, replace(chips.H100, name="H100, 900 W"), FP8).weights == approx(
        efficiency(alone, chips.H100, FP8).weights
    )
    assert efficiency(alone, chips.H100, FP8).matmul < 0.5
    assert efficiency(alone, chips.V5E, BF16).matmul == efficiency(PRIOR_VALUES, chips.V5E, BF16).matmul


def test_faster_memory_never_slows_decoding():
    """Overheads between steps belong to the software, whatever the chip."""
    model, how, steps = models.find("Llama 3 70B"), Layout(weights=FP8, kv=FP8, compute=FP8), []
    for by, name in ((1.0, "H100"), (1.5, "a faster H100")):
        chip = replace(chips.H100, name=name, hbm_bytes_per_s=by * chips.H100.hbm_bytes_per_s)
        table = calibrated.serving(chip, FP8)
        assert table.fixed_s == calibrated.serving(chips.H100, FP8).fixed_s
        for B in (1, 64):
            step = formulas.decode(model, Cluster.of(chip, 1), how, batch=B, S=1000, efficiency=table)
            steps.append(step.total_s)
    assert steps[2] < 0.8 * steps[0]
    assert steps[3] < 0.85 * steps[1]


def test_scheduling_software_has_larger_overheads_than_a_bare_loop():
    """On any chip: the A100's runs had no scheduler, those of the H100 had one."""
    for chip, compute in ((chips.A100, BF16), (chips.H100, FP8)):
        served, bare = (calibrated.serving(chip, compute, engine) for engine in ("", "gpt-fast"))
        assert served.host_s > 10 * bare.host_s
        assert served.fixed_s > 2 * bare.fixed_s
    assert calibrated.serving(chips.GB200, FP4).host_s > 1.5 * calibrated.serving(chips.B200, FP4).host_s
    assert {"gpt-fast", "NeuronX"} < set(UNSCHEDULED) < {run.software[0] for run in EVERY}


def test_unnamed_software_is_as_slow_as_the_average():
    """Not as fast as the fastest vendor's; the prediction interval covers that."""
    own = [log(VALUES[key]) for key in VALUES if key.endswith(": slowness") and key not in CLASSES]
    assert exp(mean(own)) == approx(1.0, abs=0.05)
    unknown = calibrated.serving(chips.H100, FP8)
    assert unknown.weights < calibrated.serving(chips.H100, FP8, "TensorRT-LLM").weights


def test_layouts_follow_the_engine_documentation():
    """perf-overview.md and tuning.py of TensorRT-LLM: groups for experts, 4,096 sequences, whole prompts."""
    groups = planned(find("inf-0112"))
    assert (groups.layout.attention_dp, groups.layout.ep, groups.layout.tp) == (8, 8, 8)
    scout = planned(find("inf-0054")).layout  # whose cache could be split by heads
    assert (scout.attention_dp, scout.ep, scout.tp) == (4, 4, 4)
    assert groups.batch == 30000  # all requests of the run at once
    assert planned(find("inf-0034")).batch == 4096
    assert planned(find("inf-0091")).step_tokens > 20000
    assert planned(find("inf-0254")).layout.pp == 2
    assert planned(find("inf-0332")).batch == 135  # vLLM was told so
    assert planned(find("inf-0003")).weights_gathered
    cpp = next(run for run in EVERY if run.id == "ninf-0159")  # its runtime in C++ splits experts as layers
    assert (planned(cpp).layout.attention_dp, planned(cpp).layout.tp) == (1, 8)


@pytest.mark.parametrize(
    ("engine", "ep", "groups"),
    [("vLLM 0.11", "", 1), ("SGLang 0.5", "", 1), ("SGLang 0.5", "8", 8), ("TensorRT-LLM 1.0", "", 8)],
)
def test_latent_attention_is_sharded_by_sequence_only_where_a_row_or_the_engine_says_so(engine, ep, groups):
    row = {"model": "DeepSeek-R1", "phase": "serving", "chip": "H200", "chips": "8", "tp": "8", "ep": ep}
    lengths = {"input_len": "4000", "output_len": "200", "output_tok_s_total": "750", "weight_dtype": "fp8"}
    found = planned(inference_runs.read(row | lengths | {"engine": engine})).layout
    assert (found.attention_dp, found.tp) == (groups, 8)


@pytest.mark.parametrize(
    ("engine", "chip", "tokens"),
    [("vLLM 0.11", "H100-SXM", 8192), ("vLLM 0.11", "A100-80G", 2048), ("vLLM ROCm 0.10", "MI300X", 8192)],
)
def test_the_steps_of_vllm_have_its_default_limit_for_the_chip(engine, chip, tokens):
    """vllm/engine/arg_utils.py; TensorRT-LLM's limit follows from the lengths instead."""
    row = {"model": "Llama-3.1-8B", "phase": "serving", "chip": chip, "chips": "1", "tp": "1"}
    lengths = {"input_len": "2000", "output_len": "100", "output_tok_s_total": "750", "weight_dtype": "bf16"}
    run = inference_runs.read(row | lengths | {"engine": engine})
    assert planned(run).step_tokens == tokens
    assert planned(replace(run, most_tokens=512)).step_tokens == 512
    own = inference_runs.read(row | lengths | {"engine": "TensorRT-LLM 1.0"})
    assert planned(own).step_tokens not in (2048, 8192)


def test_a_score_prints_its_errors():
    score = next(s for s in inference.scores() if s.run is find("inf-0092"))
    assert str(score).startswith("Llama 3 70B on 1 H200, fp8, requests of 128 + 128 tokens: 3,800 tokens/s")
    assert "by a table without Llama 3 70B, TensorRT-LLM 1.0" in str(score)
    assert isinstance(calibrated.serving(chips.H100), ServingEfficiency)
    assert "runs: mean error" in str(inference.total(DENSE))
