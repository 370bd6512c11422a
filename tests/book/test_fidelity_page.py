"""The page on how right the library is says what the library says, of every row and beside others."""

from math import prod

from scalingbook_lib.evidence import inference, resources, training
from scalingbook_lib.evidence.bills import bill
from scalingbook_lib.evidence.own import Survey
from tools import bills, fidelity_page
from tools.environment import ROOT
from tools.fidelity_page import PAGE, PEERS, TABLES, entries


def test_the_page_is_what_the_library_says():
    assert PAGE.path.read_text() == PAGE.text()


def test_runs_that_were_fitted_are_left_out_too_and_beside_simpler_rules():
    for table, scores in (("training_runs", training.scores()), ("inference_runs", inference.scores())):
        told = {one.id: one for one in entries(table)}
        own = [told[s.run.id] for s in scores if s.run.id in told]
        assert len(own) > 200
        assert all(one.out is not None and one.roofline is not None for one in own)


def test_every_tool_answered_and_what_it_did_not_answer_has_a_reason():
    rows = fidelity_page._peers()
    assert {row["peer"] for row in rows} == set(PEERS)
    assert all(bool(row["predicted"]) != bool(row["refused"]) for row in rows)
    assert all(row["version"] and row["date"] for row in rows)


def test_every_table_is_scored():
    assert all(len(entries(table)) > 50 for table in TABLES)


def test_the_bills_are_those_of_the_plans_of_today():
    """`make fidelity` writes them, and after a new fit of steps they are others."""
    told = bills.found()
    assert all(value == getattr(bill(), name) for name, value in told.items() if name != "date")
    assert told["left_out"] < 0.25


def test_the_page_on_gpus_quotes_the_survey_of_an_h100():
    survey = Survey.read(ROOT / "data" / "own_survey.json")
    page = (ROOT / "chapters" / "gpus.md").read_text(encoding="utf-8")
    (product,) = (row for row in survey.rows if row.sizes == (8192, 8192, 8192))
    (copy,) = (row for row in survey.rows if row.sizes == (2**28,))
    rates = 2 * prod(product.sizes) / product.seconds, 2 * 2 * copy.sizes[0] / copy.seconds
    assert f"{rates[0] / 1e12:.0f} TFLOPs/s and {rates[1] / 1e12:.2f} TB/s" in page
    (lasting,) = (
        2 * 8192**3 / float(row["seconds"])
        for row in resources.rows("own_power")
        if (row["chip"], row["what"], row["dtype"]) == ("H100", "product", "bf16")
    )
    assert f"under lasting load {lasting / 1e12:.0f}\nTFLOPs/s" in page
