"""The efficiencies of chips in training, as `fit` found them: tools/calibrate_training.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each source, the chips that it touches, without it
(no line where fewer than three are left). `ONE_KERNEL`: the mean and the 90th percentile of the errors of
dense runs, and of those with experts, if all had the same kind of attention. `DOUBLING`: if a step took that
share longer with each doubling of the chips, how many runs would be within 5 % in their series; the mean
errors with the source left out, dense and with experts; and that of runs kept apart. Chapter: Training.
"""

DATE = "2026-11-21"
ROWS = """
A100 | bf16 | matmul=0.79 early=0.311 unfused=0.282 memory=0.589 domain=0.716 network=0.744 exposed=0.119
  layer_s=2.11e-05
A100 | fp16 | matmul=0.726 unfused=0.238 memory=0.564 domain=0.784 network=0.732 exposed=0.132
  layer_s=2.2e-05
A100 40GB | bf16 | matmul=0.791 early=0.306 memory=0.591 domain=0.756 network=0.743 exposed=0.101
  layer_s=1.96e-05
B200 | bf16 | matmul=0.717 attention=0.598 memory=0.583 domain=0.744 network=0.689 exposed=0.114
  layer_s=2.01e-05 experts=0.441 expert_layer_s=0.00377
B200 | fp8 | matmul=0.713 attention=0.584 memory=0.546 domain=0.74 network=0.745 exposed=0.101
  layer_s=2.01e-05 experts=0.417 expert_layer_s=0.000605
B200 | mxfp8 | matmul=0.717 attention=0.606 memory=0.661 domain=0.761 network=0.818 exposed=0.102
  layer_s=2.01e-05 experts=0.454 expert_layer_s=0.00186
GB200 | bf16 | matmul=0.717 attention=0.603 memory=0.558 domain=0.74 network=0.75 exposed=0.0994
  layer_s=2.01e-05 experts=0.345 expert_layer_s=0.00156
GB200 | fp8 | matmul=0.611 attention=0.574 memory=0.541 domain=0.724 network=0.75 exposed=0.141
  layer_s=1.92e-05 experts=0.491 expert_layer_s=0.000872
GB200 | mxfp8 | matmul=0.605 attention=0.606 memory=0.504 domain=0.801 network=0.753 exposed=0.102
  layer_s=2.1e-05 experts=0.597 expert_layer_s=0.000218
GB200 | nvfp4 | matmul=0.634 attention=0.542 memory=0.357 domain=0.745 network=0.75 exposed=0.109
  layer_s=2.19e-05
GB300 | bf16 | matmul=0.72 attention=0.604 memory=0.574 domain=0.745 network=0.75 exposed=0.0997
  layer_s=2.01e-05 experts=0.409 expert_layer_s=0.00117
GB300 | fp8 | matmul=0.716 attention=0.634 memory=0.665 domain=0.744 network=0.75 exposed=0.111
  layer_s=2.02e-05
GB300 | mxfp8 | matmul=0.716 attention=0.67 memory=0.668 domain=0.801 network=0.753 exposed=0.115
  layer_s=2.1e-05 experts=0.628 expert_layer_s=0.00025
GB300 | nvfp4 | matmul=0.705 attention=0.57 memory=0.51 domain=0.747 network=0.75 exposed=0.105
  layer_s=1.99e-05
H100 | bf16 | matmul=0.679 attention=0.712 early=0.186 memory=0.76 domain=0.718 network=0.816
  exposed=0.147 layer_s=0.000233 experts=0.539 expert_layer_s=0.00189
H100 | fp8 | matmul=0.696 attention=0.62 early=0.185 memory=0.844 domain=0.741 network=0.821
  exposed=0.106 layer_s=0.000346 experts=0.489 expert_layer_s=0.00107
H100 96GB, 500 W | bf16 | matmul=0.593 attention=0.555 memory=0.383 domain=0.798 network=0.749
  exposed=0.104 layer_s=2.05e-05
H100 96GB, 500 W | fp8 | matmul=0.682 attention=0.308 memory=0.544 domain=0.829 network=0.751
  exposed=0.0965 layer_s=2.03e-05
TPU v5e | bf16 | matmul=0.911 attention=0.598 memory=0.625 torus=0.812 dcn=0.675 exposed=0.0827
  layer_s=1.95e-05
TPU v5p | bf16 | matmul=0.896 attention=0.594 memory=0.571 torus=0.77 dcn=0.694 exposed=0.191
  layer_s=2.06e-05 experts=0.519 expert_layer_s=0.000549
TPU v6e | bf16 | matmul=0.74 attention=0.638 memory=0.694 torus=0.792 dcn=0.7 exposed=0.0811
  layer_s=2e-05
TPU7x | bf16 | matmul=0.813 attention=0.586 memory=0.553 torus=0.796 dcn=0.7 exposed=0.105 layer_s=2e-05
  experts=0.419 expert_layer_s=0.000513
TPU7x | fp8 | matmul=0.893 attention=0.599 memory=0.587 torus=0.795 dcn=0.7 exposed=0.108 layer_s=2e-05
  experts=0.408 expert_layer_s=0.000532
"""
LEFT_OUT = {
    "automodel": """
H100 | bf16 | matmul=0.679 attention=0.652 early=0.189 memory=0.699 domain=0.676 network=0.791
  exposed=0.221 layer_s=0.000102 experts=0.423 expert_layer_s=0.00183
""",
    "dgxc-gpt3-175b": """
H100 | bf16 | matmul=0.681 attention=0.701 early=0.187 memory=0.747 domain=0.716 network=0.815
  exposed=0.152 layer_s=0.000216 experts=0.54 expert_layer_s=0.00189
H100 | fp8 | matmul=0.698 attention=0.551 early=0.188 memory=0.726 domain=0.738 network=0.829
  exposed=0.094 layer_s=0.000137 experts=0.496 expert_layer_s=0.00113
""",
    "dgxc-llama3-70b": """
H100 | bf16 | matmul=0.68 attention=0.71 early=0.186 memory=0.751 domain=0.718 network=0.808
  exposed=0.145 layer_s=0.000215 experts=0.54 expert_layer_s=0.0019
H100 | fp8 | matmul=0.663 attention=0.601 early=0.187 memory=0.806 domain=0.737 network=0.831
  exposed=0.0923 layer_s=0.000197 experts=0.491 expert_layer_s=0.00117
""",
    "dgxc-llama3-8b": """
H100 | bf16 | matmul=0.678 attention=0.666 early=0.187 memory=0.759 domain=0.73 network=0.821
  exposed=0.116 layer_s=0.000262 experts=0.538 expert_layer_s=0.00185
H100 | fp8 | matmul=0.697 attention=0.617 early=0.185 memory=0.843 domain=0.741 network=0.821
  exposed=0.104 layer_s=0.00035 experts=0.489 expert_layer_s=0.00107
""",
    "dgxc-maxtext-70b": """
H100 | bf16 | matmul=0.637 attention=0.666 early=0.191 memory=0.79 domain=0.729 network=0.793
  exposed=0.23 layer_s=2.54e-05 experts=0.546 expert_layer_s=0.00204
H100 | fp8 | matmul=0.77 attention=0.623 early=0.183 memory=0.843 domain=0.715 network=0.825 exposed=0.11
  layer_s=0.000508 experts=0.489 expert_layer_s=0.000933
""",
    "dgxc-nemotron-340b": """
H100 | bf16 | matmul=0.664 attention=0.669 early=0.189 memory=0.737 domain=0.689 network=0.787
  exposed=0.223 layer_s=7.82e-05 experts=0.546 expert_layer_s=0.00198
H100 | fp8 | matmul=0.691 attention=0.627 early=0.185 memory=0.853 domain=0.737 network=0.746
  exposed=0.124 layer_s=0.000338 experts=0.492 expert_layer_s=0.00105
""",
    "korthikanti22": """
A100 | fp16 | matmul=0.656 unfused=0.266 memory=0.59 domain=0.763 network=0.761 exposed=0.101
  layer_s=1.98e-05
""",
    "maxtext-v5e": """
""",
    "maxtext-v5p": """
""",
    "mbridge": """
H100 | bf16 | matmul=0.672 attention=0.65 early=0.189 memory=0.709 domain=0.689 network=0.83
  exposed=0.261 layer_s=5.77e-05 experts=0.629 expert_layer_s=0.000344
H100 | fp8 | matmul=0.672 attention=0.611 early=0.187 memory=0.827 domain=0.758 network=0.785
  exposed=0.119 layer_s=0.000282
""",
    "megatron-core-h100": """
H100 | bf16 | matmul=0.656 attention=0.66 early=0.188 memory=0.737 domain=0.716 network=0.829
  exposed=0.149 layer_s=3.2e-05 experts=0.544 expert_layer_s=0.00203
""",
    "megatron-sc21": """
A100 | fp16 | matmul=0.746 unfused=0.291 memory=0.566 domain=0.734 network=0.749 exposed=0.101
  layer_s=2.06e-05
""",
    "mpt": """
H100 | bf16 | matmul=0.72 attention=0.678 memory=0.698 domain=0.734 network=0.792 exposed=0.109
  layer_s=0.000334 experts=0.537 expert_layer_s=0.00179
H100 | fp8 | matmul=0.712 attention=0.662 memory=0.727 domain=0.741 network=0.823 exposed=0.0984
  layer_s=0.000311 experts=0.493 expert_layer_s=0.00103
""",
    "mt-nlg": """
A100 | bf16 | matmul=0.8 early=0.311 memory=0.577 domain=0.739 network=0.75 exposed=0.119
  layer_s=2.09e-05
""",
    "nemo-24.07": """
H100 | fp8 | matmul=0.699 attention=0.607 early=0.185 memory=0.822 domain=0.739 network=0.822
  exposed=0.0996 layer_s=0.000313 experts=0.49 expert_layer_s=0.00108
""",
    "torchtitan": """
""",
    "tpu-recipes-ironwood": """
""",
    "tpu-recipes-tpuv5p": """
TPU v5p | bf16 | matmul=0.874 attention=0.598 memory=0.581 torus=0.778 dcn=0.695 exposed=0.146
  layer_s=2.09e-05
""",
    "tpu-recipes-tpuv6e": """
""",
}
ONE_KERNEL = ((0.0642, 0.1317), (0.1667, 0.4037))
DOUBLING = (0.008, 217, 0.0879, 0.2592, 0.0938)
