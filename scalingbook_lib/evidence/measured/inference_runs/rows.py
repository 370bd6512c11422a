"""Published runs of inference: TensorRT-LLM, vLLM on TPUs, gpt-fast, PaLM, FasterTransformer.

Chapter: Inference.
"""

from scalingbook_lib.evidence.measured.inference_runs.table import Family

PG = (
    (128, 128, 30000), (128, 2048, 3000), (128, 4096, 1500), (500, 2000, 3000), (1000, 1000, 3000),
    (1000, 2000, 1500), (2048, 128, 3000), (2048, 2048, 1500), (5000, 500, 1500), (20000, 2000, 1000),
)  # fmt: skip
"""TensorRT-LLM's overview: tokens of the prompt, tokens generated, and how many requests a run has."""

FAMILIES = (
    Family(
        name="trtllm",
        engine="TensorRT-LLM 1.0",
        kv="fp8",
        head="bf16",
        shapes=PG,
        url="https://github.com/NVIDIA/TensorRT-LLM",
        source="TensorRT-LLM, docs/source/performance/perf-overview.md at 00f3768",
        note="fp8 caches and a 16-bit unembedding follow from the checkpoints and the engine's defaults.",
        sweep="""
0034 Llama_4_Scout   B200            1 tp1     fp4 25342 14699 8932 11977 10591 9356 3137 7152 2937 1644
0044 Llama_4_Scout   GB200           1 tp1     fp4 19954 15238 9556 11795 7738 8581 3295 7464 3107 1767
0054 Llama_4_Scout   H200            4 tp4     fp8 30354 34316 21332 24630 21636 18499 3699 14949 4605 2105
0064 Llama_4_Scout   H100            4 tp4     fp8 - 15130 8603 12399 12129 9838 3253 7972 3342 -
0072 LLaMA-3_70B     B200            1 tp1     fp4 11147 9922 6831 7762 7007 6271 1339 4783 1459 665
0082 LLaMA-3_70B     GB200           1 tp1     fp4 12189 11309 7849 9028 7326 6513 1450 5646 1602 755
0092 LLaMA-3_70B     H200            1 tp1     fp8 3803 4336 2872 3666 2909 2994 442 2003 566 283
0112 Qwen3_235B-A22B B200            8 tp8     fp4 63362 66057 39496 57117 42391 34105 7329 26854 8190 4453
0122 Qwen3_235B-A22B H200            8 tp8     fp8 30429 42821 26852 28026 23789 22061 3331 16672 3623 1876
0139 Qwen3_30B-A3B   B200            1 tp1     fp4 39827 37844 24953 27817 25828 22051 6251 17554 6142 2944
0149 Qwen3_30B-A3B   GB200           1 tp1     fp4 24107 31311 26337 20604 17481 17177 6595 14719 5908 3203
0234 LLaMA-3_8B      H100            1 tp1     fp8 28312 22714 14325 17660 15220 13899 3450 9305 3459 1351
0244 LLaMA-3_70B     RTX_PRO_6000_SE 1 tp1     fp4 3264 2422 1349 1856 1787 1594 393 1074 401 142
0254 LLaMA-3_70B     RTX_PRO_6000_SE 2 tp1.pp2 fp4 6172 4993 2893 4114 3707 2993 813 2336 812 319
0264 LLaMA-3_70B     RTX_PRO_6000_SE 4 tp1.pp4 fp4 9641 7922 4978 6939 5961 5274 1511 3870 1511 630
0284 Qwen3_30B-A3B   RTX_PRO_6000_SE 1 tp1     fp4 28011 12540 7491 10695 9910 8378 3257 5908 2530 871
0294 Qwen3_30B-A3B   RTX_PRO_6000_SE 2 tp2     fp4 32646 22744 15049 17266 16431 13323 3785 10679 3799 1558
0304 Qwen3_30B-A3B   RTX_PRO_6000_SE 4 tp4     fp4 36819 35715 28139 26175 24046 25131 4311 18134 5212 2551
""",
    ),
    Family(
        name="gpt-fast",
        engine="gpt-fast",
        kv="bf16",
        url="https://github.com/pytorch-labs/gpt-fast",
        source="gpt-fast, README.md at 0f925b5: a prompt of 5 tokens, batch 1",
        note="200 tokens generated are its default, not said; the context is the mean over them.",
        rows="""
0019 decode LLaMA-2_7B  A100-330W 1 tp1 bf16     B=1 S=105 tok=104.9
0020 decode LLaMA-2_7B  A100-330W 1 tp1 int8     B=1 S=105 tok=155.58
0022 decode LLaMA-2_70B A100-330W 1 tp1 int8     B=1 S=105 tok=19.13
0023 decode LLaMA-2_70B A100-330W 1 tp1 int4-g32 B=1 S=105 tok=25.25
0024 decode LLaMA-2_7B  A100-330W 2 tp2 bf16     B=1 S=105 tok=168.84
0025 decode LLaMA-2_7B  A100-330W 4 tp4 bf16     B=1 S=105 tok=254.02
0026 decode LLaMA-2_7B  A100-330W 8 tp8 bf16     B=1 S=105 tok=328.43
0027 decode LLaMA-2_70B A100-330W 2 tp2 bf16     B=1 S=105 tok=21.32
""",
    ),
    Family(
        name="palm",
        engine="JAX (Pope et al.)",
        kv="bf16",
        url="https://arxiv.org/abs/2211.05102",
        source="R. Pope et al., Efficiently Scaling Transformer Inference (2022), tables 2, D.3, as quoted",
        note="Read in digests of the paper. Where the types are not said they are 16 bits wide.",
        rows="""
0001 prefill PaLM-540B-64 TPU_v4 64 tp64 int8 B=1 P=2048 s=0.29
0002 decode  PaLM-540B-64 TPU_v4 64 tp64 int8 B=64 S=2048 ms=28.44
0003 prefill PaLM-540B-64 TPU_v4 64 tp64 bf16 B=512 P=2048 s=85.2
0011 batch   PaLM-540B-64 TPU_v4 64 tp64 bf16 B=4 P=60 G=20 s=0.69
0012 batch   PaLM-540B-64 TPU_v4 64 tp64 bf16 B=64 P=60 G=20 s=1.218
""",
    ),
    Family(
        name="fastertransformer",
        engine="FasterTransformer",
        kv="fp16",
        url="https://arxiv.org/abs/2211.05102",
        source="FasterTransformer, as R. Pope et al. (2022) compare with it, table D.3, as quoted",
        note="That these A100 have 80 GB is inferred.",
        rows="""
0015 batch MT-NLG-530B A100 32 tp32 fp16 B=4  P=60 G=20 s=1.11
0016 batch MT-NLG-530B A100 16 tp16 fp16 B=64 P=60 G=20 s=3.383
""",
    ),
    Family(
        name="trtllm-2024",
        engine="TensorRT-LLM (2024)",
        kv="fp16",
        url="https://github.com/hahnyuan/LLM-Viewer/issues/4",
        source="TensorRT-LLM's documentation of early 2024, as quoted in hahnyuan/LLM-Viewer, issue 4",
        rows="""
0323 batch   LLaMA_7B A100 1 tp1 fp16 B=256 P=128  G=128  tok=5353
0326 batch   LLaMA_7B A100 1 tp1 fp16 B=16  P=2048 G=2048 tok=613
0327 prefill LLaMA_7B A100 1 tp1 fp16 B=1   P=128  s=0.0161
""",
    ),
    Family(
        name="vllm-tpu",
        engine="vLLM on TPU",
        kv="bf16",
        url="https://github.com/AI-Hypercomputer/tpu-recipes",
        source="tpu-recipes, inference/ at c8cfe2f: trillium/vLLM/Llama3.x, ironwood/vLLM/Qwen3-Embedding-8B",
        note="16-bit types are the engine's default, not said. Four devices of TPU7x are two chips.",
        rows="""
0329 serving LLaMA-3_70B TPU_v6e 8 tp8 bf16 P=1000 G=1000 B=64 toks=512 tok=2494.8
0339 prefill Qwen3_8B    TPU7x   2 tp2 bf16 P=16384 B=1 tok=84038.27
""",
    ),
    Family(
        name="vllm-tpu-fp8",
        engine="vLLM on TPU",
        kv="fp8",
        url="https://github.com/AI-Hypercomputer/tpu-recipes",
        source="tpu-recipes, inference/ironwood/vLLM/Qwen3-32B/README.md at c8cfe2f",
        note="Lengths are random from 0.8 of the longest up: means. 135 sequences where 9,216 tokens fit.",
        rows="""
0331 serving Qwen3_32B TPU7x 1 tp1 fp8 P=922 G=922 B=320 requests=320 toks=4096 tok=6556.72
0332 serving Qwen3_32B TPU7x 1 tp1 fp8 P=922 G=7373 B=320 requests=320 seqs=135 toks=4096 tok=3959.56
0333 serving Qwen3_32B TPU7x 1 tp1 fp8 P=7373 G=922 B=320 requests=320 seqs=135 toks=4096 tok=1382.18
""",
    ),
)  # fmt: skip
