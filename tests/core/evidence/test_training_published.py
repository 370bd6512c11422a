"""Predicted steps beside published ones: as fitted, source and software left out, in series, in order."""

import csv
from dataclasses import replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import mean, median

import pytest

from scalingbook_lib.evidence import training
from scalingbook_lib.evidence.factors import line, record
from scalingbook_lib.evidence.measured.training_runs import HELD_OUT, RUNS, find
from scalingbook_lib.evidence.scores import Summary
from scalingbook_lib.evidence.training import compared
from scalingbook_lib.evidence.training.efficiencies import (
    efficiency,
    errors,
    expected,
    fit,
    of,
    ramp,
    step_s,
)
from scalingbook_lib.evidence.training.planned import planned
from scalingbook_lib.machines import chips
from scalingbook_lib.training import Efficiency, memory

DATA = Path(__file__).parents[3] / "data"
RECORD = record("training")
VALUES = RECORD.values
SEEN = ("release", "software", "")


def constant(experts: bool) -> Summary:
    """One MFU for each chip and type, of the other software's runs: what a model has to beat."""
    runs, found = [run for run in training.every() if run.experts == experts], []
    for run in runs:
        others = [one for one in runs if one.software[0] != run.software[0]] or runs
        same = [one for one in others if (one.chip.name, one.precision) == (run.chip.name, run.precision)]
        alike = same or [one for one in others if one.precision == run.precision] or others
        found.append(run.mfu / exp(mean(log(one.mfu) for one in alike)) - 1)
    return Summary.of("constant", found)


def test_every_usable_run_is_predicted_and_the_later_ones_that_say_their_plan():
    runs = [s.run for s in training.scores()]
    assert runs[: len(RUNS)] == list(RUNS)
    assert len(runs) - len(RUNS) > 90
    assert all(s.predicted > 0 and s.left_out > 0 for seen in SEEN for s in training.scores(seen))


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
def test_runs_left_out_with_their_release_seen_with_their_software_seen_and_with_neither(
    experts, seen, most, p90
):
    left_out = training.total(experts, left_out=True, seen=seen)
    assert training.total(experts).mean < left_out.mean < most
    assert left_out.p90 < p90
    assert abs(left_out.bias) < 0.12


@pytest.mark.parametrize("experts", [False, True])
def test_software_left_out_is_predicted_better_by_a_fifth_than_by_the_constant_of_its_chip(experts):
    assert training.total(experts, left_out=True, seen="").mean < 0.8 * constant(experts).mean


def test_steps_are_predicted_as_well_as_fits_can():
    assert training.total(experts=False).mean < 0.05
    assert training.total(experts=False).p90 < 0.11
    assert training.total(experts=True).mean < 0.13
    assert all(abs(training.total(experts).bias) < 0.02 for experts in (False, True))


def test_runs_that_are_held_out_lie_in_the_band_of_software_that_nobody_has_seen():
    errors = [s.error for s in training.held_out()]
    assert len(errors) == 3
    assert max(abs(log(1 + error)) for error in errors) < log(training.band(experts=False))
    assert not {s.run.id for s in training.held_out()} & set(RECORD.left_out["source"])


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("seen", SEEN)
def test_a_band_holds_four_in_five_of_the_runs_of_sources_that_it_never_saw(experts, seen):
    found = training.held_by_band(experts, seen).values()
    assert 0.75 < sum(inside for inside, _ in found) / sum(runs for _, runs in found) < 0.92
    assert training.band(experts, seen) < (1.55 if experts else 1.3)


def test_the_less_is_known_of_software_the_wider_is_the_band():
    for experts in (False, True):
        bands = [training.band(experts, seen) for seen in SEEN]
        assert bands == sorted(bands)


def test_sequence_parallelism_came_with_selective_recomputation():
    """Korthikanti et al., 2022; Megatron's runs of 2021 and MT-NLG's had neither."""
    early = [run for run in RUNS if run.family in ("megatron-sc21", "mt-nlg", "korthikanti22")]
    assert {(run.family, run.remat) for run in early if planned(run).plan.sequence_parallel} == {
        ("korthikanti22", "selective")
    }


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


def test_the_record_is_where_the_fit_ends():
    """A whole fit takes a minute: here is one step more, which changes little."""
    runs = training.every()
    found = fit(runs, rounds=1, start=VALUES)
    assert found == pytest.approx(VALUES, rel=0.05)
    squares = sum(error**2 for error in errors(runs)(VALUES))
    assert sum(error**2 for error in errors(runs)(found)) == pytest.approx(squares, rel=0.01)
    assert list(VALUES) == list(expected(runs))


def test_what_is_left_out_is_recorded_of_every_run():
    for ratios in RECORD.left_out.values():
        assert set(ratios) == {run.id for run in training.every()}
        assert all(0.2 < ratio < 5 for ratio in ratios.values())


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


def test_figures_are_of_classes_chips_and_software_and_none_of_a_run_or_a_model():
    named = {name for run in RUNS for name in (*run.software, line(run.chip, run.precision))}
    asked = expected(training.every())
    assert {name for run in RUNS for name in run.software} >= {"MaxText", "Megatron", "mbridge-26.08"}
    assert all(asked[name].low <= value <= asked[name].high for name, value in VALUES.items())
    assert len(VALUES) < 0.4 * len(training.every())
    assert all(name in VALUES or f"{name}: slowness" in VALUES for name in named)


def test_software_that_nobody_has_seen_is_as_slow_as_all_on_average():
    unseen, tuned = training.calibrated(chips.H100), training.calibrated(chips.H100, software=("Megatron",))
    assert tuned.matmul > 1.05 * unseen.matmul
    assert training.calibrated(chips.H100, software=("nobody's", "0.1")).matmul == unseen.matmul
    release = training.calibrated(chips.H100, software=("Megatron", "nemo-24.07"))
    assert release.matmul == pytest.approx(tuned.matmul, rel=0.1)


def test_a_chip_that_no_fit_saw_is_as_its_kernels_and_its_kin():
    v4, h200 = training.calibrated(chips.V4), training.calibrated(chips.H200)
    assert 0.6 < v4.matmul < 0.9
    assert "kin" in v4.name
    assert h200.matmul == pytest.approx(training.calibrated(chips.H100).matmul)


def test_a_variant_of_less_power_is_slower_by_the_cube_root():
    values = {"H100, 16 bits": 0.7, "memory": 0.8, "software": 1.0}
    half = replace(chips.H100, name="H100 at half its power", power_w=350)
    assert efficiency(values, half, "bf16").matmul == pytest.approx(0.7 * 0.5 ** (1 / 3))
    assert efficiency(values, half, "bf16").memory == pytest.approx(0.8)


def test_software_s_figures_multiply_and_slow_all_classes_that_it_runs():
    values = {"software": 1.0, "fork: slowness": 1.2, "fork 2: slowness": 1.1}
    slow, plain = (efficiency(values, chips.H100, "bf16", software=one) for one in (("fork", "fork 2"), ()))
    assert plain.matmul / slow.matmul == pytest.approx(1.32)
    assert plain.memory / slow.memory == pytest.approx(1.32)
    assert slow.layer_s / plain.layer_s == pytest.approx(1.32)
    assert slow.domain == plain.domain  # a network is no slower
    run = RUNS[0]
    assert step_s(run, of(VALUES, run)) == pytest.approx(training.scores()[0].predicted)


def test_a_score_tells_itself():
    score = next(s for s in training.scores() if s.run is find("dgxc-llama3-8b-h100-sxm-8-bf16-02"))
    assert str(score).startswith(
        "LLaMA-3 8B on 8 H100, bf16, fsdp 4 cp 2, 128 sequences of 8,192: 12.3 s a step"
    )
    assert "dgxc-llama3-8b" in str(score)
    assert isinstance(training.calibrated(chips.H100), Efficiency)
    assert "%" in str(training.total(False))


def test_plans_are_compared_of_one_model_and_recipe_alone():
    assert training.orders()
    for pair in training.orders():
        one, other = pair.first, pair.second
        assert (one.family, one.model, one.chips, one.T) == (other.family, other.model, other.chips, other.T)
        recipes = [set(run.variant.split(",")) - set(compared.ASYNC) for run in (one, other)]
        assert recipes[0] == recipes[1]
        assert one.step_s / other.step_s == pair.published
