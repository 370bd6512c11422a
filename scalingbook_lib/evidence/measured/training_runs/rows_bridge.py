"""Published runs of Megatron-Bridge on GPUs, release by release.

Chapter: Training.
"""

from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES = (
    Family(
        name="mbridge-26.08",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary.md at 067f987, release 26.08",
        coarse=True,
        rows="""
01 DeepSeek-V3   GB300 256 mxfp8 4096 4096 1 fsdp128.pp2.v8.ep32.zero1 - tok=6288 tf=1635 by=bridge+MTP
01 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=4912 tf=1276 by=bridge+MTP
01 gpt-oss_120B  GB300 64  mxfp8 4096 1280 4 fsdp64.ep16.zero1 - tok=33024 tf=1077
01 gpt-oss_120B  GB200 64  mxfp8 4096 1280 4 fsdp64.ep64.zero1 - tok=28672 tf=934
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=44544 tf=1029
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=39936 tf=923
""",
    ),
    Family(
        name="mbridge-26.06.01",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.06.01",
        coarse=True,
        rows="""
01 DeepSeek-V3   GB300 256 mxfp8 4096 4096 1 fsdp128.pp2.v8.ep32.zero1 - tok=6304 tf=1640 by=bridge+MTP
01 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=4928 tf=1280 by=bridge+MTP
01 gpt-oss_120B  GB300 64  mxfp8 4096 1280 4 fsdp64.ep16.zero1 - tok=20288 tf=661
01 gpt-oss_120B  GB200 64  mxfp8 4096 1280 4 fsdp64.ep64.zero1 - tok=18304 tf=597
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=44544 tf=1029
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=40960 tf=937
""",
    ),
    Family(
        name="mbridge-26.06",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.06",
        rows="""
02 DeepSeek-V3   GB300 256 mxfp8 4096 4096  1 fsdp128.pp2.v8.ep32.zero1 - tok=6338 tf=1648 by=bridge+MTP
03 DeepSeek-V3   GB300 256 mxfp8 4096 15360 1 fsdp128.pp2.v8.ep32.zero1 - tok=6422 tf=1670 by=bridge+MTP
02 DeepSeek-V3   GB200 256 mxfp8 4096 4096  1 fsdp64.pp4.v4.ep64.zero1 - tok=4969 tf=1292 by=bridge+MTP
01 gpt-oss_120B  GB300 64  mxfp8 4096 1280  4 fsdp64.ep16.zero1 - tok=33166 tf=1081
01 gpt-oss_120B  GB200 64  mxfp8 4096 1280  4 fsdp64.ep64.zero1 - tok=28947 tf=943
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512   8 fsdp8.ep8.zero1 - tok=45275 tf=1041
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512   4 fsdp8.ep8.zero1 - tok=40706 tf=936
01 Qwen3_30B-A3B H100  16  fp8   4096 1024  1 fsdp16.ep16.zero1 - tok=8826 tf=203
01 LLaMA-3_70B   GB300 32  fp8   4096 32    1 fsdp16.pp2.v20.zero1 - tok=4819 tf=2083 as=fine-tuning
01 LLaMA-3_70B   GB300 32  mxfp8 4096 32    1 fsdp16.pp2.v20.zero1 - tok=4312 tf=1877 as=fine-tuning
01 LLaMA-3_70B   GB200 32  fp8   4096 32    1 fsdp4.pp8.v10.zero1 - tok=3864 tf=1671 as=fine-tuning
01 LLaMA-3_70B   GB200 32  mxfp8 4096 32    1 fsdp4.pp8.v10.zero1 - tok=3593 tf=1553 as=fine-tuning
01 LLaMA-3_70B   H100  32  fp8   4096 32    1 fsdp2.tp4.pp4.v5.zero1 - tok=1638 tf=710 as=fine-tuning
""",
    ),
    Family(
        name="mbridge-26.04.01",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.04.01",
        coarse=True,
        rows="""
01 LLaMA-3_70B   GB300 64  fp8   8192 256  2 fsdp64 - tok=5248 tf=2348
01 LLaMA-3_70B   GB300 64  mxfp8 8192 256  1 fsdp16.pp4.v5.zero1 - tok=4864 tf=2186
01 LLaMA-3_70B   GB300 64  nvfp4 8192 256  1 fsdp16.pp4.v5.zero1 - tok=7296 tf=3253
01 LLaMA-3_70B   GB200 64  fp8   8192 256  2 fsdp64 - tok=4224 tf=1892
01 LLaMA-3_70B   GB200 64  mxfp8 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=3712 tf=1664
01 LLaMA-3_70B   GB200 64  nvfp4 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=4864 tf=2202
01 LLaMA-3_70B   H100  64  fp8   8192 256  1 fsdp2.tp4.pp8.v5.zero1 - tok=1664 tf=731
02 DeepSeek-V3   GB300 256 mxfp8 4096 4096 2 fsdp128.pp2.v8.ep32.zero1 - tok=4992 tf=1298 by=bridge+MTP
02 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=4256 tf=1106 by=bridge+MTP
01 DeepSeek-V3   B200  256 mxfp8 4096 4096 1 fsdp32.pp8.v2.ep32.zero1 - tok=3328 tf=864 by=bridge+MTP
01 gpt-oss_120B  GB300 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=19200 tf=523 by=bridge_ungated
01 gpt-oss_120B  GB200 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=16640 tf=452 by=bridge_ungated
01 gpt-oss_120B  B200  64  bf16  4096 1280 4 fsdp64.ep8.zero1 - tok=13568 tf=369 by=bridge_ungated
01 gpt-oss_120B  H100  64  bf16  4096 1280 1 fsdp16.pp4.ep8.zero1 - tok=5824 tf=158 by=bridge_ungated
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=31744 tf=729
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26112 tf=599
01 Qwen3_30B-A3B B200  8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=27136 tf=619
01 Qwen3_30B-A3B H100  16  fp8   4096 1024 1 fsdp16.ep16.zero1 - tok=8960 tf=206
""",
    ),
    Family(
        name="mbridge-26.04",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.04",
        rows="""
01 LLaMA-3_70B   GB300 64  nvfp4 8192 256  1 fsdp16.pp4.v5.zero1 - tok=7397 tf=3321
01 LLaMA-3_70B   GB200 64  nvfp4 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=4898 tf=2201
01 LLaMA-3_70B   GB300 64  mxfp8 8192 256  1 fsdp16.pp4.v5.zero1 - tok=4742 tf=2131
01 LLaMA-3_70B   GB200 64  mxfp8 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=3828 tf=1721
01 LLaMA-3_70B   GB300 64  fp8   8192 256  2 fsdp64 - tok=5243 tf=2355
01 LLaMA-3_70B   GB200 64  fp8   8192 256  2 fsdp64 - tok=4143 tf=1861
01 LLaMA-3_70B   H100  64  fp8   8192 256  1 fsdp2.tp4.pp8.v5.zero1 - tok=1633 tf=734
02 DeepSeek-V3   GB300 256 mxfp8 4096 4096 2 fsdp128.pp2.v8.ep32.zero1 - tok=4965 tf=1290 by=bridge+MTP
02 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=4193 tf=1090 by=bridge+MTP
01 DeepSeek-V3   B200  256 mxfp8 4096 4096 1 fsdp16.pp16.ep8.zero1 - tok=2815 tf=732 by=bridge+MTP
01 gpt-oss_120B  GB300 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=19275 tf=524 by=bridge_ungated
01 gpt-oss_120B  GB200 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=15938 tf=433 by=bridge_ungated
01 gpt-oss_120B  B200  64  bf16  4096 1280 4 fsdp64.ep8.zero1 - tok=13045 tf=355 by=bridge_ungated
01 gpt-oss_120B  H100  64  bf16  4096 1280 1 fsdp16.pp4.ep8.zero1 - tok=5810 tf=158 by=bridge_ungated
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=31470 tf=724
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26032 tf=599
01 Qwen3_30B-A3B B200  8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26859 tf=618
01 Qwen3_30B-A3B H100  16  fp8   4096 1024 1 fsdp16.ep16.zero1 - tok=8901 tf=205
""",
    ),
    Family(
        name="mbridge-26.02.01",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.02.01",
        rows="""
01 LLaMA-3_70B   GB300 64  nvfp4 8192 256  2 fsdp64.zero1 - tok=7002 tf=3147
01 LLaMA-3_70B   GB200 64  nvfp4 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=4557 tf=2047
01 LLaMA-3_70B   GB300 64  mxfp8 8192 256  2 fsdp16.pp4.zero1 - tok=4798 tf=2157
01 LLaMA-3_70B   GB200 64  mxfp8 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=3837 tf=1724
01 LLaMA-3_70B   GB300 64  fp8   8192 256  2 fsdp64 - tok=5243 tf=2353
01 LLaMA-3_70B   GB200 64  fp8   8192 256  2 fsdp64 - tok=4357 tf=1956
01 LLaMA-3_70B   H100  64  fp8   8192 256  1 fsdp2.tp4.pp8.v5.zero1 - tok=1639 tf=736
02 DeepSeek-V3   GB300 256 mxfp8 4096 4096 2 fsdp128.pp2.v8.ep32.zero1 - tok=4691 tf=1219 by=bridge+MTP
02 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=4021 tf=1046 by=bridge+MTP
01 DeepSeek-V3   B200  256 mxfp8 4096 4096 1 fsdp16.pp16.ep8.zero1 - tok=2790 tf=725 by=bridge+MTP
01 gpt-oss_120B  GB300 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=19366 tf=526 by=bridge_ungated
01 gpt-oss_120B  GB200 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=15754 tf=428 by=bridge_ungated
01 gpt-oss_120B  B200  64  bf16  4096 1280 4 fsdp64.ep8.zero1 - tok=13722 tf=373 by=bridge_ungated
01 gpt-oss_120B  H100  64  bf16  4096 1280 1 fsdp16.pp4.ep8.zero1 - tok=5984 tf=163 by=bridge_ungated
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=30411 tf=700
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26373 tf=607
01 Qwen3_30B-A3B B200  8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26695 tf=614
01 Qwen3_30B-A3B H100  16  fp8   4096 1024 1 fsdp8.pp2.v12.ep8.zero1 - tok=9058 tf=208
""",
    ),
    Family(
        name="mbridge-26.02",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 26.02",
        rows="""
01 LLaMA-3_70B   GB300 64  nvfp4 8192 256  1 fsdp16.pp4.v5.zero1 - tok=6798 tf=3056
01 LLaMA-3_70B   GB200 64  nvfp4 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=4458 tf=2004
01 LLaMA-3_70B   GB300 64  mxfp8 8192 256  1 fsdp16.pp4.v5.zero1 - tok=4596 tf=2064
01 LLaMA-3_70B   GB200 64  mxfp8 8192 256  1 fsdp8.tp2.pp4.v5.zero1 - tok=3613 tf=1623
01 LLaMA-3_70B   GB300 64  fp8   8192 256  2 fsdp64 - tok=5003 tf=2248
01 LLaMA-3_70B   GB200 64  fp8   8192 256  2 fsdp64 - tok=4040 tf=1815
01 LLaMA-3_70B   H100  64  fp8   8192 256  1 fsdp2.tp4.pp8.v5.zero1 - tok=1621 tf=728
02 DeepSeek-V3   GB300 256 mxfp8 4096 4096 2 fsdp128.pp2.v8.ep32.zero1 - tok=4612 tf=1199 by=bridge+MTP
02 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=3955 tf=1028 by=bridge+MTP
01 DeepSeek-V3   B200  256 mxfp8 4096 4096 1 fsdp16.pp16.ep8.zero1 - tok=2689 tf=699 by=bridge+MTP
01 gpt-oss_120B  GB300 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=19412 tf=527 by=bridge_ungated
01 gpt-oss_120B  GB200 64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=15784 tf=428 by=bridge_ungated
01 gpt-oss_120B  B200  64  bf16  4096 1280 4 fsdp64.ep64.zero1 - tok=8047 tf=219 by=bridge_ungated
01 gpt-oss_120B  H100  64  bf16  4096 1280 1 fsdp16.pp4.ep8.zero1 - tok=5993 tf=163 by=bridge_ungated
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  8 fsdp8.ep8.zero1 - tok=30376 tf=699
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=26084 tf=600
01 Qwen3_30B-A3B B200  8   mxfp8 4096 512  1 fsdp8.ep8.zero1 - tok=9691 tf=223
01 Qwen3_30B-A3B H100  16  fp8   4096 1024 1 fsdp8.pp2.v12.ep8.zero1 - tok=5113 tf=118
""",
    ),
    Family(
        name="mbridge-25.11",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 25.11",
        rows="""
01 LLaMA-3_8B    GB300 8   fp8   8192 128  2 fsdp8.zero1 - tok=37556 tf=1933
01 LLaMA-3_70B   GB300 64  fp8   8192 256  2 fsdp64 - tok=4520 tf=2030
01 DeepSeek-V3   GB300 256 bf16  4096 4096 1 fsdp128.pp2.v4.ep32.zero1 - tok=3848 tf=961
01 DeepSeek-V3   GB300 256 mxfp8 4096 4096 1 fsdp128.pp2.v4.ep32.zero1 - tok=4357 tf=1088
01 gpt-oss_120B  GB300 64  bf16  8192 1280 2 fsdp64.ep64.zero1 - tok=18347 tf=565 by=bridge_ungated
01 Qwen3_30B-A3B GB300 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=28934 tf=666
01 LLaMA-3_8B    GB200 8   fp8   8192 128  2 fsdp8.zero1 - tok=31508 tf=1622
01 LLaMA-3_70B   GB200 64  fp8   8192 256  2 fsdp64 - tok=4312 tf=1937
01 DeepSeek-V3   GB200 256 bf16  4096 4096 1 fsdp64.pp4.v4.ep64.zero1 - tok=3139 tf=782
01 DeepSeek-V3   GB200 256 mxfp8 4096 4096 1 fsdp32.pp8.v4.ep32.zero1 - tok=4018 tf=1003
01 gpt-oss_120B  GB200 64  bf16  8192 1280 1 fsdp64.ep64.zero1 - tok=15876 tf=488 by=bridge_ungated
01 Qwen3_30B-A3B GB200 8   mxfp8 4096 512  4 fsdp8.ep8.zero1 - tok=23766 tf=547
01 LLaMA-3_8B    B200  8   fp8   8192 128  2 fsdp8.zero1 - tok=30624 tf=1576
01 DeepSeek-V3   B200  256 mxfp8 4096 2048 1 fsdp16.pp16.ep8.zero1 - tok=2139 tf=557 by=bridge+MTP
01 gpt-oss_120B  B200  64  bf16  4096 512  4 fsdp64.ep8.zero1 - tok=8213 tf=223 by=bridge_ungated
01 Qwen3_30B-A3B B200  8   mxfp8 4096 512  1 fsdp8.ep8.zero1 - tok=9299 tf=214
01 LLaMA-3_8B    H100  8   fp8   8192 128  1 fsdp8 - tok=14451 tf=744
01 LLaMA-3_70B   H100  64  fp8   8192 128  1 fsdp2.tp4.pp8.v5.zero1 - tok=1602 tf=719
01 gpt-oss_120B  H100  64  bf16  4096 512  4 fsdp16.pp4.ep8.zero1 - tok=5630 tf=153 by=bridge_ungated
01 Qwen3_30B-A3B H100  16  fp8   4096 512  2 fsdp8.pp2.v24.ep8.zero1 - tok=5275 tf=121
""",
    ),
    Family(
        name="mbridge-25.09",
        convention="bridge",
        url="NVIDIA-NeMo/Megatron-Bridge",
        source="Megatron-Bridge, docs/performance-summary-archive.md at 067f987, release 25.09",
        rows="""
01 LLaMA-3_8B    GB200 8    fp8 8192 128  2 fsdp8.zero1 - tok=31357 tf=1614
01 LLaMA-3_70B   GB200 64   fp8 8192 128  2 fsdp64 - tok=3986 tf=1791
01 DeepSeek-V3   GB200 256  fp8 4096 2048 1 fsdp64.pp4.v4.ep64.zero1 - tok=3454 tf=899 by=bridge+MTP as=drops
02 Qwen3_30B-A3B GB200 8    fp8 4096 512  4 fsdp8.ep8.zero1 - tok=22775 tf=524 as=drops
01 LLaMA-3_8B    B200  8    fp8 8192 128  2 fsdp8.zero1 - tok=29994 tf=1544
01 DeepSeek-V3   B200  256  fp8 4096 2048 1 fsdp16.pp16.ep8.zero1 - tok=2265 tf=589 by=bridge+MTP as=drops
02 Qwen3_30B-A3B B200  8    fp8 4096 512  1 fsdp8.ep8.zero1 - tok=18066 tf=416 as=drops
01 LLaMA-3_8B    H100  8    fp8 8192 128  1 fsdp8 - tok=14079 tf=725
01 LLaMA-3_70B   H100  64   fp8 8192 128  1 fsdp2.tp4.pp8.v5.zero1 - tok=1619 tf=727
02 DeepSeek-V3   H100  1024 fp8 4096 8192 1 fsdp64.tp2.pp8.v4.ep64.zero1 - tok=1297 tf=338 by=bridge+MTP
01 Qwen3_30B-A3B H100  16   fp8 4096 512  2 fsdp8.pp2.v24.ep8.zero1 - tok=10494 tf=241 as=drops
""",
    ),
)
