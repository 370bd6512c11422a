"""Tests of the page on accuracy: it is up to date, and every row and peer is accounted for."""

from math import prod

from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.evidence import inference, resources, training
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from tools import cost_report, fidelity_page
from tools.environment import ROOT
from tools.fidelity_page import PAGE, PEERS, TABLES, entries


def test_the_page_is_up_to_date():
    assert PAGE.path.read_text() == PAGE.text()


def test_fitted_runs_have_leave_one_out_errors_and_baselines():
    for table, scores in (("training_runs", training.scores()), ("inference_runs", inference.scores())):
        told = {one.id: one for one in entries(table)}
        own = [told[s.run.id] for s in scores if s.run.id in told]
        assert len(own) > 200
        assert all(one.out is not None and one.roofline is not None for one in own)


def test_every_peer_tool_has_answers_or_reasons():
    rows = fidelity_page._peers()
    assert {row["peer"] for row in rows} == set(PEERS)
    assert all(bool(row["predicted"]) != bool(row["refused"]) for row in rows)
    assert all(row["version"] and row["date"] for row in rows)


def test_every_table_is_scored():
    assert all(len(entries(table)) > 50 for table in TABLES)


def test_the_recorded_chip_hour_overhead_is_up_to_date():
    """`make fidelity` records it; a new fit changes it."""
    told = cost_report.record()
    assert all(value == getattr(chip_hour_overhead(), name) for name, value in told.items() if name != "date")
    assert told["leave_one_out_error"] < 0.25


def test_the_gpu_page_quotes_the_benchmark_of_an_h100():
    survey = DeviceBenchmark.read(ROOT / "data" / "own_survey.json")
    page = " ".join((ROOT / "chapters" / "gpus.md").read_text(encoding="utf-8").split())
    (product,) = (row for row in survey.rows if row.sizes == (8192, 8192, 8192))
    (copy,) = (row for row in survey.rows if row.sizes == (2**28,))
    rates = 2 * prod(product.sizes) / product.seconds, 2 * 2 * copy.sizes[0] / copy.seconds
    assert f"{rates[0] / 1e12:.0f} TFLOPs/s and {rates[1] / 1e12:.2f} TB/s" in page
    (lasting,) = (
        2 * 8192**3 / float(row["seconds"])
        for row in resources.rows("own_power")
        if (row["chip"], row["what"], row["dtype"]) == ("H100", "product", "bf16")
    )
    assert f"Under sustained load, its matmuls slowed down to {lasting / 1e12:.0f} TFLOPs/s" in page
