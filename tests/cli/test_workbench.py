"""The workbench asks the command line: the same figures, errors of their field, what would flip it."""

import json
import shlex

import pytest

from scalingbook_lib.cli.workbench import pictures, workbench_json
from scalingbook_lib.cli.workbench.flips import CLOSE, FACTORS, flip
from scalingbook_lib.cli.workbench.setup import FIELDS, Setup
from scalingbook_lib.reader.draw.palette import LIGHT

SMALL = {"model": "llama-3-8b", "machine": "v5e:4x4", "server": "v5e:2x2", "batch": "64", "weights": "int8"}
CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000, "tie_word_embeddings": False,
}  # fmt: skip


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
    last = {"cost": "USD for a million output tokens", "roofline": "decoding: T, nothing overlaps"}
    assert shown["lines"][-1]["name"] == last.get(panel, shown["lines"][-1]["name"])


def test_no_two_parts_of_a_stack_have_one_colour():
    parts = {name: float(n) for n, name in enumerate("zabcdefg")}  # one of no length
    stack = pictures._stack(parts)
    assert [(one.label, one.values) for one in stack[-2:]] == [("g", [7.0]), ("the rest", [3.0])]
    assert len(stack) == len(LIGHT)
    assert [one.label for one in pictures._stack({"a": 1.0, "b": 0.0, "c": 2.0})] == ["a", "c"]


def test_a_pasted_config_is_counted_and_a_bad_one_refused():
    told = said("panel", (SMALL, json.dumps(CONFIG)), panel="model")["told"]
    assert "132,654,080 parameters" in told[0]  # 2·32000·1024 + 4·(4·1024² + 3·1024·4096 + 2·1024) + 1024
    refused = said("panel", (SMALL, json.dumps(CONFIG | {"model_type": "nothing"})), panel="model")
    assert refused["field"] == "model"
    assert "nothing" in refused["error"]
    lines = said("lines", (SMALL, json.dumps(CONFIG)))["lines"]
    assert all("config.json" in line for line in lines)


@pytest.mark.parametrize("field", [f.name for f in FIELDS if not f.offered])
@pytest.mark.parametrize("panel", ["plan", "serve"])
def test_what_is_not_read_is_said_of_its_field(field, panel):
    known = next(one for one in FIELDS if one.name == field)
    shown = said("panel", (SMALL | {field: "-7 what"}, ""), panel=panel)
    assert shown.get("field") == (field if panel in known.options else None)


def test_two_set_ups_name_what_was_set_and_what_came_of_it():
    told = said("differences", (SMALL, ""), (SMALL | {"machine": "v5e:4x8"}, ""))
    assert told["inputs"] == ["Machine to train on: v5e:4x8 in place of v5e:4x4"]
    labels = {row[0]: row for row in told["rows"]}
    assert float(labels["a training step"][3].split()[0]) < 1
    assert labels["between two tokens"][3] == "1 ×"
    assert "A training step" in told["why"][0]


@pytest.mark.parametrize(("command", "what"), [("plan", "HBM capacity"), ("serve", "HBM")])
def test_the_nearest_factor_flips_and_nearer_ones_do_not(command, what):
    setup = Setup.of(SMALL)
    found = flip(setup, command, what)
    if found.factor is not None:
        assert found.factor in FACTORS
        assert found.lost is None or found.lost > CLOSE / (1 + CLOSE) - 1e-9
    assert str(found).startswith(what)


def test_a_stranger_among_the_fields_is_refused():
    assert "no field 'color'" in said("lines", ({"color": "red"}, ""))["error"]
