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
    "apertus",
    "deepseek_v32",
    "deepseek_v4",
    "dots1",
    "dots3_note",
    "ernie4_5",
    "ernie4_5_moe",
    "exaone4",
    "exaone_moe",
    "falcon_h1",
    "gemma3n_text",
    "gemma4_text",
    "glm4_moe",
    "glm5_next",
    "glm_moe_dsa",
    "granitemoehybrid",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "hy_v3",
    "hy_v4",
    "jamba",
    "kimi_k25",
    "kimi_linear",
    "lfm2",
    "lfm2_moe",
    "lfm3",
    "llama4",
    "mimo_v2_flash",
    "minimax_m2",
    "minimax_m3_vl",
    "ministral3",
    "mistral3",
    "mistral_large4",
    "nemotron_h",
    "olmo3",
    "phi3",
    "phi4_multimodal",
    "phimoe",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_next",
    "seed_oss",
    "smollm3",
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
