"""Which published runs are left out, and why?

A run is usable where the source names the model and its shapes, the batch, the sequence and how it was split,
and prints a time, or a rate of which it says how it counts. Chapter: Training.
"""

_IDS = {
    "how it was parallelized is not given": """
megatron-core-h100-h100-sxm-96-bf16-02 palm-tpuv4-6144-bf16-01
    """,
    "the shapes of the model are not given": """
nemo-24-07-h100-sxm-64-fp8-01 nemo-24-07-h100-sxm-64-fp8-02 nemo-24-07-h100-sxm-64-fp8-04
mbridge-26-08-gb300-128-mxfp8-01 mbridge-26-08-gb200-128-mxfp8-01 mbridge-26-08-gb300-8-mxfp8-02
mbridge-26-08-gb200-8-mxfp8-02 mbridge-26-08-gb300-64-mxfp8-02 mbridge-26-08-gb300-64-nvfp4-01
mbridge-26-08-gb200-64-mxfp8-02 mbridge-26-08-gb200-64-nvfp4-01 mbridge-26-06-01-gb300-8-mxfp8-02
mbridge-26-06-01-gb200-8-mxfp8-02 mbridge-26-06-01-gb300-64-mxfp8-02 mbridge-26-06-01-gb300-64-nvfp4-01
mbridge-26-06-01-gb200-64-mxfp8-02 mbridge-26-06-01-gb200-64-nvfp4-01 mbridge-26-06-gb300-8-mxfp8-02
mbridge-26-06-gb200-8-mxfp8-02 mbridge-26-06-h100-sxm-16-fp8-02 mbridge-26-06-gb300-64-mxfp8-02
mbridge-26-06-gb300-64-nvfp4-01 mbridge-26-06-gb200-64-mxfp8-02 mbridge-26-06-gb200-64-nvfp4-01
mbridge-26-04-01-gb300-8-mxfp8-02 mbridge-26-04-01-gb200-8-mxfp8-02 mbridge-26-04-01-b200-8-mxfp8-02
mbridge-26-04-01-h100-sxm-16-fp8-02 mbridge-26-04-01-gb300-64-mxfp8-02 mbridge-26-04-01-gb300-64-nvfp4-02
mbridge-26-04-01-gb200-64-mxfp8-02 mbridge-26-04-01-gb200-64-nvfp4-02 mbridge-26-04-01-b200-64-mxfp8-01
mbridge-26-04-01-b200-64-nvfp4-01 mbridge-26-04-gb300-8-mxfp8-02 mbridge-26-04-gb200-8-mxfp8-02
mbridge-26-04-h100-sxm-16-fp8-02 mbridge-26-04-gb300-64-nvfp4-02 mbridge-26-04-gb200-64-nvfp4-02
mbridge-26-04-b200-64-nvfp4-01 mbridge-26-04-gb300-64-mxfp8-02 mbridge-26-04-gb200-64-mxfp8-02
mbridge-26-04-b200-64-mxfp8-01 mbridge-26-02-01-gb300-8-mxfp8-02 mbridge-26-02-01-gb200-8-mxfp8-02
mbridge-26-02-01-h100-sxm-16-fp8-02 tpu-recipes-ironwood-tpu7x-64-bf16-01
tpu-recipes-ironwood-tpu7x-64-bf16-02 tpu-recipes-ironwood-tpu7x-64-bf16-03
tpu-recipes-ironwood-tpu7x-256-bf16-02
    """,
    "batch or sequence length is not given": """
nemo-longseq-h100-sxm-4-fp8-01 nemo-longseq-h100-sxm-8-fp8-01 nemo-longseq-h100-sxm-16-fp8-01
nemo-longseq-h100-sxm-32-fp8-01 nemo-longseq-h100-sxm-64-fp8-01 maxtext-v5p-tpuv5p-512-bf16-04
maxtext-a3-h100-sxm-8-bf16-01 maxtext-a3-h100-sxm-16-bf16-01 maxtext-a3-h100-sxm-32-bf16-01
maxtext-tiering-tpuv6e-256-bf16-01 maxtext-tiering-tpuv6e-256-bf16-02 maxtext-tiering-tpuv6e-256-bf16-03
maxtext-tiering-tpuv5p-512-bf16-01
    """,
    "only a rate is given, and how it counts FLOPs is not": """
nemo-longseq-b200-2-fp8-01 nemo-longseq-b200-4-fp8-01 nemo-longseq-b200-8-fp8-01
nemo-longseq-b200-16-fp8-01
    """,
    "fine-tuning by adapters, not a whole step": """
mbridge-26-06-gb300-8-fp8-01 mbridge-26-06-gb300-8-mxfp8-03 mbridge-26-06-gb200-8-fp8-01
mbridge-26-06-gb200-8-mxfp8-03 mbridge-26-06-h100-sxm-8-fp8-01
    """,
    "the model is not named": """
torchtitan-b200-power-limited-8-bf16-01 torchtitan-b200-power-limited-8-mxfp8-01
torchtitan-b200-power-limited-8-mxfp8-02 torchtitan-b200-power-limited-8-fp8-01
    """,
    "the source contradicts itself": """
maxtext-v5p-tpuv5p-64-bf16-03 tpu-recipes-tpuv5p-tpuv5p-512-int8-01
    """,
    "time follows from FLOPs, and head width and MLP are not certain": """
maxtext-v4-tpuv4-64-bf16-01 maxtext-v4-tpuv4-128-bf16-01 maxtext-v4-tpuv4-256-bf16-01
maxtext-v4-tpuv4-512-bf16-01
    """,
    "fp8 or int8: the precision is not certain": """
tpu-recipes-tpuv6e-tpuv6e-256-fp8-int8-path-01
    """,
}

REFUSED = {reason: tuple(ids.split()) for reason, ids in _IDS.items()}
"""The ids of the rows that are left out, by the reason."""
