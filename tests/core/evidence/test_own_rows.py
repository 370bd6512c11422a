"""Tests of predictions against the book's own measurements on an H100 and an H200."""

from pathlib import Path
from statistics import median

import pytest

from scalingbook_lib import evidence
from scalingbook_lib.calibrated.bands import COVERAGE
from scalingbook_lib.evidence import resources
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from scalingbook_lib.evidence.scoring import baselines, read_table
from scalingbook_lib.machines.chips import H100, H200
from scalingbook_lib.units import BF16

ROOT = Path(__file__).parents[3]
COPIED = (H100, "", 0.8, 0.9), (H200, "_h200", 0.6, 0.7)  # by XLA; PyTorch copies at 0.88 of an H200's rate


def test_matmuls_of_an_unseen_library_are_predicted():
    rows = evidence.score([*read_table(ROOT / "data" / "own_kernels.csv")]).rows
    assert len(rows) == 2 * 220
    assert not any(row.refused for row in rows)
    large = [row for row in rows if row.row["dtype"] == "bf16" and int(row.row["m"] or 0) >= 512]
    near = [row for row in large if row.found and abs(row.found.error) <= 0.2]
    assert len(large) > 100
    assert len(near) >= 0.8 * len(large)


def test_runs_of_untuned_software_are_predicted_too_fast():
    rows = evidence.score([*read_table(ROOT / "data" / "own_training.csv")]).rows
    errors = [row.found.error for row in rows if row.found and "8B" not in row.row["name"]]
    assert len(errors) == len(rows) - 5 == 10
    assert all(-0.35 < error < 0 for error in errors)
    # what fitted a chip is said to fit one, but where its state is narrower than a row can say
    large = [row for row in rows if row.row["name"] == "Llama-3-8B" and row.row["chip"] == "H100-SXM"]
    unfit = "fits no chip by the count of memory"
    assert [row for row in rows if row.found and unfit in row.found.assumed] == large
    assumed = {told for row in rows if row.found for told in row.found.assumed}
    assert assumed == {"software not known", "chip by its kin", unfit}


def test_steps_and_prompts_of_a_large_model_are_predicted_for_any_software():
    """Llama 3 8B with transformers and with a minimal loop, on two chips, one without training runs."""
    steps = evidence.score([*read_table(ROOT / "data" / "own_training.csv")]).rows
    large = [row.found.error for row in steps if row.found and "8B" in row.row["name"]]
    assert len(large) == 5
    assert all(abs(error) < 0.1 for error in large)
    rows = evidence.score([*read_table(ROOT / "data" / "own_inference.csv")]).rows
    assert len(rows) == 21
    assert {row.row["phase"] for row in rows if not (row.found and row.found.in_interval)} == {"decode"}
    assert sum(row.found.in_interval for row in rows if row.found) >= COVERAGE * len(rows)
    prompts = [row.found.error for row in rows if row.found and row.row["phase"] == "prefill"]
    assert sorted(map(abs, prompts))[len(prompts) // 2] < 0.1


def test_power_draw_grows_with_utilization_up_to_the_limit():
    rows = resources.rows("own_power")
    drawn = {chip: [float(row["watts"]) for row in rows if row["chip"] == chip] for chip in ("H100", "H200")}
    assert all(100 < min(watts) < 130 and 690 < max(watts) < 1.02 * 700 for watts in drawn.values())
    most = [float(row["watts"]) / 700 for row in rows if row["what"].startswith(("prompt", "training"))]
    assert (f"{min(most):.0%}", f"{max(most):.0%}") == ("93%", "101%")  # as `machines.energy` says
    words = [
        (int(row["B"]), float(row["watts"])) for row in rows if row["what"] == "words" and row["T"] == "1024"
    ]
    assert len(words) == 8
    assert words == sorted(words[:4]) + sorted(words[4:])


def test_simple_baselines_are_reported_for_each_class():
    found = baselines.compared(evidence.score([*read_table(ROOT / "data" / "own_kernels.csv")]))
    large = next(group for group in found if group["here"].name == "products m >= 512")
    assert {name: one.runs for name, one in large.items()} == dict.fromkeys(
        ("here", "roofline", "constant"), 2 * 106
    )
    assert large["here"].mean < large["roofline"].mean


@pytest.mark.parametrize(("chip", "name", "low", "high"), COPIED)
def test_the_device_benchmark_is_close_to_its_predictions(chip, name, low, high):
    survey = DeviceBenchmark.read(ROOT / "data" / f"own_survey{name}.json")
    assert survey.chip == chip.name
    assert len(survey.rows) == 27
    assert median(abs(row.ratio - 1) for row in survey.rows) < 0.15
    shares = survey.shares_of_peak(chip)
    assert 0.7 < shares["matmul"] < 0.8
    assert low < shares["memory"] < high
    for found in (survey.training(chip), survey.serving(chip, BF16)):
        assert found.name == f"measured on {survey.device}, {survey.date}"
        assert {what: getattr(found, what) for what in ("matmul", "memory")} == {
            what: shares[what] for what in ("matmul", "memory")
        }
