"""Dated predictions are never edited, follow their schema, and are scored when measurements arrive."""

import json
import re
import subprocess

import pytest

from scalingbook_lib import evidence
from scalingbook_lib.evidence.measured import inference_runs, training_runs
from scalingbook_lib.evidence.predictions import PredictionError, predictions, read
from scalingbook_lib.machines import chips
from tools import predictions as tool
from tools import predictions_page, published
from tools.environment import ROOT

FILES = sorted(tool.FOLDER.glob("*.json"))
SOME = FILES[0]


def test_no_prediction_was_edited_removed_or_added_by_hand():
    assert FILES
    assert tool.changed() == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_prediction_follows_the_schema_and_says_what_made_it(path):
    found = read(path)
    assert tool.text(found) == path.read_text(encoding="utf-8")
    assert chips.find(found.chip).name == found.chip == found.specifications["name"]
    assert 1 < found.factor < 2.5
    known = subprocess.run(["git", "cat-file", "-t", found.commit], cwd=ROOT, capture_output=True, text=True)
    assert known.stdout.strip() in ("commit", "")  # "" in a shallow clone, or without git


def test_every_case_was_predicted_once():
    assert {case.id for case in tool.cases()} <= {path.stem for path in FILES}
    found = {chips.find(one.chip) for one in predictions().values()}
    announced = {chip.name for chip in found if chip.status == "announced"}
    assert announced == {"Rubin", "MI455X", "TPU 8t", "TPU 8i"}
    assert {chip.name for chip in found} - announced == {"Trainium3", "GB300"}


@pytest.mark.parametrize("model", ["Kimi K3", "Trinity Large", "K-EXAONE 236B-A23B"])
def test_a_model_without_a_run_is_predicted_on_a_rack_that_exists_and_on_one_that_is_announced(model):
    assert model not in {run.model.name for run in (*training_runs.RUNS, *inference_runs.RUNS)}
    assert {one.chip for one in predictions().values() if one.model == model} == {"Rubin", "GB300"}


def test_every_assumption_has_a_note_below_its_table():
    page = published.load("predictions").text()
    for text in {text for one in predictions().values() for text in one.assumed}:
        assert f"Assumed, because it has not been published: {text}." in page
    assert "1,152 Rubin† |" in page


def test_a_prediction_is_never_overwritten(tmp_path):
    one = read(SOME)
    tool.write(one, tmp_path)
    with pytest.raises(FileExistsError):
        tool.write(one, tmp_path)
    with pytest.raises(SystemExit, match="never written again"):
        tool.main([one.id])
    with pytest.raises(SystemExit, match="there is no case"):
        tool.main(["train-nothing"])


def test_an_edit_is_noticed(tmp_path):
    path = tool.write(read(SOME), tmp_path)
    assert tool.changed(tmp_path) == []
    path.write_text(path.read_text(encoding="utf-8").replace('"date"', '"date" '), encoding="utf-8")
    assert tool.changed(tmp_path) == [f"{path.name} was edited, added by hand or removed"]
    path.unlink()
    assert len(tool.changed(tmp_path)) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "another"),
        ("kind", "guess"),
        ("input", ["serve"]),
        ("value", 1),
        ("low", 0.5),
        ("high", float("inf")),
        ("unit", "s"),
        ("date", "29.11.2026"),
        ("date", None),
        ("commit", "HEAD"),
        ("assumed", "nothing"),
        ("specifications", {}),
        ("model", ""),
    ],
)
def test_a_file_that_breaks_the_schema_is_refused_by_field(tmp_path, field, value):
    broken = tmp_path / SOME.name
    broken.write_text(json.dumps(json.loads(SOME.read_text(encoding="utf-8")) | {field: value}))
    with pytest.raises(
        PredictionError, match=rf"{re.escape(broken.name)}: {field if field != 'high' else 'value'} is"
    ):
        read(broken)


def test_a_file_with_other_fields_or_without_json_is_refused(tmp_path):
    broken = tmp_path / "one.json"
    broken.write_text("{}")
    with pytest.raises(PredictionError, match="has exactly id, kind"):
        read(broken)
    broken.write_text("{")
    with pytest.raises(PredictionError, match="cannot be read as JSON"):
        read(broken)


def test_measured_values_are_scored_and_wrong_rows_are_refused():
    one = read(SOME)
    row = {"prediction": one.id, "measured": str(one.value * 1.1), "unit": one.unit}
    wrong = [row | {"prediction": "none"}, row | {"unit": "s"}, row | {"measured": ""}]
    report = evidence.score([row, *wrong])
    (found,) = report.found
    assert found.error == pytest.approx(1 / 1.1 - 1)
    assert found.in_interval
    assert found.unit == one.unit
    assert (found.interval.low, found.interval.high) == pytest.approx((one.low, one.high))
    assert len(report.refused) == 3


def test_a_measured_value_arrives_on_the_page(monkeypatch, tmp_path):
    one, table = read(SOME), tmp_path / "measured.csv"
    table.write_text(
        "prediction,measured,unit,source,source_url\n"
        f"{one.id},{one.value / 2},{one.unit},A report,https://example.org\n"
    )
    monkeypatch.setattr(predictions_page, "MEASURED", table)
    predictions_page._scored.cache_clear()
    try:
        page = published.load("predictions").text()
    finally:
        predictions_page._scored.cache_clear()
    assert "1 of them has been measured; the band contains 0 of" in page
    assert re.search(r"\(\[A report\]\(https://example.org\)\): \+100.0%", page)


def test_the_page_is_up_to_date():
    (path,) = (files := published.load("predictions").files())
    assert path.read_text(encoding="utf-8") == files[path], "run python -m tools.published predictions"
