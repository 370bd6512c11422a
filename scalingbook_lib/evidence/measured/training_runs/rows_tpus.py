"""Published runs on TPUs: MaxText and tpu-recipes.

Chapter: Training.
"""

from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES = (
    Family(
        name="maxtext-v5p",
        convention="full",
        url="AI-Hypercomputer/maxtext",
        source="MaxText, configs/v5p/ at 5310fef",
        note="Copies over slices is the default, assumed.",
        rows="""
01 MaxText-32B  TPU_v5p 64   bf16 2048 384  6 fsdp16.tp4 minimal tf=328
01 MaxText-32B  TPU_v5p 128  bf16 2048 768  6 dcn2.fsdp16.tp4 minimal tf=319
02 MaxText-64B  TPU_v5p 64   bf16 2048 192  3 fsdp16.tp4 minimal tf=323
02 MaxText-64B  TPU_v5p 128  bf16 2048 384  3 dcn2.fsdp16.tp4 minimal tf=309
02 MaxText-256B TPU_v5p 512  bf16 2048 512  1 fsdp64.tp8 minimal tf=308
01 MaxText-256B TPU_v5p 1024 bf16 2048 1024 1 dcn2.fsdp64.tp8 minimal tf=289
03 MaxText-512B TPU_v5p 512  bf16 2048 1024 2 fsdp64.tp8 full tf=294
02 MaxText-512B TPU_v5p 1024 bf16 2048 2048 2 dcn2.fsdp64.tp8 full tf=282
""",
    ),
    Family(
        name="maxtext-v5e",
        convention="full",
        url="AI-Hypercomputer/maxtext",
        source="MaxText, configs/v5e/ at 5310fef",
        note="Copies over slices is the default, assumed.",
        rows="""
01 MaxText-16B  TPU_v5e 256  bf16 2048 1536  6 fsdp256 full tf=120
02 MaxText-32B  TPU_v5e 256  bf16 2048 1024  4 fsdp256 full tf=132
04 MaxText-128B TPU_v5e 256  bf16 2048 256   1 fsdp16.tp16 offload:q,k,v tf=110
01 MaxText-16B  TPU_v5e 512  bf16 2048 3072  6 dcn2.fsdp256 full tf=117
02 MaxText-32B  TPU_v5e 512  bf16 2048 2048  4 dcn2.fsdp256 full tf=128
04 MaxText-128B TPU_v5e 512  bf16 2048 512   1 dcn2.fsdp16.tp16 offload:q,k,v tf=110
01 MaxText-16B  TPU_v5e 1024 bf16 2048 6144  6 dcn4.fsdp256 full tf=117
02 MaxText-32B  TPU_v5e 1024 bf16 2048 4096  4 dcn4.fsdp256 full tf=126
04 MaxText-128B TPU_v5e 1024 bf16 2048 1024  1 dcn4.fsdp16.tp16 offload:q,k,v tf=108
01 MaxText-16B  TPU_v5e 2048 bf16 2048 12288 6 dcn8.fsdp256 full tf=115
04 MaxText-128B TPU_v5e 2048 bf16 2048 2048  1 dcn8.fsdp16.tp16 offload:q,k,v tf=104
01 MaxText-16B  TPU_v5e 4096 bf16 2048 24576 6 dcn16.fsdp256 full tf=111
02 MaxText-32B  TPU_v5e 4096 bf16 2048 16384 4 dcn16.fsdp256 full tf=123
04 MaxText-128B TPU_v5e 4096 bf16 2048 4096  1 dcn16.fsdp16.tp16 offload:q,k,v tf=100
02 MaxText-32B  TPU_v5e 8192 bf16 2048 32768 4 dcn32.fsdp256 full tf=119
""",
    ),
    Family(
        name="tpu-recipes-tpuv6e",
        convention="full",
        url="AI-Hypercomputer/tpu-recipes",
        source="tpu-recipes, training/trillium/ at c8cfe2f",
        rows="""
01 LLaMA-3_8B  TPU_v6e 8   bf16 8192  24   3 fsdp8 offload:in,q,k,v,o s=3.443 tok=7138.89 tf=413.433
01 LLaMA-3_8B  TPU_v6e 16  bf16 8192  48   3 fsdp16 offload:in,q,k,v,o s=3.393 tok=7243.378 tf=419.485
01 LLaMA-3_8B  TPU_v6e 32  bf16 8192  96   3 fsdp32 offload:in,q,k,v,o s=3.495 tok=7031.689 tf=407.225
01 LLaMA-3_8B  TPU_v6e 64  bf16 8192  320  5 fsdp64 offload:in,q,k,v,o s=5.652 tok=7247.111 tf=419.701
01 LLaMA-3_8B  TPU_v6e 256 bf16 8192  1024 4 fsdp256 offload:in,q,k,v,o s=4.546 tok=7207.336 tf=417.397
02 LLaMA-3_70B TPU_v6e 32  bf16 8192  64   2 fsdp32 offload:in,q,k,v s=17.79 tok=920.965 tf=443.385
02 LLaMA-3_70B TPU_v6e 128 bf16 8192  512  4 fsdp128 offload:in,q,k,v s=34.786 tok=941.976 tf=453.5
02 Mistral-7B  TPU_v6e 8   bf16 8192  48   6 fsdp8 offload:in,q,k,v,o s=6.32 tok=7776.813 tf=431.981
06 Gemma-3_12B TPU_v6e 256 bf16 32768 256  1 fsdp256 save:in s=7.318 tok=4477.768 tf=349.442 by=half
07 GPT3-175B   TPU_v6e 256 bf16 2048  768  3 fsdp256 full s=17.182 tok=357.58 tf=384.891
""",
    ),
    Family(
        name="tpu-recipes-tpuv5p",
        convention="full",
        url="AI-Hypercomputer/tpu-recipes",
        source="tpu-recipes, training/v5p/ at c8cfe2f",
        rows="""
01 Llama_4_Maverick TPU_v5p 128 bf16 8192 512 4 fsdp32.tp4 offload:in,q,k,v,o s=24.792 tok=1321.725 tf=160.005
03 Llama_4_Scout TPU_v5p 512 bf16 8192 4096 8 fsdp512 offload:in s=31.652 tok=2070.487 tf=225.491 by=half
""",
    ),
    Family(
        name="tpu-recipes-ironwood",
        convention="half",
        url="AI-Hypercomputer/tpu-recipes",
        source="tpu-recipes, training/ironwood/ at c8cfe2f",
        note="A device is half a chip; ways and microbatches are those of chips.",
        rows="""
01 DeepSeek-V3 TPU7x 128 bf16 4096 2048 16 fsdp128 offload:in s=27.02 tok=2425.75 tf=607.53
01 DeepSeek-V3 TPU7x 128 fp8  4096 2048 16 fsdp128 offload:in s=22.47 tok=2917.15 tf=730.6
06 LLaMA-3_70B TPU7x 64  bf16 8192 256  4  fsdp64 save:in,context,q,k,v s=12.2 tok=2686.98 tf=1207.05
01 LLaMA-3_70B TPU7x 64  fp8  8192 256  4  fsdp64 - s=7.93 tok=4127.56 tf=1854.19
05 LLaMA-3_70B TPU7x 256 bf16 8192 1024 4  fsdp256 - s=12.27 tok=2670.55 tf=1199.67
03 LLaMA-3_70B TPU7x 256 fp8  8192 1024 4  fsdp256 - s=7.95 tok=4121.02 tf=1851.25
""",
    ),
)
