"""Parameter counts are the published integers; parts sum to the whole; every bad field is named."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hf_configs import CONFIGS

from scalingbook_lib import models
from scalingbook_lib.models import CATALOG, KNOWN_TYPES, PARTS, Experts, Transformer, latent
from scalingbook_lib.models.fields import Fields

CSV = Path(__file__).parents[3] / "data" / "model_configs.csv"
ROWS = {row["model"]: row for row in csv.DictReader(CSV.open(encoding="utf-8"))}
_COUNTED = json.loads((CSV.parent / "model_oracle.json").read_text(encoding="utf-8"))["models"]
ORACLE = {name for row in _COUNTED for name in (row["model_type"], row["config"]["model_type"])}
ORACLE |= {row["config"].get("text_config", {}).get("model_type", "") for row in _COUNTED}
NAMES = {
    "Llama-3-8B / 3.1-8B": "Llama 3 8B",
    "Llama-3-70B / 3.1-70B": "Llama 3 70B",
    "Llama-3.1-405B": "Llama 3.1 405B",
    "Gemma-3-4B (text only)": "Gemma-3 4B",
    "DeepSeek-V3/R1 (excl. MTP)": "DeepSeek-V3",
    "GPT-2 (124M)": "GPT-2 124M",
}
NEXT_LAYER = 1_650_471_424  # Qwen3-Next's layer that predicts one token more (below, part by part)
# What a published total counts beyond the parameters of the language model.
QWEN35 = ("27B", "35B-A3B", "122B-A10B", "397B-A17B")
BEYOND = {
    "Llama-2-7B": 32 * 64,  # rotary buffers
    "Llama-2-13B": 40 * 64,
    "Llama-2-70B": 80 * 64,
    "DeepSeek-V3/R1 (excl. MTP)": 58 * 256,  # router bias buffers
    "Qwen3-Next-80B-A3B": NEXT_LAYER,
    "BLOOM-176B": -271_424,  # printed in millions
    "Kimi-K2": 60 * 384 + 3416,  # router bias buffers, and 3,416 that no source explains
    **{f"Qwen3.5-{size}": models.find(f"Qwen3.5-{size}").next_params for size in QWEN35},
}


def model_of(row):
    return models.find(NAMES.get(row, row))


COUNTED = [name for name, row in ROWS.items() if row["total_params_computed"]]
PUBLISHED = [name for name, row in ROWS.items() if row["published_params"] and not name.startswith("MPT")]


@pytest.mark.parametrize("name", COUNTED)
def test_every_counted_model_is_counted_alike(name):
    row, m = ROWS[name], model_of(name)
    assert m.params == int(row["total_params_computed"])
    assert m.active_params == int(row["active_params_computed"])
    assert m.by_part["embedding"] == int(row["embedding_params"])
    assert m.by_part["norms"] == int(row["norm_params"])
    shifts = m.by_part["norms"] // 2 if m.norm_bias else 0  # the table counts them among both
    assert m.by_part.get("biases", 0) + shifts == int(row["bias_params"])


@pytest.mark.parametrize("name", COUNTED)
def test_every_counted_model_has_the_shapes_of_the_table(name):
    row, m = ROWS[name], model_of(name)
    letters = {"layers": m.L, "d_model": m.D, "heads": m.N, "kv_heads": m.K, "vocab": m.V, "d_ff_dense": m.F}
    assert letters == {column: int(row[column]) for column in letters}
    assert (str(m.gated), str(m.tied)) == (row["gated_mlp"], row["tied_embeddings"])
    assert row["experts"] in ("", str(m.experts and m.experts.E))
    assert bool(row["kv_lora_rank"]) == (m.latent is not None)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_count_is_met_exactly(name):
    published, m = int(ROWS[name]["published_params"]), model_of(name)
    beyond = BEYOND.get(name, 0) + m.vision_params
    if name.startswith("GLM"):  # its extra layer has an embedding of its own, and routers have bias buffers
        beyond = m.next_params + (m.moe_layers + 1) * m.experts.E
    assert m.params + beyond == published


def test_the_extra_layer_of_qwen3_next_is_what_its_file_has_more():
    assert models.find("Qwen3-Next 80B-A3B").next_params == NEXT_LAYER


def test_the_bench_models_of_mpt_have_the_printed_counts():
    rows = [row for name, row in ROWS.items() if name.startswith("MPT") and row["published_params"]]
    assert len(rows) >= 5
    for row in rows:
        m = models.from_hf(
            {
                "model_type": "mpt",
                "d_model": int(row["d_model"]),
                "n_heads": int(row["heads"]),
                "n_layers": int(row["layers"]),
                "max_seq_len": 2048,
                "vocab_size": int(row["vocab"]),
            }
        )
        assert m.params == int(row["published_params"]), row["model"]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_config_is_the_model_of_the_catalog(name):
    read = models.from_hf(CONFIGS[name], name=name)
    assert read == models.find(name)
    assert models.from_hf(json.dumps(CONFIGS[name]), name=name) == read


def test_every_family_has_a_config_here():
    kinds = {config["model_type"] for config in CONFIGS.values()}
    untried = {"gemma3_text", "llama4_text", "gpt_neox", "qwen2_moe", "RefinedWeb", "RefinedWebModel"}
    untried |= set(PRINTED) | {"qwen3_5_text"}  # below, and inside of qwen3_5
    untried |= set(ORACLE)  # held to transformers
    untried |= {"mimo", "minimax_m3", "minimax_m3_vl_text"}  # no class of transformers has these names
    untried |= {"gemma3n", "gemma4", "gemma4_unified_text", "step3p5", "glm5_next_text"}  # inside of others
    untried |= {"glm4v_text", "glm_ocr_text", "molmo2_text", "muse_glimmer_text", "muse_spark_text"}
    untried |= {"paddleocr_vl_text", "qwen2_5_omni_text", "qwen3_omni_moe_text", "mllama_text_model"}
    untried |= {"hy_v4_vl_text", "ernie4_5_vl_moe_text", "ernie4_5_moe_vl"}  # inside of others, too
    untried |= {"nemotron-nas", "deci"}  # published files, in test_model_files
    untried |= {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}  # beside what is refused
    assert not set(KNOWN_TYPES) - kinds - untried


HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8}
PRINTED = {
    "granite": (  # granite-3.1-8b
        HEADS
        | {"hidden_size": 4096, "num_hidden_layers": 40, "intermediate_size": 12800}
        | {"vocab_size": 49155, "tie_word_embeddings": True},
        "8.17B",
        "8.17B",
    ),
    "granitemoe": (  # granite-3.0-3b-a800m
        {"num_attention_heads": 24, "num_key_value_heads": 8, "hidden_size": 1536, "num_hidden_layers": 32}
        | {"intermediate_size": 512, "num_local_experts": 40, "num_experts_per_tok": 8}
        | {"vocab_size": 49155, "tie_word_embeddings": True},
        "3.30B",
        "0.88B",
    ),
    "minimax_m2": (  # printed as 229B, 10B active
        {"num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 3072}
        | {"num_hidden_layers": 62, "intermediate_size": 1536, "vocab_size": 200064, "use_qk_norm": True}
        | {"num_local_experts": 256, "num_experts_per_tok": 8, "attn_type_list": [1] * 62}
        | {"shared_intermediate_size": 0, "num_mtp_modules": 3},
        "228.69B",
        "11.03B",
    ),
    "deepseek_v32": (
        CONFIGS["DeepSeek-V3"] | {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048},
        "671.88B",
        "38.40B",
    ),
}


@pytest.mark.parametrize("kind", PRINTED)
def test_families_without_a_model_of_the_catalog_have_the_counts_their_makers_print(kind):
    config, params, active = PRINTED[kind]
    m = models.from_hf(config | {"model_type": kind})
    assert (f"{m.params / 1e9:.2f}B", f"{m.active_params / 1e9:.2f}B") == (params, active)


def test_the_index_of_deepseek_v32_is_counted_weight_by_weight():
    """Queries of 64 heads from the rank, one key and its layer norm, a weight for each head; in 61 layers."""
    v3, config = models.find("DeepSeek-V3"), PRINTED["deepseek_v32"][0]
    m = models.from_hf(config | {"model_type": "deepseek_v32"})
    one = 1536 * 64 * 128 + 7168 * 128 + 2 * 128 + 7168 * 64
    assert m.params - v3.params == 61 * one == 851_524_864
    assert m.kv_elements_per_token - v3.kv_elements_per_token == 61 * 128
    assert models.from_hf(config).params == m.params  # also as a DeepSeek-V3 with these fields


def test_qwen2_moe_and_pythia_have_the_counts_their_makers_print():
    qwen = {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 24}
    shared = {"shared_expert_intermediate_size": 5632, "intermediate_size": 5632, "decoder_sparse_step": 1}
    sizes = {"model_type": "qwen2_moe", "hidden_size": 2048, "vocab_size": 151936}
    whole = qwen | heads | shared | sizes
    assert (models.from_hf(whole).params, models.from_hf(whole).F) == (14_315_784_192, 5632)
    del whole["intermediate_size"]  # no layer has a dense MLP
    assert (models.from_hf(whole).params, models.from_hf(whole).F) == (14_315_784_192, 1408)
    with pytest.raises(models.ModelError, match="intermediate_size"):
        models.from_hf(whole | {"decoder_sparse_step": 2})
    pythia = {"model_type": "gpt_neox", "hidden_size": 768, "intermediate_size": 3072, "vocab_size": 50304}
    assert models.from_hf(pythia | {"num_attention_heads": 12, "num_hidden_layers": 12}).params == 162_322_944


@pytest.mark.parametrize("m", CATALOG, ids=lambda m: m.name)
def test_parts_sum_to_the_whole_and_every_model_names_its_source(m):
    assert sum(m.by_part.values()) == m.params
    assert sum(m.active_by_part.values()) == m.active_params <= m.params
    assert set(m.by_part) <= set(PARTS)
    assert re.search(r"2026-\d\d-\d\d$", m.source)
    assert (m.experts is None) == (m.active_params == m.params)
    assert sum(kind.layers for kind in m.layer_kinds) == m.softmax_layers
    assert str(m).startswith(f"{m.name}: {m.params:,} parameters")
    assert models.find(m.name.upper().replace(" ", "_")) is m


def test_matmuls_per_token_exclude_embeddings_norms_and_biases():
    m = models.find("Llama 3 8B")
    looked_up = sum(w.params for w in m.weights() if w.part in ("embedding", "norms"))
    assert sum(w.flops_per_token for w in m.weights()) == 2 * (m.params - looked_up)
    tied = replace(m, tied=True)
    assert sum(w.flops_per_token for w in tied.weights()) == sum(w.flops_per_token for w in m.weights())
    assert str(m.weights()[0]) == "embed[128256, 4096] × 1 (embedding): 525,336,576 parameters"


def test_tying_shared_heads_and_experts_change_counts_exactly():
    m = Transformer(name="m", D=512, L=6, V=1000, N=8, K=2, H=64, F=2048)
    assert m.params - replace(m, tied=True).params == m.V * m.D  # tying saves one matrix exactly
    full = replace(m, K=8)
    assert full.by_part["attention"] == 4 * m.L * m.D * m.N * m.H  # MHA is GQA with K = N
    assert full.params - m.params == 2 * m.L * m.D * (8 - 2) * m.H
    assert m.by_part["mlp"] * 2 == replace(m, gated=False).by_part["mlp"] * 3
    sparse = replace(m, experts=Experts(E=8, k=2, F=2048))
    assert sparse.by_part["experts"] == 8 * m.by_part["mlp"] == 4 * sparse.active_by_part["experts"]
    lone = replace(m, experts=Experts(E=1, k=1, F=2048))  # one expert is an MLP and its router
    assert lone.params == lone.active_params == m.params + m.L * m.D


def test_kv_elements_per_token_match_hand_counts():
    assert models.find("Llama 3 70B").kv_elements_per_token == 2 * 80 * 8 * 128
    assert models.find("DeepSeek-V3").kv_elements_per_token == 61 * 576
    assert [(k.layers, k.window) for k in models.find("Gemma-3 4B").layer_kinds] == [(29, 1024), (5, None)]
    assert [(k.layers, k.window) for k in models.find("gpt-oss 20B").layer_kinds] == [(12, 128), (12, None)]
    assert models.find("Qwen3-Next 80B-A3B").kv_elements_per_token == 12 * 2 * 2 * 256


def test_gemma_3n_ties_its_embeddings_unless_its_file_says_otherwise():
    rows = json.loads((Path(models.__file__).parent / "further.json").read_text(encoding="utf-8"))["models"]
    config = next(row["config"] for row in rows if row["name"] == "Gemma 3n E4B")
    plain = {name: value for name, value in config.items() if name != "tie_word_embeddings"}
    assert models.from_hf(plain).tied
    assert not models.from_hf(plain | {"tie_word_embeddings": False}).tied


def test_an_indexer_shared_by_four_layers_stands_where_the_file_of_glm_lists_it():
    rows = json.loads((Path(models.__file__).parent / "further.json").read_text(encoding="utf-8"))["models"]
    config = next(row["config"] for row in rows if row["name"] == "GLM-5.2")
    kinds, listed = ("full_attention",) * 78, config.pop("indexer_types")
    chosen = [fields.value("chooses") for fields in latent.indexer_layers(Fields(config), kinds)]
    assert chosen == [kind == "full" for kind in listed]
