"""Tests of predicted step times against published runs, as fitted and with sources or software left out."""

import csv
from dataclasses import replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import mean, median

import pytest

from scalingbook_lib import calibrated
from scalingbook_lib.calibrated.default_machine import default_machine
from scalingbook_lib.calibrated.factors import figure_key, record
from scalingbook_lib.calibrated.training_efficiency import FLASH2_ON_HOPPER, efficiency, ramp
from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.measured.training_runs import HELD_OUT, RUNS, find
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.training import compared
from scalingbook_lib.evidence.training.efficiencies import (
    CALIBRATION,
    efficiency_of,
    step_s,
)
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.machines import chips
from scalingbook_lib.training import TrainingEfficiency, memory

DATA = Path(__file__).parents[3] / "data"
RECORD = record("training")
VALUES = RECORD.values
SEEN = ("release", "software", "")


def constant(experts: bool) -> Summary:
    """The error of one constant MFU for each chip and dtype, from the other software's runs."""
    runs, found = [run for run in training.all_runs() if run.experts == experts], []
    for run in runs:
        others = [one for one in runs if one.software[0] != run.software[0]] or runs
        same = [one for one in others if (one.chip.name, one.precision) == (run.chip.name, run.precision)]
        alike = same or [one for one in others if one.precision == run.precision] or others
        found.append(run.mfu / exp(mean(log(one.mfu) for one in alike)) - 1)
    return Summary.of("constant", found)


def test_every_usable_run_is_predicted():
    runs = [s.run for s in training.scores()]
    assert runs[: len(RUNS)] == list(RUNS)
    assert len(runs) - len(RUNS) > 90
    assert all(s.predicted > 0 and s.leave_one_out > 0 for seen in SEEN for s in training.scores(seen))


@pytest.mark.parametrize(
    ("experts", "seen", "most", "p90"),
    [
        (False, "release", 0.06, 0.14),
        (False, "software", 0.11, 0.2),
        (False, "", 0.16, 0.28),
        (True, "release", 0.17, 0.38),
        (True, "software", 0.26, 0.53),
        (True, "", 0.26, 0.53),
    ],
)
def test_leave_one_out_errors_grow_as_less_of_the_software_is_known(experts, seen, most, p90):
    leave_one_out = training.total(experts, leave_one_out=True, seen=seen)
    assert training.total(experts).mean < leave_one_out.mean < most
    assert leave_one_out.p90 < p90
    assert abs(leave_one_out.bias) < 0.12


@pytest.mark.parametrize("experts", [False, True])
def test_unseen_software_is_predicted_a_fifth_better_than_by_a_constant_mfu(experts):
    assert training.total(experts, leave_one_out=True, seen="").mean < 0.8 * constant(experts).mean


def test_fitted_errors_are_small():
    assert training.total(experts=False).mean < 0.05
    assert training.total(experts=False).p90 < 0.11
    assert training.total(experts=True).mean < 0.13
    assert all(abs(training.total(experts).bias) < 0.02 for experts in (False, True))


def test_held_out_runs_lie_in_the_interval_of_unseen_software():
    errors = [s.error for s in training.held_out()]
    assert len(errors) == 3
    assert max(abs(log(1 + error)) for error in errors) < log(training.prediction_interval(experts=False))
    assert not {s.run.id for s in training.held_out()} & set(RECORD.leave_one_out["source"])


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("seen", SEEN)
def test_an_interval_covers_four_in_five_runs_of_unseen_sources(experts, seen):
    found = training.interval_coverage(experts, seen).values()
    assert 0.75 <= sum(inside for inside, _ in found) / sum(runs for _, runs in found) < 0.92
    assert training.prediction_interval(experts, seen) < (1.55 if experts else 1.3)


def test_the_interval_widens_as_less_of_the_software_is_known():
    for experts in (False, True):
        bands = [training.prediction_interval(experts, seen) for seen in SEEN]
        assert bands == sorted(bands)


def test_sequence_parallelism_came_with_selective_recomputation():
    """Korthikanti et al., 2022; Megatron's runs of 2021 and MT-NLG's had neither."""
    early = [run for run in RUNS if run.family in ("megatron-sc21", "mt-nlg", "korthikanti22")]
    assert {(run.family, run.remat) for run in early if planned(run).plan.sequence_parallel} == {
        ("korthikanti22", "selective")
    }


def test_published_plans_fit_in_memory():
    """With the published rematerialization, or with any if none is published; exceptions are listed."""
    beyond = {
        "tpu-recipes-tpuv6e-tpuv6e-256-bf16-07": 1.01,  # by half a percent
        "tpu-recipes-tpuv6e-tpuv6e-32-bf16-02": 1.29,  # 12 bytes a parameter and fp32 gradients are more
        "mbridge-26-02-01-gb300-64-nvfp4-01": 1.11,  # whole weights and gradients alone are 282 GB
        "llama3-405b-h100-sxm-8192-bf16-01": 1.16,  # frees more of a stage than fused kernels do
        "mbridge-26-04-gb200-256-mxfp8-02": 1.06,  # within the error of the count
        "mbridge-26-04-01-gb200-256-mxfp8-02": 1.06,
        "mbridge-25-11-h100-sxm-64-bf16-01": 1.16,
    }
    for run in (*RUNS, *HELD_OUT):
        given = planned(run)
        said = run.remat if (run.remat or "").startswith("offload") else given.plan.remat  # whatever the host
        policies = (said,) if run.remat else (said, "selective", "full")
        plans = (replace(given.plan, remat=remat) for remat in policies)
        asked = {"batch": run.batch, "T": run.T, "machine": given.machine}
        held = min(memory(given.model, plan, **asked).total for plan in plans)
        assert held <= beyond.get(run.id, 1.0) * run.chip.hbm_bytes, run.id


def test_the_recorded_values_are_a_fixed_point_of_the_fit():
    """A whole fit takes a minute; one more step from the record changes little."""
    runs = training.all_runs()
    found = CALIBRATION.fit(runs, VALUES, rounds=1)
    assert found == pytest.approx(VALUES, rel=0.05)
    squares = sum(error**2 for error in CALIBRATION.errors(runs)(VALUES))
    assert sum(error**2 for error in CALIBRATION.errors(runs)(found)) == pytest.approx(squares, rel=0.01)
    assert list(VALUES) == list(CALIBRATION.priors(runs))


def test_every_run_has_leave_one_out_predictions():
    for ratios in RECORD.leave_one_out.values():
        assert set(ratios) == {run.id for run in training.all_runs()}
        assert all(0.2 < ratio < 5 for ratio in ratios.values())


def test_fitted_attention_agrees_with_measured_kernels():
    with (DATA / "attention.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"] for row in rows)
    for chip, T in product((chips.H100, chips.B200), (1024, 2048, 4096, 8192, 16384)):
        alike = (row for row in rows if row["system"].startswith(chip.name) and int(row["seq"]) == T)
        share = median(float(row["tflops"]) * 1e12 for row in alike) / chip.bf16_flops_per_s
        assert 0.55 / (1 + ramp(chip) / T) == pytest.approx(share, rel=0.1)
    assert ramp(chips.H100) == 1024
    assert calibrated.training(chips.B200).ramp == ramp(chips.B200)


def test_fitted_values_belong_to_classes_chips_and_software_only():
    named = {name for run in RUNS for name in (*run.software, figure_key(run.chip, run.precision))}
    asked = CALIBRATION.priors(training.all_runs())
    assert {name for run in RUNS for name in run.software} >= {"MaxText", "Megatron", "mbridge-26.08"}
    assert all(asked[name].low <= value <= asked[name].high for name, value in VALUES.items())
    assert len(VALUES) < 0.4 * len(training.all_runs())
    assert all(name in VALUES or f"{name}: slowness" in VALUES for name in named)


def test_unseen_software_is_as_slow_as_the_average():
    unseen, tuned = calibrated.training(chips.H100), calibrated.training(chips.H100, software=("Megatron",))
    assert tuned.matmul > 1.03 * unseen.matmul
    assert calibrated.training(chips.H100, software=("nobody's", "0.1")).matmul == unseen.matmul
    release = calibrated.training(chips.H100, software=("Megatron", "nemo-24.07"))
    assert release.matmul == pytest.approx(tuned.matmul, rel=0.1)


@pytest.mark.parametrize(
    ("flash2_ms", "flash3_ms"),
    [((1.935, 4.788), (0.873, 2.585)), ((2.972, 9.460), (1.668, 4.962))],
    ids=["causal", "without a mask"],
)
def test_flash_attention_2_reaches_half_the_rate_of_flash_attention_3_on_hopper(flash2_ms, flash3_ms):
    """Forward and backward on H100, heads of 128 and 8,192 tokens (Dao-AILab/flash-attention, #1791)."""
    assert sum(flash3_ms) / sum(flash2_ms) == pytest.approx(FLASH2_ON_HOPPER, rel=0.03)
    for chip, share in ((chips.H100, FLASH2_ON_HOPPER), (chips.H200, FLASH2_ON_HOPPER), (chips.A100, 1.0)):
        usual, old = calibrated.training(chip), calibrated.training(chip, kernel="flash2")
        assert old.attention == pytest.approx(share * usual.attention)
        assert replace(old, attention=usual.attention) == usual


@pytest.mark.parametrize("seen", ["software", ""])
def test_context_parallel_runs_without_their_source_or_software_are_off_by_less_than_10_percent(seen):
    errors = [abs(s.leave_one_out_error) for s in training.scores(seen) if s.run.cp > 1]
    assert len(errors) == 50
    assert mean(errors) < 0.1
    assert median(errors) < 0.07


def test_an_unfitted_chip_follows_its_kernels_and_its_nearest_variant():
    v4, h200 = calibrated.training(chips.V4), calibrated.training(chips.H200)
    assert 0.6 < v4.matmul < 0.9
    assert "kin" in v4.name
    assert h200.matmul == pytest.approx(calibrated.training(chips.H100).matmul)


def test_a_variant_with_less_power_is_slower_by_the_cube_root():
    values = record("training").values | {"H100, 16 bits": 0.7, "memory": 0.8, "software": 1.0}
    half = replace(chips.H100, name="H100 at half its power", power_w=350)
    assert efficiency(values, half, "bf16").matmul == pytest.approx(0.7 * 0.5 ** (1 / 3))
    assert efficiency(values, half, "bf16").memory == pytest.approx(0.8)


def test_software_factors_multiply_and_slow_down_all_classes():
    values = record("training").values | {
        "memory": 0.8,
        "software": 1.0,
        "fork: slowness": 1.2,
        "fork 2: slowness": 1.1,
    }
    slow, plain = (efficiency(values, chips.H100, "bf16", software=one) for one in (("fork", "fork 2"), ()))
    assert plain.matmul / slow.matmul == pytest.approx(1.32)
    assert plain.memory / slow.memory == pytest.approx(1.32)
    assert slow.layer_s / plain.layer_s == pytest.approx(1.32)
    assert slow.domain == plain.domain  # a network is no slower
    run = RUNS[0]
    assert step_s(run, efficiency_of(VALUES, run)) == pytest.approx(training.scores()[0].predicted)


def test_a_score_prints_its_errors():
    score = next(s for s in training.scores() if s.run is find("dgxc-llama3-8b-h100-sxm-8-bf16-02"))
    assert str(score).startswith(
        "Llama 3 8B on 8 H100, bf16, fsdp 4 cp 2, 128 sequences of 8,192: 12.3 s a step"
    )
    assert "dgxc-llama3-8b" in str(score)
    assert isinstance(calibrated.training(chips.H100), TrainingEfficiency)
    assert "%" in str(training.total(False))


def test_plan_pairs_share_the_model_and_the_recipe():
    assert training.plan_pairs()
    for pair in training.plan_pairs():
        one, other = pair.first, pair.second
        assert (one.family, one.model, one.chips, one.T) == (other.family, other.model, other.chips, other.T)
        recipes = [set(run.variant.split(",")) - set(compared.ASYNC) for run in (one, other)]
        assert recipes[0] == recipes[1]
        assert one.step_s / other.step_s == pair.published


def test_a_default_domain_holds_whole_groups_of_tensor_parallelism():
    """12 GPUs with groups of 4 are three nodes of 4; nobody splits a group over nodes of 6."""
    assert default_machine(chips.H200, 12).domain == 6
    assert default_machine(chips.H200, 12, 4).domain == 4
    assert default_machine(chips.H200, 64, 4).domain == default_machine(chips.H200, 64, 16).domain == 8
