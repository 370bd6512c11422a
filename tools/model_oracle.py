"""Counts parameters, caches and states of today's architectures with transformers, on the meta device.

The result, `data/model_oracle.json`, is what the tests of the configuration readers compare with. This
program runs in an environment of its own, because the book needs neither transformers nor PyTorch:

    uv venv --python 3.11 .make/oracle
    uv pip install --python .make/oracle transformers torch --torch-backend cpu
    .make/oracle/bin/python tools/model_oracle.py [FOLDER ...] > data/model_oracle.json

A FOLDER holds published configurations, as the package aiconfigurator-core has them in `model_configs`. No
weight is allocated, and nothing is downloaded.
"""

import contextlib
import copy
import datetime
import json
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
from torch.fx.experimental import _config as fx_config  # noqa: E402
from transformers import (  # noqa: E402
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    DynamicCache,
)

Json = dict[str, Any]

DEFAULTS: dict[str, Json] = {
    # model_type: fields that the default configuration of the class lacks, or that make it more telling
    "afmoe": {},
    "apertus": {},
    "apertus1p5_text": {},
    "arcee": {},
    "axk1": {},
    "bailing_hybrid": {},
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "beam": {},
    "bitnet": {"num_key_value_heads": 5},
    "codegen": {},
    "cohere": {"num_key_value_heads": 8, "use_qk_norm": True},
    "cohere2": {"num_key_value_heads": 8},
    "cohere2_moe": {"num_shared_experts": 1},
    "deepseek_v2": {"first_k_dense_replace": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 1408},
    "deepseek_v32": {},
    "deepseek_v4": {},
    "dots1": {
        "n_routed_experts": 128,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
        "head_dim": 128,
    },
    "dots3_note": {},
    "ernie4_5": {},
    "ernie4_5_moe": {},
    "ernie4_5_vl_moe": {},
    "exaone4": {"num_key_value_heads": 8},
    "exaone4_5": {},
    "exaone_moe": {},
    "falcon_mamba": {
        "hidden_size": 4096,
        "intermediate_size": 8192,
        "num_hidden_layers": 64,
        "expand": 16,
        "time_step_rank": 256,
        "vocab_size": 65024,
        "tie_word_embeddings": False,
    },
    "falcon_h1": {},
    "flex_olmo": {},
    "flint": {},
    "gemma3n_text": {},
    "gemma4_text": {"num_kv_shared_layers": 10, "use_double_wide_mlp": True},
    "glm": {},
    "glm4": {},
    "glm4_moe": {"head_dim": 128, "use_qk_norm": True, "attention_bias": True},
    "glm4_moe_lite": {},
    "glm4v_moe": {"text_config": {"head_dim": 128}},
    "glm5_next": {},
    "glm_moe_dsa": {},
    "glm_ocr": {},
    "gpt_bigcode": {},
    "gpt_oss": {},
    "gptj": {},
    "granite": {},
    "granite_swa": {},
    "granitemoe": {},
    "granitemoe_swa": {},
    "granitemoehybrid": {
        "layer_types": (["linear_attention"] * 5 + ["full_attention"] + ["linear_attention"] * 2) * 4,
        "num_key_value_heads": 8,
    },
    "granitemoeshared": {"shared_intermediate_size": 1024},
    "hunyuan_v1_dense": {"head_dim": 128, "num_key_value_heads": 8},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 16, "moe_topk": 2, "num_key_value_heads": 8},
    "hy_v3": {},
    "hy_v4": {},
    "hy_v4_vl": {},
    "hyperclovax": {},
    "jais2": {},
    "jamba": {},
    "kimi_k25": {},
    "kimi_linear": {},
    "kolibri1": {},
    "laguna": {
        "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 10,
        "num_attention_heads_per_layer": ([48] + [64] * 3) * 10,
    },
    "lara_mini": {},
    "lfm2": {"full_attn_idxs": [2, 5, 8, 10, 12, 14], "num_hidden_layers": 16},
    "lfm2_moe": {
        "layer_types": ["conv", "conv", "full_attention", "conv"] * 6,
        "num_hidden_layers": 24,
    },
    "lfm3": {},
    "llama4": {},
    "longcat_flash": {},
    "mamba": {"use_bias": True},
    "mamba2": {},
    "mellum": {},
    "mimo_v2_flash": {},
    "minimax": {},
    "minimax_m2": {},
    "minimax_m3_vl": {
        "text_config": {
            "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
            "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
        }
    },
    "ministral": {"head_dim": 128},
    "ministral3": {},
    "mistral3": {},
    "mistral4": {},
    "mistral_large4": {},
    "mllama": {},
    "molmo2": {},
    "muse_glimmer": {},
    "muse_spark": {},
    "nanochat": {},
    "nemotron": {"num_key_value_heads": 8},
    "nemotron_h": {
        "layers_block_type": ["mamba", "moe", "mamba", "mlp", "attention", "moe"] * 4,
        "n_routed_experts": 64,
        "num_experts_per_tok": 6,
        "moe_latent_size": 1024,
    },
    "olmo": {"num_key_value_heads": 8},
    "olmo2": {},
    "olmo3": {},
    "olmo_hybrid": {},
    "olmoe": {"num_key_value_heads": 8},
    "paddleocr_vl": {},
    "persimmon": {},
    "phi3": {},
    "phi4_multimodal": {},
    "phimoe": {},
    "qwen2_5_omni_thinker": {},
    "qwen2_moe": {},
    "qwen3": {},
    "qwen3_5": {},
    "qwen3_5_moe": {},
    "qwen3_moe": {},
    "qwen3_next": {},
    "qwen3_vl": {},
    "qwen3_vl_moe": {},
    "recurrent_gemma": {"num_key_value_heads": 1, "intermediate_size": 15360, "lru_width": 3200},
    "rwkv": {},
    "seed_oss": {},
    "smollm3": {},
    "stablelm": {"num_key_value_heads": 8, "use_qkv_bias": True},
    "starcoder2": {},
    "step3p7": {
        "text_config": {
            "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 11 + ["full_attention"],
            "num_sliding_attention_heads": 96,
            "sliding_window": 512,
        }
    },
}
NOISE = re.compile(
    r"architectures|auto_map|id2label|label2id|transformers_version|torch_dtype|_name_or_path|.*token_id|"
    r".*token_index|initializer.*|rms_norm_eps|.*_eps|.*dropout.*|use_cache|pruned_heads|.*beam.*|"
    r"rope_.*|.*rope_theta|max_position_embeddings|bad_words_ids|do_sample|early_stopping|length_penalty|"
    r".*_length|no_repeat_ngram_size|output_.*|return_dict.*|problem_type|temperature|top_k|top_p|torchscript|"
    r"remove_invalid_values|task_specific_params|tf_legacy_loss|tokenizer_class|typical_p|use_bfloat16|"
    r"repetition_penalty|diversity_penalty|prefix|suppress_tokens|finetuning_task|num_return_sequences|"
    r"time_step_(?!rank)\w+|model_max_length|chunk_size_feed_forward|forced_.*|is_decoder|is_encoder_decoder|"
    r".*_multipliers?|scoring_func|topk_method|aux_loss_alpha|seq_aux|pretraining_tp|ep_size|layer_rope_theta|"
    r"use_grouped_topk|router_aux_loss_coef|swiglu_limits.*|partial_rotary_factors|activation_sparsity_pattern"
)
TOWERS = re.compile(
    r"vision|visual|audio|image|multi_modal_projector|mm_projector|patch_|embed_vision|aligner|resampler|"
    r"model\.projector"
)
LEFT_OUT = re.compile(
    r"Step-3.7|GLM-5(.\d)?-(FP8|NVFP4)|Qwen3.[56].*NVFP4|V3.[12]-NVFP4|V4-Flash-NVFP4|V4-Pro-NVFP4|R1|M2.7|"
    r"K2.[67]|Nano.*NVFP4|Super.*NVFP4|Ultra.*(FP8|NVFP4)|Thinking|Static|26B-A4B-NVFP4|GLM-5.[13]|M2.5-NVFP4|"
    r"3.1-70B-Instruct|Qwen3-235B-A22B-NVFP4|Qwen3-30B-A3B-FP8|Qwen3-1.7B|VL-4B|VL-8B"
)
"""Configurations that have the shapes of another one, or that the class reads with its defaults instead."""
SAME = {"kimi_k2": "deepseek_v3"}  # types that published files state for a class of another name
WITHOUT_EXPERTS = ("step3p7",)
"""Types whose experts cannot run without values; their caches are those of the same model with dense MLPs."""
TOKENS = 512
ROUTED = "num_experts_per_tok", "top_k_experts", "num_experts_per_token", "moe_topk", "moe_k"
torch.distributions.Distribution.set_default_validate_args(False)
fx_config.meta_nonzero_assume_all_nonzero = True  # routing chooses by value, and a meta tensor has none


def main(folders: list[str]) -> None:
    """Count every default configuration, then every published one, and print the table."""
    torch.Tensor.item = _item(torch.Tensor.item)  # type: ignore[method-assign]
    rows = [_row(kind, CONFIG_MAPPING[kind](**more), "default") for kind, more in DEFAULTS.items()]
    for folder in map(Path, folders):
        for path in sorted(folder.glob("*_config.json")):
            if not LEFT_OUT.search(path.name) and not path.name.endswith("quant_config.json"):
                rows.append(_published(path))
    counted = sorted((row for row in rows if row), key=lambda row: row["name"].lower())
    about = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
    }
    print("{")
    print(f' "about": {json.dumps(about)},')
    print(' "models": [')
    print(",\n".join("  " + json.dumps(row, separators=(", ", ": ")) for row in counted))
    print(" ]\n}")


def _item(real: Any) -> Any:
    """The method `item` of tensors, which here returns 1 for a tensor without values."""
    return lambda tensor: 1 if tensor.is_meta else real(tensor)


def _published(path: Path) -> Json | None:
    if path.stat().st_size > 100_000:
        return None
    fields = json.loads(path.read_text())
    fields = {
        name: value for name, value in fields.items() if name not in ("auto_map", "quantization_config")
    }
    name = path.name.removesuffix("_config.json").replace("--", "/")
    try:
        kind = fields.pop("model_type")
        kind = SAME.get(kind, kind)
        row = _row(name, AutoConfig.for_model(kind, **copy.deepcopy(fields)), "published")
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None
    published = _quantization_beside(path) | json.loads(path.read_text())
    return row and row | {"config": _without_noise(published)}


def _quantization_beside(path: Path) -> Json:
    """The `quantization_config` that NVIDIA publishes in a file of its own; numbers in names become `*`."""
    beside = path.with_name(path.name.replace("_config.json", "_hf_quant_config.json"))
    if not beside.exists():
        return {}
    said = json.loads(beside.read_text())["quantization"]
    if layers := said.get("quantized_layers"):
        said["quantized_layers"] = {
            re.sub(r"\b\d+\b", "*", name): {"quant_algo": layer["quant_algo"]}
            for name, layer in layers.items()
        }
        said.pop("exclude_modules", None)  # all that is quantized is listed
    return {"quantization_config": said}


def _row(name: str, config: Any, source: str) -> Json | None:
    saved = json.loads(config.to_json_string(use_diff=True))  # as save_pretrained writes it
    try:
        model, layers = _built(config)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None
    text = config.get_text_config()
    parameters = dict(model.named_parameters())
    towers = {key: p.numel() for key, p in parameters.items() if TOWERS.search(key)}
    total, seen = sum(p.numel() for p in parameters.values()), sum(towers.values())
    total -= _of_zero_experts(parameters, text)
    return {
        "name": name,
        "source": source,
        "model_type": config.model_type,
        "class": type(model).__name__,
        "parameters": total - seen,
        "active": total - seen - _idle(parameters, text),
        "towers": seen,
        **_kept(layers, config.model_type),
        "config": _without_noise(saved),
        **({"saved": _without_noise(saved)} if source == "published" else {}),
    }


def _built(config: Any) -> tuple[Any, list[Any]]:
    """The model on the meta device, and the layers of its cache after a prompt."""
    error: Exception = ValueError("no class")
    for kind in (AutoModelForImageTextToText, AutoModelForCausalLM, AutoModel):
        try:
            with torch.device("meta"):
                model = kind.from_config(config, attn_implementation="eager", dtype=torch.bfloat16).eval()
            break
        except Exception as raised:
            error = raised
    else:
        raise error
    return model, _cached(model, config)


def _cached(model: Any, config: Any) -> list[Any]:
    """The layers of the cache, or none where this class cannot run without values."""
    with contextlib.suppress(Exception):  # a model without experts
        model.set_experts_implementation("grouped_mm")
    try:
        with torch.device("meta"), torch.no_grad():
            ids = torch.zeros(1, TOKENS, dtype=torch.long, device="meta")
            # RecurrentGemma returns no cache
            own = {"cache": DynamicCache(config=config)} if config.model_type == "recurrent_gemma" else {}
            out = model(input_ids=ids, use_cache=True, **own)
        if config.model_type == "rwkv":
            return [*map(_State, out.state[2:]), *(_State(kept=t) for t in out.state[:2])]
        cache = own.get("cache") or out.past_key_values
        states = [_State(t) for t in getattr(cache, "linear_cache", ()) if isinstance(t, torch.Tensor)]
        return [*cache.layers, *states, *_in_modules(model)]
    except Exception as error:
        text = copy.deepcopy(config).get_text_config()
        if config.model_type in WITHOUT_EXPERTS and "sparse" in text.mlp_layer_types:  # which cache nothing
            dense, text.mlp_layer_types = copy.deepcopy(config), ["dense"] * text.num_hidden_layers
            dense.text_config = text
            return _built(dense)[1]
        if text.model_type != config.model_type:  # the language model alone
            return _built(text)[1]
        print(f"{config.model_type}: no cache: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return []


class _State:
    """A recurrent state that a model keeps in addition to its cache, and inputs of a convolution."""

    def __init__(self, state: Any = None, kept: Any = None) -> None:
        if state is not None:
            self.recurrent_states = state
        if kept is not None:  # as a cache's layers have it: with one token more than is kept
            self.conv_states = kept.unsqueeze(-1).expand(*kept.shape, 2)


def _in_modules(model: Any) -> list[_State]:
    """The states that the modules of a model keep themselves (RecurrentGemma)."""
    pairs = (
        (getattr(module, "recurrent_states", None), getattr(module, "conv1d_state", None))
        for module in model.modules()
    )
    return [_State(state, kept) for state, kept in pairs if state is not None or kept is not None]


def _idle(parameters: dict[str, Any], config: Any) -> int:
    """The parameters of the routed experts that a token is not sent to."""
    chosen = next((k for name in ROUTED if (k := getattr(config, name, None))), 0)
    idle, zero = 0, _zero_experts(config)
    if zero:  # some of the choices are experts without weights
        chosen = round(chosen * config.n_routed_experts / (config.n_routed_experts + zero))
    for name, p in parameters.items():
        if re.search(r"(?<!shared_)experts\.(?!.*norm)", name) and not TOWERS.search(name):
            stored = p.shape[0] - zero * (zero > 0 and p.shape[0] > config.n_routed_experts)
            idle += p.numel() // p.shape[0] * (stored - chosen)
    return idle


def _zero_experts(config: Any) -> int:
    """The experts without weights, which return their input (LongCat-Flash)."""
    return getattr(config, "zero_expert_num", None) or 0


def _of_zero_experts(parameters: dict[str, Any], config: Any) -> int:
    """The matrices that this version of transformers allocates for experts without weights."""
    zero = _zero_experts(config)
    return sum(
        p.numel() // p.shape[0] * zero
        for name, p in parameters.items()
        if zero and "experts." in name and p.shape[0] == config.n_routed_experts + zero
    )


def _kept(layers: list[Any], model_type: str) -> Json:
    """The elements cached for a token by kind of layer, and the elements of the states of a sequence."""
    kinds, state, conv = Counter[tuple[int | None, int, int]](), 0, 0
    for layer in layers:
        held = _tensors(layer)
        window = getattr(layer, "sliding_window", None)
        if "keys" in held:
            keys, values = held["keys"], held["values"]
            one = keys.shape[1] * keys.shape[-1]
            if model_type != "deepseek_v4":  # whose value is its key
                one += values.shape[1] * values.shape[-1]
            index = sum(held[name].shape[-1] for name in ("indexer_keys", "idx_keys") if name in held)
            kinds[window, 1, one + index] += 1
        compressed = [t for key, t in held.items() if key.startswith("compressed_kv")]
        if compressed:
            kinds[None, TOKENS // compressed[0].shape[1], sum(t.shape[-1] for t in compressed)] += 1
        state += sum(t[0].numel() for key, t in held.items() if key.startswith("recurrent"))
        conv += sum(
            t[0].numel() // t.shape[-1] * (t.shape[-1] - 1) for k, t in held.items() if k.startswith("conv")
        )
    rows = [
        {"layers": n, "window": window, "every": every, "elements": elements}
        for (window, every, elements), n in sorted(kinds.items(), key=str)
    ]
    return {"cache": rows if layers else None, "state": state, "convolution": conv}


def _tensors(layer: Any) -> Json:
    held: Json = {}
    for name, value in vars(layer).items():
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        held |= {f"{name}.{key}": t for key, t in inner if isinstance(t, torch.Tensor)}
        if isinstance(value, torch.Tensor):
            held[name] = value
    return held


def _without_noise(fields: Json) -> Json:
    """The fields that say something about shapes."""
    kept: Json = {}
    for name, value in fields.items():
        if NOISE.fullmatch(name) or (value is None and name not in ("q_lora_rank", "n_shared_experts")):
            continue
        if name in ("vision_config", "audio_config", "quantization_config"):
            value = {"model_type": value.get("model_type", "")} if name != "quantization_config" else value
        kept[name] = _without_noise(value) if isinstance(value, dict) and "text" in name else value
    return kept


if __name__ == "__main__":
    main(sys.argv[1:])
