"""Tests of the reference pages on accuracy: they are up to date, and every row and tool is accounted for."""

import csv
import re
from math import prod
from xml.etree import ElementTree

import pytest

from scalingbook_book.reader.explorers.view import Chart, Points, Scale, View
from scalingbook_lib.calibrated import records
from scalingbook_lib.calibrated.overhead import chip_hour_overhead
from scalingbook_lib.evidence import accuracy, inference, resources, training
from scalingbook_lib.evidence.local_benchmark import DeviceBenchmark
from tools import cost_report, published, scored_rows
from tools.environment import ROOT
from tools.fidelity_page import PAGE, PEERS
from tools.reference import own_rows
from tools.scatter import sheet
from tools.scored_rows import TABLES, entries, mean_size

BOOK_PAGES = "training", "serving", "fidelity"  # the page on compiled programs is tested beside the compiler
STEMS = "training-runs", "serving-runs", "fidelity", "predicted-and-compiled"
WORDS = 1500  # of a page without its folds
FOLD = re.compile(r"^```\{admonition\}.*?^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", BOOK_PAGES)
def test_a_page_its_figure_and_its_data_are_up_to_date(name):
    stale = [
        path.name
        for path, text in published.load(name).files().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run make fidelity"


@pytest.mark.parametrize("stem", STEMS)
def test_a_page_is_short_and_shows_one_figure_and_one_table(stem):
    shown = FOLD.sub("", (ROOT / f"{stem}.md").read_text(encoding="utf-8"))
    assert len(shown.split()) < WORDS + 300  # the cells of the table count here
    assert shown.count("```{image}") == 1
    (table,) = re.findall(r"(?:^\|.*\n)+", shown, re.MULTILINE)
    assert table.count("\n") <= 2 + 10


@pytest.mark.parametrize("stem", STEMS)
def test_the_data_files_that_a_page_links_exist(stem):
    links = re.findall(r"\]\((data/[^)]+)\)", (ROOT / f"{stem}.md").read_text(encoding="utf-8"))
    assert links
    assert all((ROOT / link).exists() for link in links)


@pytest.mark.parametrize("name", BOOK_PAGES)
def test_the_figure_shows_every_run_once_with_the_bands(name):
    figure = published.load(name).figure()
    (panel,) = figure.view().panels
    assert isinstance(panel, Chart)
    drawn = [mark for mark in panel.marks if isinstance(mark, Points)]
    runs = len(training.scores()) * (name != "serving") + len(inference.scores()) * (name != "training")
    assert sum(len(mark.xs) for mark in drawn) == runs
    assert len(figure.areas()) == 2
    true = sorted(pair for group in figure.groups for pair in group.pairs)
    assert sorted((x, y) for mark in drawn for x, y in zip(mark.xs, mark.ys, strict=True)) == true
    assert ElementTree.fromstring(figure.svg()).attrib["width"] == "376"


def test_a_point_outside_the_axes_is_refused():
    axes = Scale("devices", "", "log", 1, 10), Scale("ratio", "", "linear", 0, 1)
    with pytest.raises(ValueError, match=r"far: the point \(2, 3\) lies outside"):
        sheet(View("a point", (Chart(*axes, (Points("p", [2], [3]),), "far"),)), [])


def test_the_data_files_have_every_predicted_row():
    for name, tables in (
        ("predicted_training_runs", ["training_runs"]),
        ("predicted_serving_runs", ["inference_runs"]),
        ("predicted_kernels", ["kernels", "collectives"]),
    ):
        with (ROOT / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["id"] for row in rows] == [one.id for table in tables for one in entries(table)]
        assert all(float(row["band_low"]) < float(row["band_high"]) for row in rows)


def test_the_code_of_the_page_computes_its_numbers(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "fidelity.md").read_text(encoding="utf-8"), re.S)
    exec(example, {})
    assert capsys.readouterr().out == "".join(f"{one}\n" for one in accuracy.classes())


def test_the_library_and_the_page_count_the_same_rows_and_errors():
    for one in accuracy.classes():
        table, kinds = accuracy.CLASSES[one.name]
        rows = scored_rows.fitted(scored_rows.which(entries(table), *kinds))
        assert one.ids == tuple(row.id for row in rows)
        assert one.known == pytest.approx(mean_size(row.found.error for row in rows))
        assert one.new_source == pytest.approx(mean_size(row.out["source"] for row in rows))
        assert one.roofline == pytest.approx(mean_size(row.roofline for row in rows))
    names = [row[0] for row in PAGE.tables["classes"]()]
    assert [name.lower() for name in names[: len(accuracy.CLASSES)]] == [*accuracy.CLASSES]


def test_runs_that_no_fit_has_used_are_counted_apart():
    ids = {row.id for row in accuracy.not_fitted()}
    assert {run.run.id for run in training.held_out()} < ids
    tables = "training_runs", "inference_runs"
    assert ids == {one.id for table in tables for one in entries(table) if "source" not in one.out}


def test_every_fitted_constant_is_in_the_data_file():
    with (ROOT / "data" / "fitted_constants.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for model, name in (("training", "training"), ("serving", "inference")):
        values = records.record(f"{name}_efficiencies")["values"]
        told = [row["value"] for row in rows if row["model"] == model]
        assert told == [f"{value:.4g}" for value in values.values()]


def test_fitted_runs_have_leave_one_out_errors_and_baselines():
    for table, scores in (("training_runs", training.scores()), ("inference_runs", inference.scores())):
        told = {one.id: one for one in entries(table)}
        own = [told[s.run.id] for s in scores if s.run.id in told]
        assert len(own) > 200
        assert all(one.out and one.inside.keys() == {"source", "software"} for one in own)
        assert all(one.roofline is not None for one in own)


def test_the_coverage_of_single_runs_adds_up_to_that_of_sources():
    for experts in (False, True):
        inside = training.covered()
        runs = [s.run.id for s in training.scores("") if s.run.experts == experts]
        counts = training.interval_coverage(experts).values()
        assert sum(inside[id] for id in runs) == sum(covered for covered, _ in counts)
        assert len(runs) == sum(many for _, many in counts)
    known = inference.covered(known=True)
    kinds = [
        inference.interval_coverage(experts, full=full, known=True)
        for experts, full in ((False, True), (True, True), (False, False))
    ]
    assert sum(known.values()) == sum(covered for kind in kinds for covered, _ in kind.values())
    assert len(known) == len(inference.scores())


def test_what_the_page_trusts_is_more_accurate_than_what_it_does_not():
    """Statements of the pages that contain no computed number."""
    error = {
        (kind, way): mean_size(one.out.get(way) for one in rows)
        for kind, rows in (
            ("dense", scored_rows.which(entries("training_runs"), "training, dense")),
            ("experts", scored_rows.which(entries("training_runs"), "training, experts")),
            ("server", scored_rows.which(entries("inference_runs"), "serving saturated, dense")),
            ("decode", scored_rows.which(entries("inference_runs"), "serving decode")),
            ("TPU", scored_rows.which(entries("inference_runs"), "serving saturated", chips="TPU")),
        )
        for way in ("source", "software", "chip")
    }
    assert error["dense", "software"] < error["dense", "source"] + 0.04
    assert error["dense", "chip"] < error["dense", "source"] + 0.04
    assert error["experts", "source"] > 1.5 * error["dense", "source"]
    assert error["decode", "software"] > 1.5 * error["server", "source"]
    assert error["TPU", "source"] > 2 * error["server", "source"]


def beside(name, rows):
    """The mean errors of another tool and of the library, without the source, on rows that both predict."""
    both = [one for one in rows if name in one.peers and "source" in one.out]
    return mean_size(one.peers[name] for one in both), mean_size(one.out["source"] for one in both)


def test_other_tools_are_less_accurate_but_one_on_its_own_engine():
    for name in PEERS:
        for table in ("training_runs", "inference_runs"):
            theirs, ours = beside(name, entries(table))
            assert theirs is None or ours < theirs
    dense = scored_rows.which(entries("inference_runs"), "serving saturated, dense")
    theirs, ours = beside("aiconfigurator", dense)
    assert abs(theirs - ours) < 0.03


def test_every_peer_tool_has_answers_or_reasons():
    rows = scored_rows.peers()
    assert {row["peer"] for row in rows} == set(PEERS)
    assert all(bool(row["predicted"]) != bool(row["refused"]) for row in rows)
    assert all(row["version"] and row["date"] for row in rows)


def test_every_table_is_scored():
    assert all(len(entries(table)) > 50 for table in TABLES)


def test_kernels_steps_and_servers_of_our_own_gpus_are_listed():
    kinds = {line[0].partition(": ")[2].split(",")[0].split()[0] for line in own_rows.rows()}
    assert kinds == {"matmuls", "attention", "training", "serving"}
    assert sum(int(line[1]) for line in own_rows.rows()) == 440 + 15 + 21


def test_the_good_classes_of_our_own_gpus_are_clearly_better_than_the_bad_ones():
    quoted = {name: int(value.removesuffix("%")) for name, value in own_rows.quoted().items()}
    assert quoted["own_good_most"] < 15 < quoted["own_bad_least"] < quoted["own_bad_most"]


def test_only_the_steps_of_palm_were_faster_than_those_of_our_plan():
    faster = [
        one.run.name for one in cost_report.planned() if one.steps_hours and one.steps_hours < one.hours
    ]
    assert faster == ["PaLM-540B"]


def test_the_recorded_chip_hour_overhead_is_up_to_date():
    """`make fidelity` records it; a new fit changes it."""
    told = cost_report.record()
    assert all(value == getattr(chip_hour_overhead(), name) for name, value in told.items() if name != "date")
    assert told["leave_one_out_error"] < 0.25
    assert cost_report.accuracy().inside > 0.7


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
