"""The bytes of published files: mixed types, block scales, caches; and the fields that say so."""

import json
from pathlib import Path

import pytest

from scalingbook_lib import models
from scalingbook_lib.models import ModelError, arithmetic
from scalingbook_lib.models.quantization import QuantizedFormat, Scheme, matches, serving_types, storage
from scalingbook_lib.units import BF16, FP8

ORACLE = json.loads((Path(__file__).parents[3] / "data" / "model_oracle.json").read_text(encoding="utf-8"))
CONFIGS = {row["name"]: row["config"] for row in ORACLE["models"]}
GiB = 2**30
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def quantized(config, **fields):
    return models.from_hf(config | {"quantization_config": fields})


@pytest.mark.parametrize(("name", "gib"), [("openai/gpt-oss-20b", 12.8), ("openai/gpt-oss-120b", 60.8)])
def test_gpt_oss_has_the_bytes_of_its_model_card(name, gib):
    found = storage(models.from_hf(CONFIGS[name]))
    assert round(found.nbytes / GiB, 1) == gib
    assert [form for form, _ in found.formats] == ["bf16", "mxfp4"]


def test_mxfp4_is_four_bits_and_a_byte_for_32_elements():
    m = models.from_hf(CONFIGS["openai/gpt-oss-20b"])
    assert storage(m).part("experts") == m.by_part["experts"] * 4.25 / 8
    assert storage(m).part("attention") == 2 * m.by_part["attention"]


def test_fp8_in_blocks_has_a_scale_of_four_bytes_for_each_block():
    m = models.from_hf(CONFIGS["deepseek-ai/DeepSeek-V3"])
    one = 7168 * 2048
    blocks = (7168 // 128) * (2048 // 128)
    experts = storage(m).part("experts")
    assert experts == 58 * 256 * 3 * (one + 4 * blocks)
    assert storage(m).part("router") == 2 * m.by_part["router"]
    assert storage(m).part("unembedding") == 2 * m.by_part["unembedding"]


def test_a_list_of_modules_keeps_its_layers_in_the_base_type():
    """Qwen's list names every norm, every router and the unembedding."""
    m = models.from_hf(CONFIGS["Qwen/Qwen3-235B-A22B-FP8"])
    kept = dict(storage(m).formats)["bf16"]
    assert kept == sum(m.by_part[part] for part in ("embedding", "unembedding", "norms", "router"))
    first = quantized(LLAMA, quant_method="fp8", modules_to_not_convert=["model.layers.0", "lm_head"])
    every = quantized(LLAMA, quant_method="fp8", modules_to_not_convert=["lm_head"])
    layer = (first.by_part["attention"] + first.by_part["mlp"]) // 32
    assert dict(storage(first).formats)["bf16"] - dict(storage(every).formats)["bf16"] == layer


def test_groups_of_modules_have_formats_of_their_own():
    groups = {
        "group_0": {"weights": {"num_bits": 8, "type": "float"}, "targets": ["re:.*self_attn.*"]},
        "group_1": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]},
    }
    m = quantized(LLAMA, quant_method="compressed-tensors", config_groups=groups, ignore=["lm_head"])
    found = dict(storage(m).formats)
    assert found["fp8"] == m.by_part["attention"]
    assert found["nvfp4"] == m.by_part["mlp"]
    assert storage(m).part("mlp") == m.by_part["mlp"] * 4.5 / 8 + 32 * 3 * 8


@pytest.mark.parametrize(
    ("fields", "per_element"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 0.5 + 4 / 64),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5 + 1 / 16),
    ],
)
def test_scales_of_groups_are_counted(fields, per_element):
    m = quantized(LLAMA, **fields)
    assert storage(m).part("mlp") == pytest.approx(per_element * m.by_part["mlp"], rel=1e-6)


def test_a_file_without_quantization_keeps_its_base_type():
    assert storage(models.from_hf(LLAMA)).nbytes == 2 * models.from_hf(LLAMA).params
    assert storage(models.from_hf(LLAMA | {"dtype": "float32"})).nbytes == 4 * models.from_hf(LLAMA).params


def test_a_method_without_a_format_here_is_named():
    m = quantized(LLAMA, quant_method="somebody's")
    assert storage(m).nbytes == 2 * m.params
    assert "somebody's" in str(m)


@pytest.mark.parametrize(
    "fields",
    [
        {"quant_method": 3},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "fp8", "modules_to_not_convert": [3]},
        {"quant_method": "compressed-tensors", "config_groups": {"g": {}}},
        {"quant_method": "compressed-tensors", "ignore": ["re:(a+)+b"]},
        {"quant_method": "compressed-tensors", "ignore": ["re:("]},
        {"quant_algo": "FP3"},
    ],
)
def test_a_bad_quantization_is_refused(fields):
    with pytest.raises(ModelError):
        quantized(LLAMA, **fields)


def test_a_pattern_means_modules_and_what_is_below_them():
    assert matches("model.layers.3.self_attn", "model.layers.3.self_attn.q_proj")
    assert matches("gate", "model.layers.3.mlp.gate")
    assert not matches("gate", "model.layers.3.mlp.gate_proj")
    assert matches("re:.*self_attn.*", "model.layers.3.self_attn.q_proj")
    assert matches("model.layers.1.*", "model.layers.1.mlp.up_proj")
    assert not matches("model.layers.1.*", "model.layers.11.mlp.up_proj")


@pytest.mark.parametrize(
    "more",
    [
        {"kv_cache_dtype": "fp8"},
        {"quantization_config": {"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}},
        {"quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
    ],
)
def test_the_type_of_the_cache_is_read(more):
    assert models.from_hf(LLAMA | more).cache_dtype == FP8
    assert models.from_hf(LLAMA).cache_dtype == BF16
    with pytest.raises(ModelError, match="no type of a cache"):
        models.from_hf(LLAMA | {"kv_cache_dtype": "fp7"})


def test_a_server_holds_the_types_of_the_file():
    m = models.from_hf(CONFIGS["openai/gpt-oss-20b"])
    types = serving_types(m)
    assert types["experts"].bytes == 4.25 / 8
    assert types["outer"] == BF16
    assert "experts_compute" not in types  # kernels convert mxfp4 to bf16
    assert serving_types(models.from_hf(LLAMA)) == {}


@pytest.mark.parametrize(
    ("config", "compute"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}, None),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, None),
    ],
)
def test_matrices_are_multiplied_in_the_type_of_their_inputs(config, compute):
    types = serving_types(models.from_hf(LLAMA | {"quantization_config": config}))
    assert types["weights"].bytes < 2
    assert (types["compute"].name if "compute" in types else None) == compute


def test_sparse_latent_attention_in_fp8_caches_scales():
    """656 bytes of the latent vector and its rotary part, 132 of the indexer's key, in each of 61 layers."""
    m = models.from_hf(CONFIGS["deepseek-ai/DeepSeek-V3.2"])
    assert arithmetic.kv_cache(m, 1, FP8).bytes_per_token == 61 * (656 + 132) == 48_068
    assert arithmetic.kv_cache(m, 1).bytes_per_token == 61 * 2 * (576 + 128)


@pytest.mark.parametrize(
    ("name", "S", "grows"), [("gpt-oss 20B", 8192, 24_576), ("gpt-oss 20B", 127, 49_152)]
)
def test_a_full_window_does_not_grow(name, S, grows):
    m = models.find(name)
    assert arithmetic.kv_cache(m, S).next_token_bytes == grows
    assert arithmetic.kv_cache(m, S + 1).nbytes - arithmetic.kv_cache(m, S).nbytes == grows


def test_the_state_of_qwen3_5_is_beside_its_cache():
    m = models.from_hf(CONFIGS["Qwen/Qwen3.5-27B"])
    assert arithmetic.kv_cache(m, 32768).bytes_per_token == 65_536
    assert arithmetic.states(m)["recurrent states"] == 48 * 48 * 128 * 128 * 4
    assert arithmetic.states(m)["convolution states"] == 48 * 10_240 * 3 * 2


def test_a_format_counts_a_started_block_as_one():
    form = QuantizedFormat("fp8", 8, (128, 128), 4)
    assert form.nbytes(576, 7168) == 576 * 7168 + 4 * 5 * 56
    assert Scheme("fp8", form).format_of(("model.layers.0.mlp.up_proj",), "mlp", 0) is form


def test_a_format_without_blocks_has_the_scales_of_its_matrix():
    matrices = 32 * 3  # gate, up and down of every layer
    for scheme, scales in (("dynamic", 4), ("static", 8)):  # of the weights, and of the inputs if static
        m = quantized(LLAMA, quant_method="fp8", activation_scheme=scheme)
        assert storage(m).part("mlp") == m.by_part["mlp"] + scales * matrices
    m = quantized(LLAMA, quant_method="modelopt", quant_algo="NVFP4")
    assert storage(m).part("mlp") == m.by_part["mlp"] * (4 / 8 + 1 / 16) + 8 * matrices
    assert QuantizedFormat("int4", 4).nbytes(8, 16) == 64
    assert QuantizedFormat("nvfp4", 4, (1, 16), 1, 8).nbytes(2, 32) == 32 + 4 + 8


def test_modelopt_names_the_format_of_experts_and_of_single_modules():
    layers = {"model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}}
    fields = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "moe_quant_algo": "NVFP4"}
    m = quantized(CONFIGS["Qwen/Qwen3-30B-A3B"], **fields, quantized_layers=layers)
    found = dict(storage(m).formats)
    assert found["fp8"] == m.D * m.N * m.H
    assert found["nvfp4"] == m.by_part["experts"]
