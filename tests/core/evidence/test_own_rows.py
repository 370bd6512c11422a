"""What the book measured itself on an H100: how near its figures are there."""

from pathlib import Path
from statistics import median

from scalingbook_lib import evidence
from scalingbook_lib.evidence.own import Survey
from scalingbook_lib.evidence.scoring import baselines, opened
from scalingbook_lib.machines.chips import H100
from scalingbook_lib.units import BF16

ROOT = Path(__file__).parents[3]
SURVEY = Survey.read(ROOT / "data" / "own_survey.json")


def test_products_of_a_library_that_no_fit_has_seen_are_predicted():
    rows = evidence.score([*opened(ROOT / "data" / "own_kernels.csv")]).rows
    assert len(rows) == 220
    assert not any(row.refused for row in rows)
    large = [row for row in rows if row.row["dtype"] == "bf16" and int(row.row["m"] or 0) >= 512]
    near = [row for row in large if row.found and abs(row.found.error) <= 0.2]
    assert len(large) > 50
    assert len(near) >= 0.8 * len(large)


def test_runs_of_software_that_nobody_tuned_are_predicted_too_fast():
    rows = evidence.score([*opened(ROOT / "data" / "own_training.csv")]).rows
    errors = [row.found.error for row in rows if row.found]
    assert len(errors) == len(rows) == 5
    assert all(-0.35 < error < 0 for error in errors)
    # what fitted a chip is said to fit one
    assert {told for row in rows if row.found for told in row.found.assumed} == {"software not known"}


def test_rules_without_a_model_are_beside_each_class():
    found = baselines.beside(evidence.score([*opened(ROOT / "data" / "own_kernels.csv")]))
    large = next(group for group in found if group["here"].name == "products m >= 512")
    assert {name: one.runs for name, one in large.items()} == dict.fromkeys(
        ("here", "roofline", "constant"), 106
    )
    assert large["here"].mean < large["roofline"].mean


def test_the_survey_is_of_a_chip_that_is_known_and_near_its_predictions():
    assert SURVEY.chip == H100.name
    assert len(SURVEY.rows) == 27
    assert median(abs(row.ratio - 1) for row in SURVEY.rows) < 0.15
    shares = SURVEY.attained(H100)
    assert 0.7 < shares["matmul"] < 0.8 < shares["memory"] < 0.9
    for found in (SURVEY.training(H100), SURVEY.serving(H100, BF16)):
        assert found.name == f"measured on {SURVEY.device}, {SURVEY.date}"
        assert {what: getattr(found, what) for what in ("matmul", "memory")} == {
            what: shares[what] for what in ("matmul", "memory")
        }
