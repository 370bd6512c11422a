"""The Workbench asks the command line: same figures, errors of their field, fit first, never a traceback."""

import json
import random
import re
import shlex

import pytest

from scalingbook_book.reader.draw.palette import LIGHT
from scalingbook_cli.workbench import UNFORESEEN, fit, notation, panels, pictures, workbench_json
from scalingbook_cli.workbench.flips import CLOSE, FACTORS, flip
from scalingbook_cli.workbench.setup import FIELDS, WorkbenchSetup
from scalingbook_lib import models, planner

SMALL = {"model": "llama-3-8b", "machine": "v5e:4x4", "server": "v5e:2x2", "batch": "64", "weights": "int8"}
CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000, "tie_word_embeddings": False,
}  # fmt: skip
MODELS = [model.name for model in models.CATALOG]
MACHINES = fit.offered()
PAIRS = [(random.Random(7 * n).choice(MODELS), random.Random(11 * n).choice(MACHINES)) for n in range(1, 51)]
FEW = 200  # plans judged before a search is ended: what is asked here is not which plan is best


def said(ask, *setups, **more):
    told = [{"values": values, "config": config} for values, config in setups]
    return json.loads(workbench_json(json.dumps({"ask": ask, "setups": told, **more})))


def test_the_commands_that_repeat_a_set_up_give_its_figures(ask):
    lines = said("lines", (SMALL, ""))["lines"]
    values = said("values", (SMALL, ""))
    for line in lines:
        program, command, *words = shlex.split(line)
        assert program == "scalingbook"
        assert ask(command, *words, "--json").values == values[command]


@pytest.mark.parametrize("panel", ["model", "roofline", "plan", "serve", "cost"])
def test_every_panel_shows_a_figure_or_a_table_and_its_derivation(panel):
    shown = said("panel", (SMALL, ""), panel=panel)
    assert not shown["refused"]
    assert "<svg" in shown["picture"]["narrow"] if panel != "cost" else shown["tables"]
    assert all(line["formula"] and line["numbers"] and line["value"] for line in shown["lines"])
    if panel == "cost":  # the panels of training and serving derive the numbers
        assert [table["title"] for table in shown["tables"]] == ["The whole run"]
        trained, served = shown["told"]
        assert trained.startswith("Training is expected to cost ")
        assert served.startswith("Serving costs $")
        assert not shown["lines"]
    else:
        last = {"roofline": "decode: T, no overlap"}
        assert shown["lines"][-1]["name"] == last.get(panel, shown["lines"][-1]["name"])
    if panel in ("roofline", "cost"):  # both phases fit, which the status bar and their own panels say
        assert "workbench-fit" not in shown["html"]
    else:
        assert shown["html"].index("workbench-fit") < shown["html"].index(
            "workbench-table" if shown["tables"] else "<svg"
        )


def test_the_status_bar_gives_the_days_that_the_whole_run_is_expected_to_take():
    (table,) = said("panel", (SMALL, ""), panel="cost")["tables"]
    (days,) = [row for row in table["rows"] if row[0] == "days"]
    bar = said("panel", (SMALL, ""), panel="plan")["fit"]["bar"]
    assert f"{days[2]}\N{NO-BREAK SPACE}days expected ({days[1]} for the steps alone)" in bar


def test_the_table_of_the_whole_run_is_shown_only_with_the_cost():
    tables = {name: said("panel", (SMALL, ""), panel=name)["tables"] for name in ("plan", "cost")}
    shown = {name: [table["title"] for table in found] for name, found in tables.items()}
    assert panels.RUN not in shown["plan"]
    assert panels.RUN in shown["cost"]


def test_a_run_of_more_than_a_year_is_called_too_long_with_the_chips_that_would_shorten_it():
    values = SMALL | {"tokens": "1T"}
    days = said("values", (values, ""))["plan"]["billed"]["days"]
    assert days > panels.LONG_DAYS
    chips = 16 * days / panels.SHORTER_DAYS
    remark = said("panel", (values, ""), panel="plan")["told"][-1]
    assert remark.startswith(f"A run of {round(days):,} days is too long")
    (written,) = re.findall(r"about ([\d,]+) chips", remark)
    assert int(written.replace(",", "")) == pytest.approx(chips, rel=0.05)
    short = said("panel", (SMALL | {"tokens": "1G"}, ""), panel="plan")["told"]
    assert not any("too long" in line for line in short)


def test_the_cost_of_a_token_is_printed_with_the_same_digits_in_every_sentence_and_table():
    shown = said("panel", (SMALL, ""), panel="serve")
    usd = panels.price(said("values", (SMALL, ""))["serve"]["usd_per_million_output_tokens"])
    cells = [row[1] for table in shown["tables"] for row in table["rows"] if row[0].startswith("USD per")]
    assert cells == [usd]
    assert f"${usd} per million" in "".join(shown["told"])
    assert f"${usd} per million" in shown["fit"]["bar"].replace("\N{NO-BREAK SPACE}", " ")
    assert shown["lines"][-1]["value"] == f"{usd} USD"


@pytest.fixture
def ended_early(monkeypatch):
    """Searches for the best plan end after a few, so that hundreds of set-ups can be tried."""
    searched = planner.plans

    def few(*args, watch, **how):
        return searched(*args, watch=lambda done, of: done > FEW or watch(done, of), **how)

    monkeypatch.setattr(planner, "plans", few)


def answers(**values):
    """Of every panel: an answer that begins with whether it fits, or one sentence of the command line."""
    for name in panels.PANELS:
        shown = said("panel", (values, ""), panel=name)
        text = shown.get("error", "")
        assert UNFORESEEN not in text, (name, text)
        assert "Traceback" not in shown["html"]
        shared = name in ("roofline", "cost")  # these say only what does not fit
        assert text if "fit" not in shown else shown["fit"]["told"] or shared, name
        assert "\n" not in text


@pytest.mark.parametrize("model", MODELS)
def test_every_model_gets_an_answer_or_a_sentence(model, ended_early):
    answers(model=model)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_gets_an_answer_or_a_sentence(machine, ended_early):
    answers(machine=machine, server=machine)


@pytest.mark.parametrize(("model", "machine"), PAIRS)
def test_any_pair_gets_an_answer_or_a_sentence(model, machine, ended_early):
    answers(model=model, machine=machine, server=machine)


def test_what_does_not_fit_says_by_how_much_and_where_it_would():
    shown = said("panel", ({"model": "Llama 3.1 405B"}, ""), panel="serve")
    assert shown["fit"]["fits"] is False
    assert "110 GB does not fit in 80 GiB of H100" in shown["fit"]["told"]
    assert shown["fit"]["apply"] == {"field": "server", "value": "h100:16"}
    assert 'data-apply="server" data-value="h100:16"' in shown["html"]
    larger = said("panel", ({"model": "Llama 3.1 405B", "server": "h100:16"}, ""), panel="serve")
    assert larger["fit"]["fits"] is True
    of_both = said("panel", ({"model": "Llama 3.1 405B"}, ""), panel="roofline")
    assert of_both["fit"]["told"] == "Serving does not fit."


def test_a_missed_latency_target_is_not_a_lack_of_memory():
    shown = said("panel", (SMALL | {"itl": "1us"}, ""), panel="serve")
    assert shown["fit"]["fits"] is True
    assert "no layout meets the ITL target of 1us" in shown["fit"]["told"]
    of_both = said("panel", (SMALL | {"itl": "1us"}, ""), panel="cost")
    assert of_both["fit"]["told"] == "Serving fits, but misses the ITL target."


@pytest.mark.parametrize(
    ("command", "values"), [("plan", {}), ("serve", {}), ("plan", {"machine": "h100:8"})]
)
def test_whether_it_fits_is_the_same_before_and_after_the_search(command, values):
    setup = WorkbenchSetup.of(SMALL | values)
    assert fit.fit(setup, command).fits == fit.settled(setup, command).fits


def test_a_machine_that_can_neither_train_nor_serve_says_so_in_the_list():
    pytest.importorskip("sphinx")
    from web.extension import workbench as page

    told = page._offered()
    assert 'value="m3 ultra" label="m3 ultra: ' in told
    assert 'value="h100:8">' in told
    for command in fit.WHAT:
        assert not fit.refusal("h100:8", command)
        assert "M3 Ultra" in fit.refusal("m3 ultra", command)


@pytest.mark.parametrize(
    ("text", "read"),
    [("8xH100", "h100:8"), ("8 H100", "h100:8"), ("H100 x 16", "h100:16"), ("512xv5p", "v5p:8x8x8"),
     ("16xv5e", "v5e:4x4"), ("v5p:8x8x8", "v5p:8x8x8"), ("tpu 8i", "tpu 8i"), ("nothing", "nothing")],
)  # fmt: skip
def test_a_machine_is_read_as_people_write_it(text, read):
    assert notation.machine(text) == read


@pytest.mark.parametrize(
    ("text", "read"), [("4M", "512"), ("4Mi", "4Mi"), ("512", "512"), ("3M", "366"), ("x", "x")]
)
def test_a_batch_in_tokens_becomes_whole_sequences(text, read):
    assert notation.batch(text, "8192")[0] == read


def test_what_was_read_in_another_way_is_said_under_its_field():
    told = said("lines", (SMALL | {"server": "8xH100", "batch": "4M"}, ""))
    assert "h100:8" in told["lines"][2]
    notes = {note["field"]: note["says"] for note in told["notes"]}
    assert notes["server"] == "Read as h100:8."
    assert "Read as 512 sequences (4,194,304 tokens)." in notes["batch"]
    assert told["errors"] == []


def test_no_two_parts_of_a_stack_have_one_colour():
    parts = {name: float(n) for n, name in enumerate("zabcdefg")}  # one of no length
    stack = pictures._stack(parts)
    assert [(one.label, one.values) for one in stack[-2:]] == [("g", [7.0]), ("the rest", [3.0])]
    assert len(stack) == len(LIGHT)
    assert [one.label for one in pictures._stack({"a": 1.0, "b": 0.0, "c": 2.0})] == ["a", "c"]


def test_a_pasted_config_is_counted_and_named_and_a_bad_one_refused():
    told = said("panel", (SMALL, json.dumps(CONFIG)), panel="model")["told"]
    assert "132,654,080 parameters" in told[0]  # 2·32000·1024 + 4·(4·1024² + 3·1024·4096 + 2·1024) + 1024
    unknown = CONFIG | {"model_type": "nothing", "hc_mult": 4}  # a part that no field explains
    refused = said("panel", (SMALL, json.dumps(unknown)), panel="model")
    assert refused["field"] == "model"
    assert "nothing" in refused["error"]
    read = said("lines", (SMALL, json.dumps(CONFIG)))
    assert all("config.json" in line for line in read["lines"])
    assert read["model"] == "llama"
    assert [one["field"] for one in said("lines", (SMALL, "{}"))["errors"]] == ["model"]


@pytest.mark.parametrize(("field", "value"), [("model", "zzzzzz"), ("machine", "zzzzzz:8")])
def test_an_error_does_not_list_every_name_that_the_field_suggests(field, value):
    (error,) = said("lines", (SMALL | {field: value}, ""))["errors"]
    assert error["field"] == field
    assert error["error"].endswith("; choose one from the list")


@pytest.mark.parametrize("field", [f.name for f in FIELDS if not f.offered])
def test_what_is_not_read_is_said_of_its_field(field):
    errors = said("lines", (SMALL | {field: "-7 what"}, ""))["errors"]
    assert [one["field"] for one in errors] == [field]
    assert errors[0]["error"]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_an_error_speaks_of_fields_and_not_of_options(field):
    for value in ("", "?", "abc", "0", "-1", "x100:8", "v5p", "15 parsecs"):
        for error in said("lines", ({field.name: value}, ""))["errors"]:
            assert error["field"] == field.name
            for typed in ("--", "`", "name:", "option", "mine.json"):
                assert typed not in error["error"]


@pytest.mark.parametrize("field", [field for field in FIELDS if not field.optional], ids=lambda f: f.name)
def test_an_empty_field_is_named_by_its_label(field):
    (error,) = said("lines", ({field.name: " "}, ""))["errors"]
    assert error["field"] == field.name
    assert error["error"].startswith(f"{field.label} is empty; write a value such as ")


def test_a_panel_names_the_field_of_the_dtype_that_a_chip_does_not_compute_in():
    told = said("panel", ({"compute": "int4"}, ""), panel="serve")["error"]
    assert told.startswith("no int4 rate of H100 is known; write one of bf16, ")
    assert told.endswith(" as Compute dtype, and the stored types as Weight dtype and KV-cache dtype")


def test_two_set_ups_name_what_was_set_and_what_came_of_it():
    told = said("differences", (SMALL, ""), (SMALL | {"machine": "v5e:4x8"}, ""))
    assert told["inputs"] == ["Training machine: v5e:4x8 instead of v5e:4x4"]
    labels = {row[0]: row for row in told["rows"]}
    assert float(labels["Training step"][3].rstrip("×")) < 1
    assert labels["ITL"][3] == "1×"
    assert told["why"][0].startswith("In the training step, ")


@pytest.mark.parametrize(("command", "what"), [("plan", "HBM capacity"), ("serve", "HBM")])
def test_the_nearest_factor_flips_and_nearer_ones_do_not(command, what):
    setup = WorkbenchSetup.of(SMALL)
    found = flip(setup, command, what)
    if found.factor is not None:
        assert found.factor in FACTORS
        assert found.lost is None or found.lost > CLOSE / (1 + CLOSE) - 1e-9
    assert str(found).startswith("HBM")


def test_the_cells_of_the_notebook_give_the_figures_of_the_commands(capsys):
    values = said("values", (SMALL, ""))
    cells = said("notebook", (SMALL, ""))["cells"]
    names: dict = {}
    for cell in cells:
        if cell["kind"] == "code":
            assert len(cell["source"].splitlines()) <= 16
            assert "cli" not in cell["source"]
            exec(cell["source"], names)
    assert names["found"].winner.step.total_s == pytest.approx(values["plan"]["step_time_s"], rel=1e-12)
    assert names["front"].best.itl_s == pytest.approx(values["serve"]["itl_s"], rel=1e-12)
    assert "chip-hours" in capsys.readouterr().out


def test_a_notebook_of_two_set_ups_says_what_they_share_once():
    one, two = SMALL, SMALL | {"machine": "v5e:4x8"}
    sources = [cell["source"] for cell in said("notebook", (one, ""), (two, ""))["cells"]]
    assert len(sources) == len(set(sources)) == 6  # training twice, serving once, each with its heading


def test_each_sentence_on_how_far_predictions_are_off_is_said_once():
    shown = {name: said("panel", (SMALL, ""), panel=name)["html"] for name in panels.PANELS}
    assert shown["plan"].count("80% band") == shown["serve"].count("80% band") == 1
    assert "Ttokens" not in "".join(shown.values())


def test_a_stranger_among_the_fields_is_refused():
    assert "no field 'color'" in said("lines", ({"color": "red"}, ""))["error"]


def test_the_nearest_published_plan_has_a_table_only_where_it_divides():
    fits = said("panel", ({"model": "llama-3-8b", "machine": "h100:64", "batch": "512"}, ""), panel="plan")
    assert "Nearest published plan" in [table["title"] for table in fits["tables"]]
    assert not any("nearest published plan" in line for line in fits["searched"])
    misses = said("panel", ({"model": "llama-3-8b", "machine": "h100:64", "batch": "3"}, ""), panel="plan")
    assert "Nearest published plan" not in [table["title"] for table in misses["tables"]]
    (line,) = [line for line in misses["searched"] if "nearest published plan" in line]
    assert line.endswith("No published plan divides this model, batch and number of chips.")
