"""Configurations as they are published, cut down to the fields that are read: one or more for each family."""

LLAMA = {"model_type": "llama", "tie_word_embeddings": False}


def _rope(kind, D, L, N, K, F, V, **more):
    return {
        "model_type": kind,
        "hidden_size": D,
        "num_hidden_layers": L,
        "num_attention_heads": N,
        "num_key_value_heads": K,
        "intermediate_size": F,
        "vocab_size": V,
        **more,
    }


def _mla(kind, D, L, N, F, V, **more):
    heads = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    return _rope(kind, D, L, N, N, F, V, attention_bias=False, moe_layer_freq=1, **heads, **more)


def _moe(E, k, F, shared=0, dense=0):
    return {
        "n_routed_experts": E,
        "num_experts_per_tok": k,
        "moe_intermediate_size": F,
        "n_shared_experts": shared,
        "first_k_dense_replace": dense,
    }


def _qwen_moe(E, k, F):
    return {"num_experts": E, "num_experts_per_tok": k, "moe_intermediate_size": F}


def _qwen35(kind, *letters, v_heads, **more):
    """The text part; all have the same heads and vocabulary, and `layer_types` for each layer."""
    return _rope(
        *(kind, *letters, 248320),
        attn_output_gate=True,
        full_attention_interval=4,
        head_dim=256,
        layer_types=(["linear_attention"] * 3 + ["full_attention"]) * (letters[1] // 4),
        linear_conv_kernel_dim=4,
        linear_key_head_dim=128,
        linear_num_key_heads=16,
        linear_num_value_heads=v_heads,
        linear_value_head_dim=128,
        mamba_ssm_dtype="float32",
        mtp_num_hidden_layers=1,
        **more,
    )


def _qwen35_moe(kind, D, L, N, E, k, F, v_heads):
    """No dense width, as in the published files."""
    more = _qwen_moe(E, k, F) | {"shared_expert_intermediate_size": F}
    return _qwen35(kind, D, L, N, 2, None, v_heads=v_heads, **more)


QWEN = {"use_sliding_window": False, "sliding_window": None, "head_dim": 128}
EVERY_OTHER = ["sliding_attention", "full_attention"]
CONFIGS = {
    "LLaMA 7B": {key: value for key, value in _rope("llama", 4096, 32, 32, 0, 11008, 32000).items() if value},
    "LLaMA-2 70B": _rope("llama", 8192, 80, 64, 8, 28672, 32000, pretraining_tp=1),
    "LLaMA-3 8B": _rope("llama", 4096, 32, 32, 8, 14336, 128256, attention_bias=False, mlp_bias=False),
    "LLaMA-3 405B": _rope("llama", 16384, 126, 128, 8, 53248, 128256, head_dim=None),
    "LLaMA-3.2 1B": _rope("llama", 2048, 16, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True),
    "Llama 4 Maverick": {
        "model_type": "llama4",
        "text_config": _rope(
            *("llama4_text", 5120, 48, 40, 8, 8192, 202048),
            attention_chunk_size=8192,
            head_dim=128,
            interleave_moe_layer_step=2,
            intermediate_size_mlp=16384,
            num_experts_per_tok=1,
            num_local_experts=128,
        ),
    },
    "Mistral 7B v0.1": _rope("mistral", 4096, 32, 32, 8, 14336, 32000, sliding_window=4096),
    "Mistral 7B v0.3": _rope("mistral", 4096, 32, 32, 8, 14336, 32768, sliding_window=None),
    "Mistral Nemo 12B": _rope("mistral", 5120, 40, 32, 8, 14336, 131072, head_dim=128),
    "Mixtral 8x7B": _rope(
        *("mixtral", 4096, 32, 32, 8, 14336, 32000),
        num_local_experts=8,
        num_experts_per_tok=2,
        sliding_window=None,
    ),
    "Gemma 2B": _rope("gemma", 2048, 18, 8, 1, 16384, 256000, head_dim=256),
    "Gemma-2 27B": _rope("gemma2", 4608, 46, 32, 16, 36864, 256000, head_dim=128, sliding_window=4096),
    "Gemma-3 4B": {  # its text_config leaves out the heads and the vocabulary
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    },
    "Qwen2.5 7B": _rope(
        "qwen2", 3584, 28, 28, 4, 18944, 152064, use_sliding_window=False, sliding_window=131072
    ),
    "Qwen3 0.6B": _rope("qwen3", 1024, 28, 16, 8, 3072, 151936, **QWEN, tie_word_embeddings=True),
    "Qwen3 30B-A3B": _rope(
        *("qwen3_moe", 2048, 48, 32, 4, 6144, 151936),
        **QWEN,
        **_qwen_moe(128, 8, 768),
        decoder_sparse_step=1,
        mlp_only_layers=[],
    ),
    "Qwen3-Next 80B-A3B": _rope(
        *("qwen3_next", 2048, 48, 16, 2, 5120, 151936),
        **QWEN | {"head_dim": 256},
        **_qwen_moe(512, 10, 512),
        shared_expert_intermediate_size=512,
        full_attention_interval=4,
        linear_conv_kernel_dim=4,
        linear_key_head_dim=128,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_value_head_dim=128,
    ),
    "Qwen3.5 27B": {
        "model_type": "qwen3_5",
        "text_config": _qwen35("qwen3_5_text", 5120, 64, 24, 4, 17408, v_heads=48, mlp_only_layers=[]),
        "vision_config": {"hidden_size": 1152},
    },
    "Qwen3.5 35B-A3B": _qwen35_moe("qwen3_5_moe_text", 2048, 40, 16, 256, 8, 512, 32),
    "Qwen3.5 122B-A10B": _qwen35_moe("qwen3_5_moe_text", 3072, 48, 32, 256, 8, 1024, 64),
    "Qwen3.5 397B-A17B": {
        "model_type": "qwen3_5_moe",
        "text_config": _qwen35_moe("qwen3_5_moe_text", 4096, 60, 32, 512, 10, 1024, 64),
        "vision_config": {"hidden_size": 1152},
    },
    "DeepSeek-V2-Lite": _mla(
        "deepseek_v2", 2048, 27, 16, 10944, 102400, q_lora_rank=None, **_moe(64, 6, 1408, 2, 1)
    ),
    "DeepSeek-V3": _mla(
        "deepseek_v3", 7168, 61, 128, 18432, 129280, q_lora_rank=1536, **_moe(256, 8, 2048, 1, 3)
    ),
    "Kimi K2": _mla("kimi_k2", 7168, 61, 64, 18432, 163840, q_lora_rank=1536, **_moe(384, 8, 2048, 1, 1)),
    "GLM-4.5-Air": _rope(
        *("glm4_moe", 4096, 46, 96, 8, 10944, 151552),
        **_moe(128, 8, 1408, 1, 1),
        attention_bias=True,
        head_dim=128,
        use_qk_norm=False,
    ),
    "gpt-oss 20B": _rope(
        *("gpt_oss", 2880, 24, 64, 8, 2880, 201088),
        attention_bias=True,
        head_dim=64,
        layer_types=EVERY_OTHER * 12,
        num_experts_per_tok=4,
        num_local_experts=32,
        sliding_window=128,
    ),
    "GPT-2 124M": {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "n_ctx": 1024,
        "vocab_size": 50257,
    },
    "OPT 125M": {
        "model_type": "opt",
        "hidden_size": 768,
        "ffn_dim": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "max_position_embeddings": 2048,
        "vocab_size": 50272,
        "word_embed_proj_dim": 768,
        "do_layer_norm_before": True,
    },
    "BLOOM 176B": {
        "model_type": "bloom",
        "n_embed": 14336,
        "n_layer": 70,
        "num_attention_heads": 112,
        "vocab_size": 250880,
    },
    "Falcon 7B": {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 32,
        "num_attention_heads": 71,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": False,
        "bias": False,
        "vocab_size": 65024,
    },
    "Falcon 40B": {
        "model_type": "falcon",
        "hidden_size": 8192,
        "num_hidden_layers": 60,
        "num_attention_heads": 128,
        "num_kv_heads": 8,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": True,
        "bias": False,
        "vocab_size": 65024,
    },
    "Phi-2": _rope("phi", 2560, 32, 32, 32, 10240, 51200, qk_layernorm=False, tie_word_embeddings=False),
    "Phi-3 mini": _rope("phi3", 3072, 32, 32, 32, 8192, 32064, sliding_window=2047),
    "Phi-4 mini": _rope("phi3", 3072, 32, 24, 8, 8192, 200064, tie_word_embeddings=True),
    "OLMo-2 7B": _rope("olmo2", 4096, 32, 32, 32, 11008, 100352, attention_bias=False),
    "SmolLM3 3B": _rope("smollm3", 2048, 36, 16, 4, 11008, 128256),
    "MPT 7B": {
        "model_type": "mpt",
        "d_model": 4096,
        "n_heads": 32,
        "n_layers": 32,
        "expansion_ratio": 4,
        "learned_pos_emb": True,
        "max_seq_len": 2048,
        "no_bias": True,
        "attn_config": {"alibi": True, "qk_ln": False},
        "vocab_size": 50432,
    },
}
