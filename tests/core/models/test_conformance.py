"""The public vectors agree with the library and transformers, and slips are recognized by their values."""

import json
import re
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import ModelError
from scalingbook_lib.models.conformance.compared import conform
from scalingbook_lib.models.conformance.vectors import CONTEXTS, published, table

DATA = Path(__file__).parents[3] / "data"
VECTORS = DATA / "vectors" / "models.json"
SCHEMA = json.loads((DATA / "vectors" / "models.schema.json").read_text(encoding="utf-8"))
DEEPSEEK, QWEN, OSS = "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-0.6B", "openai/gpt-oss-20b"


def test_the_table_follows_its_schema():
    told, row = table(), SCHEMA["$defs"]["row"]
    assert set(SCHEMA["required"]) <= set(told) <= set(SCHEMA["properties"])
    for model in told["models"]:
        assert set(model) == set(SCHEMA["$defs"]["model"]["required"])
        for one in model["rows"]:
            assert set(one) == set(row["required"])
            assert re.fullmatch(row["properties"]["quantity"]["pattern"], one["quantity"])
            assert one["unit"] in row["properties"]["unit"]["enum"]
            assert one["value"] >= 0
            assert one["fields"]


def test_every_model_has_parameters_a_cache_and_flops_at_five_contexts():
    needed = {"parameters", "active_parameters", "weight_bytes", "kv_bytes_per_token"}
    needed |= {f"forward_flops@{S}" for S in CONTEXTS}
    assert len(CONTEXTS) == 5
    for rows in published().values():
        assert needed <= set(rows)


def test_vectors_agree_with_what_transformers_counted():
    oracle = json.loads((DATA / "model_oracle.json").read_text(encoding="utf-8"))["models"]
    for row in oracle:
        default = "" if row["source"] == "published" else " (default of the class)"
        rows = published()[row["name"] + default]
        assert rows["parameters"]["value"] == row["parameters"]
        assert rows["active_parameters"]["value"] == row["active"]
        share = sum(2 * c["layers"] * c["elements"] / c["every"] for c in row["cache"])
        assert rows["kv_bytes_per_token"]["value"] == pytest.approx(share)


def test_each_number_names_the_fields_that_change_it():
    """A field that is named changes the number when its value is changed, and the count of experts does."""
    rows = published()[OSS]
    assert "num_experts_per_tok" in rows["active_parameters"]["fields"]
    assert "num_experts_per_tok" not in rows["parameters"]["fields"]
    assert {"num_key_value_heads", "head_dim"} <= set(rows["kv_bytes_per_token"]["fields"])
    assert "vocab_size" not in rows["kv_bytes_per_token"]["fields"]
    assert "quantization_config" in rows["weight_bytes"]["fields"]


def right(model, quantity):
    return published()[model][quantity]["value"]


def one(model, quantity, value):
    (found,) = conform(f"model,quantity,value\n{model},{quantity},{value}\n").differ
    return found


SLIPS = [
    (QWEN, "parameters", lambda v: v + 151_936 * 1024, "tied embeddings counted twice"),
    (QWEN, "forward_flops@8192", lambda v: v / 2, "MACs given for FLOPs"),
    (QWEN, "parameters", lambda v: v - 151_936 * 1024, "embedding left out"),
    ("Qwen/Qwen3-8B", "kv_bytes_per_token", lambda v: v * 4, "GQA forgotten"),
    ("Qwen/Qwen3-8B", "kv_bytes_per_token", lambda v: v / 2, "K only"),
    ("Qwen/Qwen3-8B", "weight_bytes", lambda v: v / 2**30, "given in units of Gi"),
    ("Qwen/Qwen3-8B", "weight_bytes", lambda v: v * 2**30 / 1e9, "G written for Gi"),
    (DEEPSEEK, "active_parameters", lambda v: v - 58 * 3 * 7168 * 2048, "active without the shared expert"),
    (DEEPSEEK, "kv_bytes_per_token", lambda v: 2 * 61 * 128 * (192 + 128), "MLA's keys and values"),
    (DEEPSEEK, "active_parameters", lambda v: right(DEEPSEEK, "parameters"), "all parameters given"),
    (OSS, "weight_bytes", lambda v: 2 * right(OSS, "parameters"), "all weights counted in bf16"),
    (OSS, "forward_flops@131072", lambda v: 2 * right(OSS, "active_parameters"), "2 · active parameters"),
]


@pytest.mark.parametrize(("model", "quantity", "wrong", "slip"), SLIPS)
def test_a_known_slip_is_recognized(model, quantity, wrong, slip):
    found = one(model, quantity, wrong(right(model, quantity)))
    assert slip in found.slip
    assert found.right == right(model, quantity)


def test_a_number_that_no_slip_explains_says_so():
    assert one(QWEN, "parameters", right(QWEN, "parameters") * 1.0777).slip == ""


def test_the_vectors_conform_to_themselves():
    found = conform(VECTORS.read_text(encoding="utf-8"))
    assert found.conforms
    assert (found.rounded, found.unknown, found.differ) == (0, (), ())
    assert found.models == len(published())


def test_rounded_numbers_and_other_spellings_of_a_name_agree():
    found = conform("model,quantity,value\nqwen3 8b,parameters,8.19e9\nQwen/Qwen3-8B,parameters,8190735360\n")
    assert (found.agree, found.rounded, found.conforms) == (1, 1, True)


def test_rows_without_a_vector_are_told_and_do_not_conform():
    found = conform('{"nobody": {"parameters": 3}}')
    assert found.unknown == (("nobody", "parameters"),)
    assert not found.conforms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "model,value\na,1\n",
        "model,quantity,value\nQwen/Qwen3-8B,parameters,many\n",
        "model,quantity,value\nQwen/Qwen3-8B,parameters,nan\n",
        "model,quantity,value\nQwen/Qwen3-8B,parameters,1e999\n",
        "{",
        "[3]",
        '{"models": 3}',
        '{"models": [{"model": "a", "rows": [3]}]}',
    ],
)
def test_a_file_of_another_form_is_refused(text):
    with pytest.raises(ModelError):
        conform(text)


def test_a_vector_is_of_the_model_that_its_config_makes():
    for model in table()["models"][::10]:
        assert models.from_hf(model["config"]).params == published()[model["model"]]["parameters"]["value"]
