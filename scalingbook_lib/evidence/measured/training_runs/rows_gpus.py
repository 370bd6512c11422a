"""Published runs on GPUs: Megatron-LM, dgxc-benchmarking, NeMo, Automodel, torchtitan.

Chapter: Training.
"""

from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES = (
    Family(
        name="megatron-sc21",
        convention="hardware",
        url="NVIDIA/Megatron-LM",
        source="Megatron-LM, images/cases_april2021.png at 50a4b5fa (arXiv 2104.04473)",
        note="The source prints the product tp · pp; the split, heads, the type and the remat are recalled.",
        rows="""
01 GPT-1.7B A100 32   fp16 2048 512  - dp32.zero0            full tf=137
01 GPT-3.6B A100 64   fp16 2048 512  - dp32.tp2.zero0        full tf=138
01 GPT-7.5B A100 128  fp16 2048 512  - dp32.tp4.zero0        full tf=142
01 GPT-39B  A100 512  fp16 2048 1536 - dp32.tp8.pp2.v0.zero0 full tf=138
01 GPT-145B A100 1536 fp16 2048 2304 - dp24.tp8.pp8.v0.zero0 full tf=148
01 GPT-530B A100 2520 fp16 2048 2520 - dp9.tp8.pp35.v0.zero0 full tf=163
""",
    ),
    Family(
        name="megatron-core-h100",
        convention="full",
        url="NVIDIA/Megatron-LM",
        source="Megatron-Core 0.8, images/model_table.png at d98e8a64",
        note="bf16 follows from the MFU.",
        rows="""
01 GPT-1.7B-131k H100 48   bf16 4096 192  - fsdp48.zero1 - tf=408.8
01 GPT-16B       H100 192  bf16 4096 192  - fsdp48.tp4.zero1 - tf=489.1
01 GPT-70B       H100 768  bf16 4096 384  - fsdp48.tp8.pp2.v0.zero1 - tf=419.7
01 GPT-177B      H100 2304 bf16 4096 1152 - fsdp48.tp8.pp6.v0.zero1 - tf=432.8
01 GPT-462B      H100 6144 bf16 4096 3072 - fsdp48.tp8.pp16.v0.zero1 - tf=459.9
""",
    ),
    Family(
        name="korthikanti22",
        convention="full",
        url="calculon-ai/calculon",
        source="arXiv 2205.05198, table 5, by calculon-ai/calculon at caa4b11",
        rows="""
01 GPT-22B  A100 8   fp16 2048 4   4 tp8.zero0        full      s=1.42
02 GPT-22B  A100 8   fp16 2048 4   4 tp8.zero0        selective s=1.1
01 GPT-175B A100 64  fp16 2048 64  1 tp8.pp8.v3.zero0 full      s=18.13
02 GPT-175B A100 64  fp16 2048 64  1 tp8.pp8.v3.zero0 selective s=13.75
01 GPT-1T   A100 512 fp16 2048 512 1 tp8.pp64.zero0   full      s=94.42
02 GPT-1T   A100 512 fp16 2048 512 1 tp8.pp64.zero0   selective s=71.49
""",
    ),
    Family(
        name="mt-nlg",
        convention="hardware",
        url="NVIDIA/Megatron-LM",
        source="arXiv 2201.11990, p. 7, as quoted; split recalled",
        note="The split and the vocabulary are recalled.",
        rows="""
01 MT-NLG A100 2240 bf16 2048 1920 - dp8.tp8.pp35.v0.zero0 full s=60.1 tf=126
""",
    ),
    Family(
        name="dgxc-llama3-8b",
        convention="full",
        url="NVIDIA/dgxc-benchmarking",
        source="dgxc-benchmarking, llama3.1/ at v24.11.1 and v25.04.02",
        rows="""
01 LLaMA-3_8B H100 8   bf16 8192 128  1 fsdp4.cp2.zero1  - s=12.91 mfu=0.5937 as=24.11.1
01 LLaMA-3_8B H100 16  bf16 8192 256  1 fsdp8.cp2.zero1  - s=13 mfu=0.5896 as=24.11.1
01 LLaMA-3_8B H100 32  bf16 8192 512  1 fsdp16.cp2.zero1 - s=13.05 mfu=0.5873 as=24.11.1
01 LLaMA-3_8B H100 64  bf16 8192 1024 1 fsdp32.cp2.zero1 - s=13.08 mfu=0.586 as=24.11.1
01 LLaMA-3_8B H100 128 bf16 8192 2048 1 fsdp64.cp2.zero1 - s=13.1 mfu=0.5851 as=24.11.1
01 LLaMA-3_8B H100 8   fp8  8192 128  1 fsdp4.cp2.zero1  - s=9.67 mfu=0.3963 as=24.11.1
01 LLaMA-3_8B H100 16  fp8  8192 256  1 fsdp8.cp2.zero1  - s=9.73 mfu=0.3939 as=24.11.1
01 LLaMA-3_8B H100 32  fp8  8192 512  1 fsdp16.cp2.zero1 - s=9.75 mfu=0.3931 as=24.11.1
01 LLaMA-3_8B H100 64  fp8  8192 1024 1 fsdp32.cp2.zero1 - s=9.8 mfu=0.391 as=24.11.1
01 LLaMA-3_8B H100 128 fp8  8192 2048 1 fsdp64.cp2.zero1 - s=9.82 mfu=0.3902 as=24.11.1
02 LLaMA-3_8B H100 8   bf16 8192 128  1 fsdp4.cp2.zero1  - s=12.27 mfu=0.6247 as=25.04.02
02 LLaMA-3_8B H100 16  bf16 8192 256  1 fsdp8.cp2.zero1  - s=12.3 mfu=0.6231 as=25.04.02
02 LLaMA-3_8B H100 32  bf16 8192 512  1 fsdp16.cp2.zero1 - s=12.32 mfu=0.6221 as=25.04.02
02 LLaMA-3_8B H100 64  bf16 8192 1024 1 fsdp32.cp2.zero1 - s=12.33 mfu=0.6216 as=25.04.02
02 LLaMA-3_8B H100 128 bf16 8192 2048 1 fsdp64.cp2.zero1 - s=12.33 mfu=0.6216 as=25.04.02
02 LLaMA-3_8B H100 8   fp8  8192 128  1 fsdp4.cp2.zero1  - s=9.33 mfu=0.4107 as=25.04.02
02 LLaMA-3_8B H100 16  fp8  8192 256  1 fsdp8.cp2.zero1  - s=9.36 mfu=0.4094 as=25.04.02
02 LLaMA-3_8B H100 32  fp8  8192 512  1 fsdp16.cp2.zero1 - s=9.43 mfu=0.4064 as=25.04.02
02 LLaMA-3_8B H100 64  fp8  8192 1024 1 fsdp32.cp2.zero1 - s=9.48 mfu=0.4042 as=25.04.02
02 LLaMA-3_8B H100 128 fp8  8192 2048 1 fsdp64.cp2.zero1 - s=9.54 mfu=0.4017 as=25.04.02
""",
    ),
    Family(
        name="dgxc-llama3-70b",
        convention="full",
        url="NVIDIA/dgxc-benchmarking",
        source="dgxc-benchmarking, llama3.1/ at v24.11.1 and v25.04.02",
        rows="""
01 LLaMA-3_70B H100 64  bf16 8192 128  1 fsdp2.tp4.cp2.pp4.v5.zero1 - s=14.72 mfu=0.541 as=24.11.1
01 LLaMA-3_70B H100 128 bf16 8192 256  1 fsdp4.tp4.cp2.pp4.v5.zero1 - s=14.73 mfu=0.5406 as=24.11.1
01 LLaMA-3_70B H100 256 bf16 8192 512  1 fsdp8.tp4.cp2.pp4.v5.zero1 - s=14.8 mfu=0.5381 as=24.11.1
01 LLaMA-3_70B H100 512 bf16 8192 1024 1 fsdp16.tp4.cp2.pp4.v5.zero1 - s=14.89 mfu=0.5348 as=24.11.1
01 LLaMA-3_70B H100 64  fp8  8192 128  1 fsdp2.tp4.cp2.pp4.v5.zero1 - s=11.01 mfu=0.3617 as=24.11.1
01 LLaMA-3_70B H100 128 fp8  8192 256  1 fsdp4.tp4.cp2.pp4.v5.zero1 - s=10.93 mfu=0.3643 as=24.11.1
01 LLaMA-3_70B H100 256 fp8  8192 512  1 fsdp8.tp4.cp2.pp4.v5.zero1 - s=11.16 mfu=0.3568 as=24.11.1
01 LLaMA-3_70B H100 512 fp8  8192 1024 1 fsdp16.tp4.cp2.pp4.v5.zero1 - s=11.18 mfu=0.3562 as=24.11.1
02 LLaMA-3_70B H100 64  bf16 8192 128  1 fsdp2.tp4.cp2.pp4.v5.zero1 - s=14.66 mfu=0.5432 as=25.04.02
02 LLaMA-3_70B H100 128 bf16 8192 256  1 fsdp4.tp4.cp2.pp4.v5.zero1 - s=14.67 mfu=0.5429 as=25.04.02
02 LLaMA-3_70B H100 256 bf16 8192 512  1 fsdp8.tp4.cp2.pp4.v5.zero1 - s=14.68 mfu=0.5425 as=25.04.02
02 LLaMA-3_70B H100 512 bf16 8192 1024 1 fsdp16.tp4.cp2.pp4.v5.zero1 - s=14.67 mfu=0.5429 as=25.04.02
02 LLaMA-3_70B H100 64  fp8  8192 128  1 fsdp2.tp4.pp8.v5.zero1 - s=9.86 mfu=0.4038 as=25.04.02
02 LLaMA-3_70B H100 128 fp8  8192 256  1 fsdp4.tp4.pp8.v5.zero1 - s=9.95 mfu=0.4002 as=25.04.02
02 LLaMA-3_70B H100 256 fp8  8192 512  1 fsdp8.tp4.pp8.v5.zero1 - s=10 mfu=0.3982 as=25.04.02
02 LLaMA-3_70B H100 512 fp8  8192 1024 1 fsdp16.tp4.pp8.v5.zero1 - s=10.07 mfu=0.3954 as=25.04.02
""",
    ),
    Family(
        name="dgxc-gpt3-175b",
        convention="full",
        url="NVIDIA/dgxc-benchmarking",
        source="dgxc-benchmarking, nemo_megatron/README_175b.md at v25.04.02",
        note="A table says 6 chunks, the text 12.",
        rows="""
01 GPT3-175B H100 128 bf16 2048 256  1 fsdp4.tp4.pp8.v6.zero1  - s=8.309 mfu=0.5354
01 GPT3-175B H100 256 bf16 2048 512  1 fsdp8.tp4.pp8.v6.zero1  - s=8.408 mfu=0.5291
01 GPT3-175B H100 512 bf16 2048 1024 1 fsdp16.tp4.pp8.v6.zero1 - s=8.42 mfu=0.5284
01 GPT3-175B H100 128 fp8  2048 256  1 fsdp4.tp4.pp8.v6.zero1  - s=5.626 mfu=0.3952
01 GPT3-175B H100 256 fp8  2048 512  1 fsdp8.tp4.pp8.v6.zero1  - s=5.725 mfu=0.3884
01 GPT3-175B H100 512 fp8  2048 1024 1 fsdp16.tp4.pp8.v6.zero1 - s=5.774 mfu=0.3851
""",
    ),
    Family(
        name="dgxc-nemotron-340b",
        convention="full",
        url="NVIDIA/dgxc-benchmarking",
        source="dgxc-benchmarking, nemotron/README.md at v25.04.02; widths recalled",
        note="Widths, heads and the vocabulary are recalled.",
        rows="""
01 Nemotron4-340B H100 256 bf16 4096 64  1 fsdp4.tp8.pp8.v0.zero1 - s=4.36 mfu=0.4998
01 Nemotron4-340B H100 512 bf16 4096 128 1 fsdp8.tp8.pp8.v0.zero1 - s=4.39 mfu=0.4964
01 Nemotron4-340B H100 256 fp8  4096 64  1 fsdp4.tp8.pp8.v0.zero1 - s=2.93 mfu=0.3717
01 Nemotron4-340B H100 512 fp8  4096 128 1 fsdp8.tp8.pp8.v0.zero1 - s=2.97 mfu=0.3667
""",
    ),
    Family(
        name="dgxc-maxtext-70b",
        convention="full",
        url="NVIDIA/dgxc-benchmarking",
        source="dgxc-benchmarking, maxtext/README_70b.md at v24.11.1",
        rows="""
01 LLaMA-2_70B H100 64   bf16 4096 128  2 fsdp64       - s=6.999 mfu=0.5259
02 LLaMA-2_70B H100 128  bf16 4096 256  2 fsdp128      - s=7.072 mfu=0.5204
02 LLaMA-2_70B H100 256  bf16 4096 512  2 fsdp256      - s=7.153 mfu=0.5145
02 LLaMA-2_70B H100 512  bf16 4096 1024 2 dp4.fsdp128  - s=7.091 mfu=0.519
02 LLaMA-2_70B H100 1024 bf16 4096 2048 2 dp8.fsdp128  - s=7.084 mfu=0.5195
02 LLaMA-2_70B H100 2048 bf16 4096 4096 2 dp16.fsdp128 - s=7.066 mfu=0.5209
01 LLaMA-2_70B H100 64   fp8  4096 128  2 fsdp64       - s=4.324 mfu=0.4254
02 LLaMA-2_70B H100 128  fp8  4096 256  2 fsdp128      - s=4.556 mfu=0.4037
02 LLaMA-2_70B H100 256  fp8  4096 512  2 fsdp256      - s=4.959 mfu=0.3709
02 LLaMA-2_70B H100 512  fp8  4096 1024 2 dp4.fsdp128  - s=5.043 mfu=0.3647
02 LLaMA-2_70B H100 1024 fp8  4096 2048 2 dp8.fsdp128  - s=5.062 mfu=0.3634
02 LLaMA-2_70B H100 2048 fp8  4096 4096 2 dp16.fsdp128 - s=4.93 mfu=0.3731
""",
    ),
    Family(
        name="nemo-24.07",
        convention="full",
        url="NVIDIA/NeMo",
        source="NeMo 24.07, performance_summary.md at 070a0bb",
        rows="""
01 GPT3-175B   H100 128 fp8 2048 256 1 fsdp4.tp4.pp8.v6.zero1 - tok=726 tf=782
01 LLaMA-2_7B  H100 8   fp8 4096 128 1 fsdp8.zero1 - tok=16847 tf=776
01 LLaMA-2_13B H100 16  fp8 4096 128 1 fsdp4.pp4.v10.zero1 - tok=8646 tf=754
06 LLaMA-3_70B H100 64  fp8 8192 128 1 fsdp2.tp4.cp2.pp4.v5.zero1 - tok=1533 tf=738
""",
    ),
    Family(
        name="automodel",
        convention="bridge",
        url="NVIDIA-NeMo/Automodel",
        source="Automodel, docs/performance-summary.md at 01926a5",
        rows="""
01 DeepSeek-V3   H100 256 bf16 4096 512 1 fsdp64.pp4.v8.ep64 - s=8.18 tok=1002 tf=250
01 Qwen3_30B-A3B H100 8   bf16 4096 512 4 fsdp8.ep8          - s=21.773 tok=12040 tf=277
02 gpt-oss_20B   H100 8   bf16 4096 256 2 fsdp8              - s=10.04 tok=13058 tf=279 by=-
""",
    ),
    Family(
        name="torchtitan",
        convention=None,
        url="pytorch/torchtitan",
        source="torchtitan, benchmarks/ at b5bcd76",
        note="T of the 70B runs of 2025 is assumed.",
        rows="""
01 LLaMA-3_8B  H100-500W 8   bf16 8192  16  2  fsdp8 selective_op tok=5762 mem=82.4 as=eager
02 LLaMA-3_8B  H100-500W 8   bf16 8192  16  2  fsdp8 selective_op tok=6667 mem=77.0 as=compiled
01 LLaMA-3_8B  H100-500W 8   fp8  8192  16  2  fsdp8 selective_op tok=8532 mem=76.8 as=compiled
02 LLaMA-3_8B  H100-500W 8   fp8  32768 8   1  fsdp8 full tok=3890 mem=83.9 as=compiled
03 LLaMA-3_8B  H100-500W 8   fp8  65536 4   1  fsdp4.cp2 full tok=2540 mem=84.2 as=compiled
01 LLaMA-3_8B  H100-500W 128 bf16 8192  256 2  fsdp128 selective_op tok=5605 mem=67.0 as=eager
02 LLaMA-3_8B  H100-500W 128 bf16 8192  256 2  fsdp128 selective_op tok=6514 mem=62.0 as=compiled
01 LLaMA-3_8B  H100-500W 128 fp8  8192  256 2  fsdp128 selective_op tok=8380 mem=61.8 as=compiled
01 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=829 mem=71.9 as=compiled
02 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=876 mem=67.6 as=async_TP
01 LLaMA-3_70B H100-500W 256 bf16 8192  512 16 fsdp32.tp8 full tok=597.3 as=compiled,2025
02 LLaMA-3_70B H100-500W 256 bf16 8192  512 16 fsdp32.tp8 full tok=652.4 as=async_TP,2025
03 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=809.8 as=tensorwise,2025
04 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=942.4 as=tensorwise,async_TP,2025
05 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=599.6 as=rowwise,2025
06 LLaMA-3_70B H100-500W 256 fp8  8192  512 16 fsdp32.tp8 full tok=624.8 as=rowwise,async_TP,2025
""",
    ),
)
