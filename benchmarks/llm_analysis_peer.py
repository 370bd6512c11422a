"""Answer the question of `benchmarks.planner` with llm-analysis; runs in its own environment and prints JSON.

llm-analysis supports tensor, pipeline and data parallelism, four kinds of ZeRO and three of
rematerialization. Every such plan of the 405B model on 16,384 H100s is evaluated by its `training`, with its
own memory check.
"""

import json
import logging
import sys
import time
from itertools import product

logging.disable(logging.CRITICAL)

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis  # noqa: E402
from llm_analysis.config import ModelConfig, ParallelismConfig, get_gpu_config_by_name  # noqa: E402

CHIPS, BATCH, T = 16384, 2048, 8192
MODEL = ModelConfig(
    name="llama-3.1-405b", num_layers=126, n_head=128, hidden_dim=16384, vocab_size=128256, max_seq_len=T,
    num_key_value_heads=8, ffn_embed_dim=53248, expansion_ratio=3.25,
)  # fmt: skip
GPU = get_gpu_config_by_name("h100-sxm-80gb")
POWERS = (1, 2, 4, 8, 16, 32, 64, 128)


def search() -> tuple[int, int, float]:
    """Return the number of plans evaluated, the number that fit, and the fastest step in seconds."""
    judged, found = 0, []
    for tp, pp in product(POWERS, POWERS[:7]):
        dp = CHIPS // (tp * pp)
        for microbatch in (1, 2, 4):
            if BATCH % (dp * microbatch):
                continue
            for zero, remat in product(DSZeRO, ActivationRecomputation):
                judged += 1
                step_s = judge(tp, pp, dp, microbatch, zero, remat)
                if step_s is not None:
                    found.append(step_s)
    return judged, len(found), min(found)


def judge(tp: int, pp: int, dp: int, microbatch: int, zero: DSZeRO, remat: ActivationRecomputation):
    """Return a step's seconds, or None if the plan does not fit."""
    plan = ParallelismConfig(tp_size=tp, pp_size=pp, dp_size=dp)
    try:
        told = LLMAnalysis(MODEL, GPU, parallelism_config=plan, flops_efficiency=0.5).training(
            batch_size_per_gpu=microbatch, global_batch_size=BATCH, seq_len=T, ds_zero=zero,
            activation_recomputation=remat, mlp_gated_linear_units=True,
        )  # fmt: skip
    except AssertionError:
        return None
    return told["latency_per_iter"] if told["memory_left_per_gpu"] >= 0 else None


if __name__ == "__main__":
    rounds = []
    for _ in range(int(sys.argv[1])):
        from_s = time.process_time()
        judged, legal, best_s = search()
        rounds.append(time.process_time() - from_s)
    print(json.dumps({"seconds": rounds, "judged": judged, "legal": legal, "best_s": best_s}))
