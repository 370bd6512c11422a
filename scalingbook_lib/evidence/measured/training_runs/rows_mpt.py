"""Published runs of llm-foundry: MPT on GPUs, over the chips, the sequence and the batch.

Chapter: Training.
"""

from scalingbook_lib.evidence.measured.training_runs.table import Family

FAMILIES = (
    Family(
        name="mpt",
        convention="6P",
        url="mosaicml/llm-foundry",
        source="llm-foundry, scripts/train/benchmarking/README.md at 8c8dd48",
        peaks=(("H100 bf16", 989.4), ("H100 fp8", 1978.8)),
        rows="""
04 MPT-7b   H100     512 bf16 2048  3072 6   fsdp512       none tok=9670 mfu=0.422 as=large_scale
04 MPT-7b   H100     256 bf16 2048  1536 6   fsdp256       none tok=10119 mfu=0.4415 as=large_scale
04 MPT-7b   H100     128 bf16 2048  768  6   fsdp128       none tok=10475 mfu=0.4571 as=large_scale
05 MPT-3b   H100     512 bf16 2048  4096 8   fsdp512.zero2 none tok=21664 mfu=0.3924 as=large_scale
05 MPT-3b   H100     256 bf16 2048  2048 8   fsdp256.zero2 none tok=22772 mfu=0.4125 as=large_scale
05 MPT-3b   H100     128 bf16 2048  1024 8   fsdp128.zero2 none tok=23422 mfu=0.4243 as=large_scale
06 MPT-1b   H100     512 bf16 2048  6144 12  fsdp512.zero2 none tok=39837 mfu=0.3665 as=large_scale
06 MPT-1b   H100     256 bf16 2048  3072 12  fsdp256.zero2 none tok=42555 mfu=0.3915 as=large_scale
06 MPT-1b   H100     128 bf16 2048  1536 12  fsdp128.zero2 none tok=44123 mfu=0.406 as=large_scale
01 MPT-30b  H100     8   bf16 8192  168  1   fsdp8         full tok=1384 mfu=0.2992
02 MPT-30b  H100     8   bf16 4096  168  1   fsdp8         full tok=1802 mfu=0.3586
02 MPT-30b  H100     32  bf16 2048  1344 14  fsdp32        full tok=2308 mfu=0.4392
01 MPT-30b  H100     16  bf16 2048  480  10  fsdp16        full tok=2263 mfu=0.4307
03 MPT-30b  H100     8   bf16 2048  504  3   fsdp8         full tok=2002 mfu=0.3811
04 MPT-30b  H100     8   bf16 1024  1008 6   fsdp8         full tok=2084 mfu=0.3876
12 MPT-7b   H100     8   bf16 8192  128  8   fsdp8         full tok=6935 mfu=0.3714
13 MPT-7b   H100     8   bf16 4096  256  16  fsdp8         full tok=8611 mfu=0.4042
14 MPT-7b   H100     8   bf16 2048  48   6   fsdp8         none tok=10643 mfu=0.4644
15 MPT-7b   H100     8   bf16 1024  1024 64  fsdp8         full tok=10203 mfu=0.4283
16 MPT-3b   H100     8   bf16 65536 16   1   fsdp8         full tok=3262 mfu=0.2681
17 MPT-3b   H100     8   bf16 32768 144  3   fsdp8         full tok=5873 mfu=0.2884
18 MPT-3b   H100     8   bf16 16384 48   1   fsdp8         none tok=11152 mfu=0.3634
19 MPT-3b   H100     8   bf16 8192  144  3   fsdp8         none tok=16578 mfu=0.4031
20 MPT-3b   H100     8   bf16 4096  240  5   fsdp8         none tok=20964 mfu=0.4231
03 MPT-3b   H100     64  bf16 2048  1152 6   fsdp64        none tok=22525 mfu=0.408
04 MPT-3b   H100     32  bf16 2048  576  6   fsdp32        none tok=23021 mfu=0.417
03 MPT-3b   H100     16  bf16 2048  480  10  fsdp16        none tok=24142 mfu=0.4373
21 MPT-3b   H100     8   bf16 1024  960  20  fsdp8         none tok=27046 mfu=0.462
22 MPT-3b   H100     8   bf16 512   1920 40  fsdp8         none tok=27965 mfu=0.4632
26 MPT-1b   H100     8   bf16 8192  96   3   fsdp8         none tok=29157 mfu=0.3773
27 MPT-1b   H100     8   bf16 4096  224  7   fsdp8         none tok=38535 mfu=0.4026
04 MPT-1b   H100     64  bf16 2048  1280 20  fsdp64        none tok=44402 mfu=0.4085
05 MPT-1b   H100     32  bf16 2048  640  20  fsdp32        none tok=45130 mfu=0.4152
04 MPT-1b   H100     16  bf16 2048  320  20  fsdp16        none tok=46037 mfu=0.4236
28 MPT-1b   H100     8   bf16 2048  112  14  fsdp8         none tok=45455 mfu=0.4182
29 MPT-1b   H100     8   bf16 1024  576  18  fsdp8         none tok=48910 mfu=0.4195
30 MPT-1b   H100     8   bf16 512   1792 56  fsdp8         none tok=52275 mfu=0.4321
01 MPT-3b   H100     8   fp8  32768 144  3   fsdp8         full tok=5856 mfu=0.1438
02 MPT-3b   H100     8   fp8  8192  144  3   fsdp8         none tok=19146 mfu=0.2328
03 MPT-3b   H100     8   fp8  2048  480  10  fsdp8         none tok=30586 mfu=0.277
04 MPT-3b   H100     8   fp8  512   1920 40  fsdp8         none tok=36527 mfu=0.3025
06 MPT-1b   H100     8   fp8  8192  64   2   fsdp8         none tok=32010 mfu=0.2071
07 MPT-1b   H100     8   fp8  512   1792 56  fsdp8         none tok=70315 mfu=0.2906
01 MPT-30b  A100     8   bf16 8192  168  1   fsdp8         full tok=574 mfu=0.3938
02 MPT-30b  A100     8   bf16 4096  168  1   fsdp8         full tok=814 mfu=0.5137
03 MPT-30b  A100     8   bf16 2048  504  3   fsdp8         full tok=916 mfu=0.553
04 MPT-30b  A100     8   bf16 1024  1008 6   fsdp8         full tok=946 mfu=0.5582
05 MPT-30b  A100     8   bf16 512   2016 12  fsdp8         full tok=967 mfu=0.564
15 MPT-7b   A100     8   bf16 8192  128  8   fsdp8         full tok=3206 mfu=0.5447
16 MPT-7b   A100     8   bf16 4096  256  16  fsdp8         full tok=3684 mfu=0.5484
17 MPT-7b   A100     8   bf16 2048  96   6   fsdp8         none tok=4641 mfu=0.6423
18 MPT-7b   A100     8   bf16 1024  1024 64  fsdp8         full tok=4357 mfu=0.5801
19 MPT-3b   A100     8   bf16 65536 16   1   fsdp8         full tok=1767 mfu=0.4605
20 MPT-3b   A100     8   bf16 32768 144  3   fsdp8         full tok=3029 mfu=0.4718
21 MPT-3b   A100     8   bf16 16384 48   1   fsdp8         none tok=5529 mfu=0.5713
22 MPT-3b   A100     8   bf16 8192  144  3   fsdp8         none tok=7695 mfu=0.5934
23 MPT-3b   A100     8   bf16 4096  240  5   fsdp8         none tok=9457 mfu=0.6053
24 MPT-3b   A100     8   bf16 2048  160  10  fsdp8         none tok=10811 mfu=0.6211
25 MPT-3b   A100     8   bf16 1024  960  20  fsdp8         none tok=11580 mfu=0.6273
26 MPT-3b   A100     8   bf16 512   1920 40  fsdp8         none tok=12127 mfu=0.6371
30 MPT-1b   A100     8   bf16 8192  96   3   fsdp8         none tok=13814 mfu=0.5669
31 MPT-1b   A100     8   bf16 4096  224  7   fsdp8         none tok=17807 mfu=0.59
32 MPT-1b   A100     8   bf16 2048  448  14  fsdp8         none tok=20513 mfu=0.5986
33 MPT-1b   A100     8   bf16 1024  576  18  fsdp8         none tok=22112 mfu=0.6015
34 MPT-1b   A100     8   bf16 512   1792 56  fsdp8         none tok=23148 mfu=0.6068
43 MPT-350m A100     8   bf16 65536 16   1   fsdp8         none tok=7524 mfu=0.527
44 MPT-350m A100     8   bf16 32768 32   2   fsdp8         none tok=13652 mfu=0.5246
45 MPT-350m A100     8   bf16 16384 64   4   fsdp8         none tok=23559 mfu=0.5328
46 MPT-350m A100     8   bf16 8192  128  8   fsdp8         none tok=36569 mfu=0.538
47 MPT-350m A100     8   bf16 4096  256  16  fsdp8         none tok=49555 mfu=0.5331
48 MPT-350m A100     8   bf16 2048  512  32  fsdp8         none tok=58782 mfu=0.5162
49 MPT-350m A100     8   bf16 1024  1024 64  fsdp8         none tok=64813 mfu=0.5051
50 MPT-350m A100     8   bf16 512   2048 128 fsdp8         none tok=69330 mfu=0.5061
51 MPT-125m A100     8   bf16 65536 16   1   fsdp8         none tok=20368 mfu=0.5413
52 MPT-125m A100     8   bf16 32768 32   2   fsdp8         none tok=36407 mfu=0.5271
53 MPT-125m A100     8   bf16 16384 64   4   fsdp8         none tok=60040 mfu=0.5061
54 MPT-125m A100     8   bf16 8192  128  8   fsdp8         none tok=90392 mfu=0.4885
55 MPT-125m A100     8   bf16 4096  256  16  fsdp8         none tok=118396 mfu=0.4608
56 MPT-125m A100     8   bf16 2048  640  40  fsdp8         none tok=142830 mfu=0.4479
57 MPT-125m A100     8   bf16 2048  512  32  fsdp8         none tok=141737 mfu=0.4445
58 MPT-125m A100     8   bf16 1024  1024 64  fsdp8         none tok=156468 mfu=0.4315
59 MPT-125m A100     8   bf16 512   2048 128 fsdp8         none tok=165681 mfu=0.4256
01 MPT-30b  A100-40G 32  bf16 2048  128  4   fsdp32        full tok=857 mfu=0.5174
07 MPT-7b   A100-40G 8   bf16 8192  96   3   fsdp8         full tok=2887 mfu=0.4904
08 MPT-7b   A100-40G 8   bf16 4096  192  6   fsdp8         full tok=3366 mfu=0.5011
04 MPT-7b   A100-40G 128 bf16 2048  2304 18  fsdp128       full tok=3623 mfu=0.5014
03 MPT-7b   A100-40G 64  bf16 2048  1152 18  fsdp64        full tok=3665 mfu=0.5073
03 MPT-7b   A100-40G 32  bf16 2048  576  18  fsdp32        full tok=3725 mfu=0.5155
02 MPT-7b   A100-40G 16  bf16 2048  256  16  fsdp16        full tok=3645 mfu=0.5044
09 MPT-7b   A100-40G 8   bf16 2048  384  12  fsdp8         full tok=3679 mfu=0.5092
10 MPT-7b   A100-40G 8   bf16 1024  768  24  fsdp8         full tok=3854 mfu=0.5131
11 MPT-7b   A100-40G 8   bf16 512   1536 48  fsdp8         full tok=3895 mfu=0.5085
12 MPT-3b   A100-40G 8   bf16 32768 32   1   fsdp8         full tok=2955 mfu=0.4603
13 MPT-3b   A100-40G 8   bf16 16384 128  2   fsdp8         full tok=4465 mfu=0.4614
14 MPT-3b   A100-40G 8   bf16 8192  64   1   fsdp8         none tok=7149 mfu=0.5513
15 MPT-3b   A100-40G 8   bf16 4096  128  2   fsdp8         none tok=8777 mfu=0.5618
05 MPT-3b   A100-40G 128 bf16 2048  768  6   fsdp128       none tok=9538 mfu=0.548
04 MPT-3b   A100-40G 64  bf16 2048  384  6   fsdp64        none tok=9736 mfu=0.5594
04 MPT-3b   A100-40G 32  bf16 2048  192  6   fsdp32        none tok=9914 mfu=0.5696
03 MPT-3b   A100-40G 16  bf16 2048  80   5   fsdp16        none tok=9750 mfu=0.5602
16 MPT-3b   A100-40G 8   bf16 2048  320  5   fsdp8         none tok=10065 mfu=0.5782
17 MPT-3b   A100-40G 8   bf16 1024  640  10  fsdp8         none tok=10731 mfu=0.5814
18 MPT-3b   A100-40G 8   bf16 512   1280 20  fsdp8         none tok=11324 mfu=0.5949
21 MPT-1b   A100-40G 8   bf16 8192  128  2   fsdp8         none tok=13474 mfu=0.5529
22 MPT-1b   A100-40G 8   bf16 4096  256  4   fsdp8         none tok=16856 mfu=0.5585
06 MPT-1b   A100-40G 128 bf16 2048  1280 10  fsdp128       none tok=18647 mfu=0.5441
05 MPT-1b   A100-40G 64  bf16 2048  640  10  fsdp64        none tok=19001 mfu=0.5544
05 MPT-1b   A100-40G 32  bf16 2048  320  10  fsdp32        none tok=15555 mfu=0.4539
04 MPT-1b   A100-40G 16  bf16 2048  128  8   fsdp16        none tok=19085 mfu=0.5569
23 MPT-1b   A100-40G 8   bf16 2048  512  8   fsdp8         none tok=19271 mfu=0.5623
24 MPT-1b   A100-40G 8   bf16 1024  1024 16  fsdp8         none tok=20959 mfu=0.5702
25 MPT-1b   A100-40G 8   bf16 512   2048 32  fsdp8         none tok=21782 mfu=0.571
33 MPT-350m A100-40G 8   bf16 32768 32   1   fsdp8         none tok=13416 mfu=0.5155
34 MPT-350m A100-40G 8   bf16 16384 64   2   fsdp8         none tok=22896 mfu=0.5178
35 MPT-350m A100-40G 8   bf16 8192  128  4   fsdp8         none tok=34933 mfu=0.5139
36 MPT-350m A100-40G 8   bf16 4096  256  8   fsdp8         none tok=46833 mfu=0.5038
08 MPT-350m A100-40G 128 bf16 2048  2304 18  fsdp128       none tok=51934 mfu=0.4561
07 MPT-350m A100-40G 64  bf16 2048  1152 18  fsdp64        none tok=52689 mfu=0.4627
07 MPT-350m A100-40G 32  bf16 2048  576  18  fsdp32        none tok=53811 mfu=0.4726
06 MPT-350m A100-40G 16  bf16 2048  288  18  fsdp16        none tok=55413 mfu=0.4866
37 MPT-350m A100-40G 8   bf16 2048  512  16  fsdp8         none tok=55995 mfu=0.4917
38 MPT-350m A100-40G 8   bf16 1024  1024 32  fsdp8         none tok=62523 mfu=0.4873
39 MPT-350m A100-40G 8   bf16 512   2048 64  fsdp8         none tok=66284 mfu=0.4839
40 MPT-125m A100-40G 8   bf16 32768 32   1   fsdp8         none tok=32651 mfu=0.4727
41 MPT-125m A100-40G 8   bf16 16384 48   2   fsdp8         none tok=55484 mfu=0.4677
42 MPT-125m A100-40G 8   bf16 8192  120  5   fsdp8         none tok=86858 mfu=0.4694
43 MPT-125m A100-40G 8   bf16 4096  312  13  fsdp8         none tok=115162 mfu=0.4482
09 MPT-125m A100-40G 128 bf16 2048  3328 26  fsdp128       none tok=123936 mfu=0.3886
08 MPT-125m A100-40G 64  bf16 2048  1664 26  fsdp64        none tok=125234 mfu=0.3927
08 MPT-125m A100-40G 32  bf16 2048  832  26  fsdp32        none tok=127122 mfu=0.3986
07 MPT-125m A100-40G 16  bf16 2048  416  26  fsdp16        none tok=130535 mfu=0.4093
44 MPT-125m A100-40G 8   bf16 2048  624  26  fsdp8         none tok=136334 mfu=0.4275
45 MPT-125m A100-40G 8   bf16 1024  1248 52  fsdp8         none tok=148289 mfu=0.4089
46 MPT-125m A100-40G 8   bf16 512   2496 104 fsdp8         none tok=156735 mfu=0.4026
""",
    ),
)
