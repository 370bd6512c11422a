"""Tests of the three numbers of a cache, and of the models with published files of their own."""

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import arithmetic
from scalingbook_lib.units import BF16, FP8

NAMES = [model.name for model in (*models.CATALOG, *models.further())]
PUBLISHED = {  # parameters, active parameters: data/model_oracle.json, and test_model_files
    "Falcon Mamba 7B": (7272665088, 7272665088),  # as transformers 5.24 counts this file
    "Mamba 2.8B": (2768345600, 2768345600),
    "Mamba Codestral 7B": (7285403648, 7285403648),
    "RecurrentGemma 2B": (2682862080, 2682862080),
    "GLM-5.2": (743377000704, 41250511104),
    "GPT-2 large": (774030080, 774030080),
    "Gemma 4 26B-A4B": (25233141760, 3822530560),
    "Kimi K3": (2779484393568, 105363935328),
    "Llama 3.3 Nemotron Super 49B v1": (49867145216, 49867145216),
    "MiMo-V2-Flash": (308778768832, 15445924288),
    "MiniMax-M3": (426174565632, 25962466560),
    "Nemotron 3 Nano 30B-A3B": (31577937344, 3580073408),
    "Nemotron 3 Ultra 550B-A55B": (549308968960, 56058818560),
    "Qwen3-Coder 480B-A35B": (480154875392, 35474765312),
    "DeepSeek-V3.2": (671877929216, 38403807488),
    "DeepSeek-V4-Flash": (284332230231, 13799622231),
    "DeepSeek-V4-Pro": (1572997179491, 49779058787),
    "GLM-5": (743911199232, 41784709632),
    "MiniMax-M2.5": (228689748992, 11030537216),
    "Nemotron 3 Super 120B-A12B": (120668687360, 12770216960),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("S", [128, 8192, 131_072])
def test_what_is_stored_is_the_cache_and_the_states(name, S):
    model = models.find(name)
    found = arithmetic.cache_profile(model, S)
    whole = arithmetic.kv_cache(model, S).nbytes + arithmetic.states(model).nbytes
    assert found.stored_bytes == pytest.approx(whole)
    assert found.read_bytes <= found.stored_bytes * (1 + 1e-12)


def test_a_dense_model_reads_all_that_it_stores():
    found = arithmetic.cache_profile(models.find("Llama 3 70B"), 8192)
    assert found.read_bytes == found.stored_bytes == 8192 * 327_680


def test_the_entries_of_sparse_attention_are_stored_but_not_read():
    model = models.find("DeepSeek-V3.2")
    found = arithmetic.cache_profile(model, 131_072, FP8)
    assert found.token_bytes == 61 * (656 + 132) == 48_068
    assert found.read_bytes == 61 * (2048 * 656 + 131_072 * 132)
    short = arithmetic.cache_profile(model, 2048, BF16)
    assert short.read_bytes == short.stored_bytes


def test_the_part_that_does_not_grow_is_windows_and_states():
    gemma, hybrid = models.find("Gemma-3 27B"), models.find("Qwen3.5 397B-A17B")
    window = gemma.layer_kinds[0]
    assert arithmetic.cache_profile(gemma, 512).fixed_bytes == 0
    assert arithmetic.cache_profile(gemma, 131_072).fixed_bytes == 2 * window.layers * 1024 * 2 * 16 * 128
    assert arithmetic.cache_profile(hybrid, 131_072).fixed_bytes == arithmetic.states(hybrid).nbytes


@pytest.mark.parametrize("name", PUBLISHED)
def test_further_models_have_the_parameters_that_transformers_counts(name):
    model = models.find(name.lower())
    assert model.name == name
    assert (model.params, model.active_params) == PUBLISHED[name]
