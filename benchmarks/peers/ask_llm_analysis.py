"""Ask llm-analysis about training and serving, at the efficiencies that its documentation recommends."""

import logging

logging.disable(logging.CRITICAL)

from answering import main, served  # noqa: E402
from llm_analysis.analysis import ActivationRecomputation as Remat  # noqa: E402
from llm_analysis.analysis import DSZeRO, LLMAnalysis  # noqa: E402
from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig, ParallelismConfig  # noqa: E402

TRAINING, SERVING, MEMORY = 0.5, 0.7, 0.9  # "up to 0.5 for training, 0.7 for inference", and "0.9" for memory
REMAT = {"full": Remat.FULL, "selective": Remat.SELECTIVE, "alternate": Remat.SELECTIVE}


def analysis(one: dict, T: int, bits: int, efficiency: float, ways: ParallelismConfig) -> LLMAnalysis:
    """Return its model of a question; a chip that it lacks is described by its documented rates."""
    m, c = one["model"], one["chip"]
    model = ModelConfig(
        name=m["name"], num_layers=m["L"], n_head=m["N"], hidden_dim=m["D"], vocab_size=m["V"], max_seq_len=T,
        num_key_value_heads=m["K"], ffn_embed_dim=m["F"], expansion_ratio=m["F"] / m["D"],
        moe_num_experts=m["E"], moe_top_k=m["k"],
    )  # fmt: skip
    gpu = GPUConfig(
        name="chip", mem_per_GPU_in_GB=1e6, hbm_bandwidth_in_GB_per_sec=c["hbm"] / 1e9,
        intra_node_bandwidth_in_GB_per_sec=c["link"] / 1e9, intra_node_min_message_latency=8e-6,
        peak_fp16_TFLOPS=c["bf16"] / 1e12,
    )  # fmt: skip
    dtype = DtypeConfig(weight_bits=bits, activation_bits=max(bits, 8))
    return LLMAnalysis(
        model, gpu, dtype_config=dtype, parallelism_config=ways, flops_efficiency=efficiency,
        hbm_memory_efficiency=MEMORY,
    )  # fmt: skip


def training(one: dict) -> float:
    """Return the seconds of a step; low-precision matmuls run at the rate of their data type."""
    ways = ParallelismConfig(tp_size=one["tp"], pp_size=one["pp"], dp_size=one["ranks"])
    bits = {"bf16": 16, "fp16": 16}.get(one["type"], 8)
    told = analysis(one, one["T"], bits, TRAINING, ways).training(
        batch_size_per_gpu=one["microbatch"], global_batch_size=one["batch"], seq_len=one["T"],
        ds_zero=DSZeRO(one["zero"]), activation_recomputation=REMAT.get(one["remat"], Remat.NONE),
        mlp_gated_linear_units=one["model"]["gated"],
    )  # fmt: skip
    return told["latency_per_iter"]


def serving(one: dict) -> float:
    """Return tokens per second; its decode step has a single context length, of prompt and output."""
    bits = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}.get(one["type"], 4)
    ways = ParallelismConfig(tp_size=one["tp"], pp_size=one["pp"])

    def told(T: int, G: int) -> dict:
        asked = {"batch_size_per_gpu": one["B"], "seq_len": T, "num_tokens_to_generate": G}
        told = analysis(one, T + G, bits, SERVING, ways)
        return told.inference(kv_cache_dtype_bytes=one["kv_bytes"], **asked)

    return served(one, lambda P: told(P, 1)["prefill_latency"], lambda S: told(S, 1)["decode_latency"])


if __name__ == "__main__":
    main("llm-analysis", {"training": training, "inference": serving})
