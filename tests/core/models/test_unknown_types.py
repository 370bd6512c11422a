"""A model type that is not known is read by its fields, and what they do not say is told."""

import json
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import ModelError

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
CONFIGS = {row["name"]: row["config"] for row in ORACLE["models"]}
ALIKE = [  # models whose fields say all that there is to count
    "meta-llama/Meta-Llama-3.1-8B",
    "ministral3",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.2",
    "glm4_moe_lite",
    "mistral4",
    "granitemoehybrid",
    "kimi_linear",
]


def test_sizes_that_an_unknown_type_adds_are_listed():
    llama = CONFIGS["meta-llama/Meta-Llama-3.1-8B"]
    told = "no layer has the sizes that were not read ('frobnicate_dim': 77, 'num_hash_heads': 3)"
    odd = llama | {"model_type": "newcomer", "frobnicate_dim": 77, "num_hash_heads": 3}
    assert told in models.from_hf(odd).assumed
    assert "not read" not in str(models.from_hf(llama | {"model_type": "newcomer"}))


@pytest.mark.parametrize("name", ALIKE)
def test_a_known_model_under_an_unknown_type_is_counted_the_same(name):
    config = CONFIGS[name]
    known, read = models.from_hf(config), models.from_hf(config | {"model_type": "newcomer"})
    if name == "granitemoehybrid":  # its width of experts is read of another field
        assert read.softmax_layers == known.softmax_layers
        return
    assert (read.params, read.active_params) == (known.params, known.active_params)
    assert [k.kv_elements_per_token for k in read.layer_kinds] == [
        k.kv_elements_per_token for k in known.layer_kinds
    ]
    assert "model_type 'newcomer' is unknown and was read like" in str(read)
    assert "no norms of queries and keys" in read.assumed


def test_the_type_that_it_resembles_is_found_by_its_fields_and_not_by_its_name():
    read = models.from_hf(CONFIGS["deepseek-ai/DeepSeek-V3"] | {"model_type": "llama9"})
    assert "was read like deepseek_v3" in read.assumed[0]
    read = models.from_hf(CONFIGS["meta-llama/Meta-Llama-3.1-8B"] | {"model_type": "deepseek_v9"})
    assert "was read like llama" in read.assumed[0]


def test_what_the_file_says_is_not_assumed():
    config = CONFIGS["meta-llama/Meta-Llama-3.1-8B"] | {"model_type": "newcomer", "use_qk_norm": True}
    read = models.from_hf(config)
    assert read.qk_norm == "head"
    assert "no norms of queries and keys" not in read.assumed


def test_layers_that_predict_more_tokens_are_named_where_they_cannot_be_counted():
    more = {"model_type": "newcomer", "num_nextn_predict_layers": 2}
    read = models.from_hf(CONFIGS["meta-llama/Meta-Llama-3.1-8B"] | more)
    assert read.next_params == 0
    assert "modules that predict a token more" in read.uncounted


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"hc_mult": 4}, "hc_mult"),
        ({"kv_source_layers": [0]}, "kv_source_layers"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"hidden_size": None}, "model_type"),
        ({"layer_types": ["telepathy"] * 32}, "model_type"),
    ],
)
def test_a_part_that_cannot_be_read_is_refused_with_its_reason(more, field):
    config = CONFIGS["meta-llama/Meta-Llama-3.1-8B"] | {"model_type": "newcomer"} | more
    with pytest.raises(ModelError) as error:
        models.from_hf(config)
    assert error.value.field == field
    assert "no model of type newcomer" not in str(error.value)  # who knows


def test_a_refusal_says_only_what_is_true_of_the_file():
    config = {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "hidden_size": 2816}
    with pytest.raises(ModelError) as error:
        models.from_hf(config)
    assert str(error.value).startswith("num_attention_heads: it is missing")
