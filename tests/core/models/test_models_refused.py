"""Errors name the bad field of a configuration, and unknown model names get close matches."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hf_configs import CONFIGS

from scalingbook_lib import models
from scalingbook_lib.models import Latent, ModelError, Transformer


def without(field):
    return {key: value for key, value in CONFIGS["Llama 3 8B"].items() if key != field}


GOOD = CONFIGS["Llama 3 8B"]
V3 = CONFIGS["DeepSeek-V3"]
BAD = {
    "missing": (without("hidden_size"), "hidden_size"),
    "null": (GOOD | {"vocab_size": None}, "vocab_size"),
    "zero": (GOOD | {"hidden_size": 0}, "hidden_size"),
    "negative": (GOOD | {"num_hidden_layers": -1}, "num_hidden_layers"),
    "text": (GOOD | {"hidden_size": "4096"}, "hidden_size"),
    "fraction": (GOOD | {"hidden_size": 4096.5}, "hidden_size"),
    "NaN": (GOOD | {"intermediate_size": float("nan")}, "intermediate_size"),
    "true": (GOOD | {"num_attention_heads": True}, "num_attention_heads"),
    "huge": (GOOD | {"hidden_size": 10**4000}, "hidden_size"),
    "list": (GOOD | {"vocab_size": [1]}, "vocab_size"),
    "heads do not divide": (GOOD | {"num_attention_heads": 31}, "num_key_value_heads"),
    "width does not divide": (
        GOOD | {"num_attention_heads": 24, "num_key_value_heads": 8},
        "num_attention_heads",
    ),
    "more key heads": (GOOD | {"num_key_value_heads": 64}, "num_key_value_heads"),
    "tied in words": (GOOD | {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
    "unknown type": ({"model_type": "lama", "hidden_size": 4096}, "model_type"),
    "no type": (without("model_type"), "model_type"),
    "two names, two values": (CONFIGS["GPT-2 124M"] | {"hidden_size": 1024}, "hidden_size"),
    "too few layer types": (CONFIGS["gpt-oss 20B"] | {"layer_types": ["full_attention"]}, "layer_types"),
    "no window": (CONFIGS["gpt-oss 20B"] | {"sliding_window": None}, "sliding_window"),
    "more chosen than there are": (V3 | {"num_experts_per_tok": 300}, "num_experts_per_tok"),
    "latent and grouped": (V3 | {"num_key_value_heads": 8}, "num_key_value_heads"),
    "dense layers beyond the last": (V3 | {"first_k_dense_replace": 62}, "first_k_dense_replace"),
    "another variant": (CONFIGS["OPT 125M"] | {"word_embed_proj_dim": 512}, "word_embed_proj_dim"),
    "nested text": ({"text_config": 3, "model_type": "gemma3"}, "text_config"),
    "empty": ({}, "model_type"),
    "no object": ([], "config"),
    "nothing": (None, "config"),
    "a number": (3, "config"),
    "truncated": (json.dumps(GOOD)[:-20], "config"),
    "deep": ('{"a":' * 100_000, "config"),
    "twice": (json.dumps(GOOD)[:-1] + ', "hidden_size": 5120}', "hidden_size"),
    "no such file": ("/no/such/config.json", "config"),
    "null byte": ("config\0.json", "config"),
    "key that is no text": ({1: 2}, "config"),
}


FOREIGN = {
    "experts in a LLaMA": (GOOD | {"num_local_experts": 8}, "num_local_experts"),
    "their width": (GOOD | {"moe_intermediate_size": 512}, "moe_intermediate_size"),
    "linear attention": (GOOD | {"layer_types": ["linear_attention"] * 32}, "layer_types"),
    "a latent cache": (GOOD | {"kv_lora_rank": 512}, "kv_lora_rank"),
    "an index": (CONFIGS["GLM-4.5-Air"] | {"index_n_heads": 64}, "index_n_heads"),
    "half an index": (V3 | {"index_n_heads": 64}, "index_head_dim"),
    "sparse attention without its index": (V3 | {"index_topk": 2048}, "index_n_heads"),
    "DeepSeek-V3.2 without its index": (V3 | {"model_type": "deepseek_v32"}, "index_n_heads"),
    "sparse attention in a GLM": (CONFIGS["GLM-4.5-Air"] | {"index_topk": 2048}, "index_topk"),
    "linear attention by its step": (GOOD | {"full_attention_interval": 4}, "full_attention_interval"),
    "its convolution": (GOOD | {"linear_conv_kernel_dim": 4}, "linear_conv_kernel_dim"),
    "lightning attention": (GOOD | {"attn_type_list": [0, 1] * 16}, "attn_type_list"),
    "blocks of several types": (GOOD | {"layers_block_type": ["mamba"] * 32}, "layers_block_type"),
    "experts by another name": (GOOD | {"moe_num_experts": 8}, "moe_num_experts"),
    "layers that predict a token more": (GOOD | {"num_nextn_predict_layers": 1}, "num_nextn"),
    "attention to pictures": (GOOD | {"cross_attention_layers": [3, 8]}, "cross_attention_layers"),
    "keys of other layers": (GOOD | {"num_kv_shared_layers": 10}, "num_kv_shared_layers"),
    "embeddings a layer": (CONFIGS["Gemma-2 27B"] | {"hidden_size_per_layer_input": 256}, "hidden_size_per"),
    "state space": (GOOD | {"mamba_d_state": 128}, "mamba_d_state"),
    "a later RWKV": ({"model_type": "rwkv7", "hidden_size": 2048}, "model_type"),
    "a block that layers share": ({"model_type": "zamba2", "mamba_d_state": 64}, "model_type"),
    "a Mamba without its heads": ({"model_type": "mamba2", "hidden_size": 64, "head_dim": 64}, "num_heads"),
    "a Mamba-2 of another width": (
        {"model_type": "mamba2", "hidden_size": 64, "num_heads": 3, "head_dim": 64},
        "num_heads",
    ),
    "a recurrence that heads do not divide": (
        GOOD | {"model_type": "recurrent_gemma", "lru_width": 4097},
        "lru_width",
    ),
    "kinds of a Griffin": (GOOD | {"model_type": "recurrent_gemma", "block_types": ["lstm"]}, "block_types"),
    "biases that no Mistral has": (CONFIGS["Mistral 7B v0.1"] | {"attention_bias": True}, "attention_bias"),
    "biases left out of a Qwen2": (CONFIGS["Qwen2.5 7B"] | {"attention_bias": False}, "attention_bias"),
    "norms of queries in a LLaMA": (GOOD | {"use_qk_norm": True}, "use_qk_norm"),
    "biases of an MLP in a Mixtral": (CONFIGS["Mixtral 8x7B"] | {"mlp_bias": True}, "mlp_bias"),
    "attention to pictures in IDEFICS": ({"model_type": "idefics"}, "model_type"),
    "an encoder": ({"model_type": "xlm-roberta"} | {"type_vocab_size": 1}, "model_type"),
    "an encoder of an unknown type": (GOOD | {"model_type": "newcomer", "type_vocab_size": 2}, "model_type"),
    "a recurrent depth": ({"model_type": "hrm_text"}, "model_type"),
    "experts in attention": ({"model_type": "jetmoe"}, "model_type"),
    "embeddings of n-grams": (GOOD | {"ngram_vocab_size_ratio": 4}, "ngram_vocab_size_ratio"),
    "attention residuals": (GOOD | {"attn_res_block_size": 12}, "attn_res_block_size"),
    "a window in a LLaMA": (GOOD | {"sliding_window": 4096}, "sliding_window"),
    "hyper-connections": (V3 | {"hc_mult": 4}, "hc_mult"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_parts_that_are_not_counted_are_refused_by_name(case):
    config, field = FOREIGN[case]
    with pytest.raises(ModelError) as error:
        models.from_hf(config)
    assert error.value.field.startswith(field)


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
def test_a_multimodal_qwen_counts_its_language_model_and_lists_the_rest(kind):
    plain = CONFIGS["Qwen2.5 7B"]
    flat = plain | {"model_type": kind, "vision_config": {"depth": 32}}
    nested = {"model_type": kind, "text_config": plain | {"model_type": f"{kind}_text"}}
    for config in (flat, nested | {"vision_config": {"depth": 32}}):
        read = models.from_hf(config, name="seeing")
        assert read.by_part == models.from_hf(plain).by_part
        assert "not counted: the part that sees pictures" in str(read)


@pytest.mark.parametrize(
    "more", [{"num_local_experts": 0}, {"kv_lora_rank": None}, {"layer_types": ["full_attention"] * 32}]
)
def test_a_part_with_zero_copies_is_not_refused(more):
    assert models.from_hf(GOOD | more) == models.from_hf(GOOD)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_configuration_names_its_field(case):
    config, field = BAD[case]
    with pytest.raises(ModelError) as error:
        models.from_hf(config)
    assert error.value.field == field
    assert str(error.value).startswith(f"{field}: ")
    assert len(str(error.value)) < 600


def test_a_file_and_its_folder_are_read(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GOOD | {"_name_or_path": "someone/a-llama"}))
    assert models.from_hf(tmp_path) == models.from_hf(str(tmp_path / "config.json"))
    assert models.from_hf(tmp_path).name == "a-llama"
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(ModelError, match=r"^config: .* cannot be read"):
        models.from_hf(tmp_path / "bad.json")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no descriptors as files here")
def test_a_config_piped_by_a_shell_is_read():
    end, start = os.pipe()
    with open(start, "w") as file:
        json.dump(GOOD, file)
    with open(end):
        assert models.from_hf(f"/dev/fd/{end}") == models.from_hf(GOOD)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_device_or_an_endless_file_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")  # who opens it waits for a writer
    with (tmp_path / "long.json").open("wb") as file:
        file.truncate(10**12)
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "folder" / "config.json")
    for name in ("pipe.json", "long.json", "folder", Path("/dev/zero")):
        with pytest.raises(ModelError, match=r"^config: .* is no plain file"):
            models.from_hf(tmp_path / name)
    with (tmp_path / "long.json").open() as file, pytest.raises(ModelError, match="give the whole"):
        models.from_hf(file)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("K", {"K": 3}),
        ("K", {"K": 16}),
        ("D", {"D": 0}),
        ("L", {"L": 10**6}),
        ("F", {"F": 1.5}),
        ("name", {"name": " "}),
        ("windows", {"windows": ()}),
        ("windows", {"windows": (0,)}),
        ("qk_norm", {"qk_norm": "both"}),
        ("biases", {"biases": ("x",)}),
        ("latent", {"latent": Latent(q_rank=None, kv_rank=8, nope=4, rope=4, v=8)}),
    ],
)
def test_a_contradictory_transformer_is_refused(field, change):
    m = Transformer(name="m", D=512, L=6, V=1000, N=8, K=2, H=64, F=2048)
    with pytest.raises(ModelError) as error:
        replace(m, **change)
    assert error.value.field == field


def test_an_unknown_model_lists_close_matches():
    with pytest.raises(ModelError, match="Llama 3 8B"):
        models.find("lama 3 8b")
    with pytest.raises(ModelError, match="write one of"):
        models.find("")
    with pytest.raises(ModelError, match="not a string"):
        models.find(3)
    assert models.find("llama-3.1-8b") is models.find("Llama 3 8B")


@pytest.mark.parametrize(("kind", "field"), [("apertus", "qk_norm"), ("hunyuan_v1_dense", "use_qk_norm")])
def test_a_family_that_always_has_norms_of_queries_and_keys_may_say_so(kind, field):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = sizes | {"model_type": kind, "intermediate_size": 128, "vocab_size": 256, "head_dim": 16}
    assert models.from_hf(config | {field: True}) == models.from_hf(config)
    with pytest.raises(models.ModelError, match=f"{field}: False is a variant that is not counted here"):
        models.from_hf(config | {field: False})
