"""Ask aiconfigurator about serving; it composes kernel times that NVIDIA has measured."""

import json
import logging
import tempfile
from pathlib import Path

logging.disable(logging.CRITICAL)

from aiconfigurator.cli import api  # noqa: E402
from answering import main  # noqa: E402

SYSTEMS = {
    "H100": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm", "GB200": "gb200", "A100": "a100_sxm",
    "RTX PRO 6000 SE": "rtx_pro_6000_server"}  # fmt: skip
MODELS = {
    "Llama 3.1 8B": "meta-llama/Meta-Llama-3.1-8B",
    "Llama 3 8B": "meta-llama/Meta-Llama-3.1-8B",
    "Llama 3 70B": "meta-llama/Meta-Llama-3.1-70B",
    "Llama 3.1 70B": "meta-llama/Meta-Llama-3.1-70B",
    "Llama 3.1 405B": "meta-llama/Meta-Llama-3.1-405B",
    "Llama 4 Scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Llama 4 Maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "Qwen3 30B-A3B": "Qwen/Qwen3-30B-A3B",
    "Qwen3 235B-A22B": "Qwen/Qwen3-235B-A22B",
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
    "Mixtral 8x7B": "mistralai/Mixtral-8x7B-v0.1",
    "Mixtral 8x22B": "mistralai/Mixtral-8x22B-v0.1",
}
QUANT = {"bf16": ("bfloat16", "bfloat16"), "fp16": ("bfloat16", "bfloat16"), "fp8": ("fp8", "fp8")}
QUANT |= {"nvfp4": ("nvfp4", "nvfp4")}


def serving(one: dict) -> float:
    """Return tokens per second: in-flight batching for servers, static batches otherwise, in the row's
    layout.
    """
    path = MODELS.get(one["model"]["name"]) or written(one["model"])
    gemm, moe = QUANT[one["type"]]
    P, G, groups = one["P"], one["G"], one["groups"]
    B = max(one["B"] // groups, 1)
    asked = {
        "system_name": SYSTEMS[one["chip"]["name"].split(",")[0]],
        "batch_size": B,
        "tp_size": one["tp"] // groups,
        "attention_dp_size": groups,
        "pp_size": one["pp"],
        "gemm_quant_mode": gemm,
        "kvcache_quant_mode": "fp8" if one["kv_bytes"] == 1 else "bfloat16",
        "database_mode": "HYBRID",
    }
    if one["model"]["E"] > 1:
        asked |= {"moe_tp_size": 1, "moe_ep_size": one["tp"], "moe_quant_mode": moe}
    if one["kind"] == "prefill":
        return B * P * 1e3 / api.cli_estimate(path, mode="static_ctx", isl=P, osl=2, **asked).ttft
    if one["kind"] == "decode":
        told = api.cli_estimate(path, mode="static_gen", isl=one["S"] or P, osl=2, **asked)
        return B * 1e3 / told.tpot
    if one["kind"] == "batch":
        told = api.cli_estimate(path, mode="static", isl=P, osl=G, **asked)
        return B * G * 1e3 / (told.ttft + (G - 1) * told.tpot)
    told = api.cli_estimate(path, mode="agg", isl=P, osl=G, ctx_tokens=max(P, 8192), **asked)
    return told.tokens_per_second


def written(m: dict) -> str:
    """Write the configuration of a dense model that it does not ship, in Hugging Face's terms."""
    if m["E"] > 1:
        raise ValueError(f"has no configuration of {m['name']}")
    folder = Path(tempfile.mkdtemp())
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": m["D"],
        "num_hidden_layers": m["L"], "num_attention_heads": m["N"], "num_key_value_heads": m["K"],
        "head_dim": m["H"], "intermediate_size": m["F"], "vocab_size": m["V"],
        "max_position_embeddings": 131072,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


if __name__ == "__main__":
    main("aiconfigurator", {"inference": serving})
