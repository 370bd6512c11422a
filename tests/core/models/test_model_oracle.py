"""Every architecture that transformers can build is counted as transformers counts it.

`data/model_oracle.json` was written by `tools/model_oracle.py`: parameters, active parameters, cached
elements by kind of layer, and states, of models that were instantiated on the meta device.
"""

import contextlib
import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import ModelError

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
ROWS = {row["name"]: row for row in ORACLE["models"]}
SAVED = [name for name, row in ROWS.items() if "saved" in row]
ARCHITECTURES = [
    "afmoe",
    "apertus",
    "arcee",
    "axk1",
    "bailing_hybrid",
    "bamba",
    "beam",
    "bitnet",
    "cohere",
    "cohere2",
    "cohere2_moe",
    "deepseek_v32",
    "deepseek_v4",
    "dots1",
    "dots3_note",
    "ernie4_5",
    "ernie4_5_moe",
    "ernie4_5_vl_moe",
    "exaone4",
    "exaone_moe",
    "falcon_mamba",
    "falcon_h1",
    "flex_olmo",
    "flint",
    "gemma3n_text",
    "gemma4_text",
    "glm4",
    "glm4_moe",
    "glm5_next",
    "glm_moe_dsa",
    "glm_ocr",
    "granitemoehybrid",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "hy_v3",
    "hy_v4",
    "hy_v4_vl",
    "jamba",
    "kimi_k25",
    "kimi_linear",
    "kolibri1",
    "laguna",
    "lara_mini",
    "lfm2",
    "lfm2_moe",
    "lfm3",
    "llama4",
    "longcat_flash",
    "mamba",
    "mamba2",
    "mellum",
    "mimo_v2_flash",
    "minimax_m2",
    "minimax_m3_vl",
    "ministral3",
    "mistral3",
    "mistral_large4",
    "mllama",
    "molmo2",
    "muse_glimmer",
    "muse_spark",
    "nanochat",
    "nemotron_h",
    "olmo",
    "olmo3",
    "olmoe",
    "phi3",
    "phi4_multimodal",
    "phimoe",
    "qwen2_5_omni_thinker",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_next",
    "recurrent_gemma",
    "rwkv",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder2",
    "step3p7",
]


def cache_of(model):
    """Layers by window, tokens per entry and elements; layers that read another one's cache have none."""
    kinds = Counter()
    for kind in model.layer_kinds:
        if kind.kv_elements_per_token:
            kinds[kind.window, kind.every, kind.kv_elements_per_token] += kind.layers
    return kinds


def held(row):
    return Counter({(c["window"], c["every"], c["elements"]): c["layers"] for c in row["cache"]})


def test_the_record_names_its_version_and_has_every_architecture_of_the_list():
    assert re.fullmatch(r"\d+\.\d+\.\d+", ORACLE["about"]["transformers"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", ORACLE["about"]["date"])
    assert set(ARCHITECTURES) <= set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_parameters_are_those_of_transformers(name):
    row, m = ROWS[name], models.from_hf(ROWS[name]["config"])
    assert m.params == row["parameters"]
    assert m.active_params == row["active"]
    assert sum(m.by_part.values()) == m.params
    assert set(m.by_part) <= set(models.PARTS)


def test_zero_experts_store_nothing_and_a_token_gets_its_share_of_the_others():
    m = models.from_hf(ROWS["longcat_flash"]["config"])
    zero, layers, D, F = 256, 28, 6144, 2048
    # transformers 5.24 allocates two of the three matrices of an expert for those without weights, too
    assert m.params == 741_053_585_408 - layers * zero * 2 * F * D
    assert (
        round(m.active_params / 1e9) == 28
    )  # "about 27B on average" without the embedding: arXiv 2509.01322
    assert (m.experts.E, m.experts.k) == (512, 8)
    assert "of the 12 experts of a token, 8 have weights on average" in m.assumed[0]
    assert m.softmax_layers == 2 * m.L


@pytest.mark.parametrize("name", ROWS)
def test_caches_and_states_are_those_of_transformers(name):
    row, m = ROWS[name], models.from_hf(ROWS[name]["config"])
    assert cache_of(m) == held(row)
    assert m.state_elements == row["state"]
    assert m.convolution_elements == row["convolution"]


@pytest.mark.parametrize("name", SAVED)
def test_a_file_that_transformers_5_saved_is_the_published_model(name):
    assert models.from_hf(ROWS[name]["saved"], name="m") == models.from_hf(ROWS[name]["config"], name="m")


@pytest.mark.parametrize("name", ROWS)
def test_towers_are_counted_or_named(name):
    row, m = ROWS[name], models.from_hf(ROWS[name]["config"])
    if row["towers"] and ("vision_config" in row["config"] or "audio_config" in row["config"]):
        assert m.vision_params == row["towers"] or m.uncounted


HOSTILE = (0, -1, "x", [], {}, [[]], ["x"], True, math.nan, 10**30, [0] * 3, {"a": 1}, {"0": 3})


@pytest.mark.parametrize("name", [name for name in ROWS if "/" not in name])
def test_hostile_values_are_refused_or_counted(name):
    config = ROWS[name]["config"]
    inner = config.get("text_config", config)
    for field in inner:
        for value in HOSTILE:
            changed = inner | {field: value}
            counted_or_refused(changed if inner is config else config | {"text_config": changed})


def counted_or_refused(config):
    with contextlib.suppress(ModelError):  # any other error would be one of the reader
        m = models.from_hf(config)
        assert m.params > 0
        assert m.kv_elements_per_token >= 0
