"""The training layouts of the page on a frontier model: one on racks of GB300, and one on a pod of TPU7x."""

from scalingbook_book.chapters.architectures.case import V4_PRO_CONFIG
from scalingbook_lib import calibrated, models, training
from scalingbook_lib.machines import Cluster, Slice
from scalingbook_lib.machines.chips import GB300, TPU7X
from scalingbook_lib.training import Plan
from scalingbook_lib.units import BF16, FP8

# V4-Pro with multi-head latent attention, whose heads are wide enough for the FLOPs per token of NVIDIA's
# training recipe, the MTP layer included
STAND_IN = models.from_hf(
    {
        name: V4_PRO_CONFIG[name]
        for name in (
            "hidden_size",
            "num_hidden_layers",
            "vocab_size",
            "num_attention_heads",
            "q_lora_rank",
            "qk_rope_head_dim",
            "n_routed_experts",
            "num_experts_per_tok",
            "n_shared_experts",
            "moe_intermediate_size",
            "tie_word_embeddings",
        )
    }
    | {
        "model_type": "deepseek_v3",
        "num_key_value_heads": 128,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 256,
        "v_head_dim": 192,
        "intermediate_size": 18432,
        "first_k_dense_replace": 0,
    },
    name="stand-in",
)
T = 4096  # tokens of a training sequence
ON_RACKS = training.step(
    STAND_IN,
    Cluster.of(GB300, 2048, domain=64),
    Plan(
        ep=64,
        pp=4,
        fsdp=512,
        zero=1,
        schedule="interleaved",
        chunks=4,
        compute=FP8,
        moments=BF16,
        remat="recompute:mla_up_proj",
    ),
    batch=44 * 512,
    T=T,
    efficiency=calibrated.training(GB300, "fp8"),
)
"""A training step on 64 GPUs in each of 32 racks."""

ON_POD = training.step(
    STAND_IN,
    Slice.of(TPU7X, "16x24x24"),
    Plan(ep=64, pp=2, fsdp=64, dp=72, zero=3, compute=FP8, moments=BF16, remat="full"),
    batch=23_040,
    T=T,
    efficiency=calibrated.training(TPU7X, "fp8"),
)
"""A training step on a whole pod, with the plan that the planner finds on the page."""
