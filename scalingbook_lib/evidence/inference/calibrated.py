"""The efficiencies of chips in inference, as `fit` found them: calibrate_inference.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each model as an engine ran it, the chips that it
touches, without it (no line where fewer than three runs are left). `NO_HOST`: the mean errors of serving,
dense and with experts, source left out, if the host needed no time. Chapter: Inference.
"""

DATE = "2026-11-21"
ROWS = """
A100 | fp16 | matmul=0.699 attention=0.499 weights=0.855 kv=0.856 pointwise=2e+12 domain=0.575
  network=0.596 ramp=101 layer_s=2.3e-05 collective_s=8.25e-06 network_s=0.000111 fixed_s=0.000597
  sequence_s=1.88e-06 host_s=1e-06
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.824 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.42 ramp=40 layer_s=2.44e-05 collective_s=7.71e-06 fixed_s=0.000606 sequence_s=2e-06
  host_s=1e-06
B200 | fp4 | matmul=0.684 experts=0.313 attention=0.552 weights=0.867 kv=0.853 pointwise=1.8e+12
  domain=0.501 ramp=54.5 layer_s=2.51e-05 expert_layer_s=5.48e-05 collective_s=8.72e-06 fixed_s=0.00602
  sequence_s=1.92e-06 host_s=2.44e-05
GB200 | fp4 | matmul=0.711 experts=0.289 attention=0.543 weights=0.892 kv=0.879 pointwise=1.89e+12
  ramp=47.9 layer_s=1.97e-05 expert_layer_s=0.000113 fixed_s=0.00292 sequence_s=9.96e-06 host_s=3.74e-05
H100 | fp8 | matmul=0.723 experts=0.289 attention=0.532 weights=0.873 kv=0.965 pointwise=2e+12
  domain=0.589 ramp=35.5 layer_s=1.77e-05 expert_layer_s=0.00044 collective_s=8.06e-06 fixed_s=0.00154
  sequence_s=1.78e-06 host_s=2.54e-05
H200 | fp8 | matmul=0.684 experts=0.219 attention=0.48 weights=0.867 kv=0.868 pointwise=1.88e+12
  domain=0.599 ramp=39.1 layer_s=2e-05 expert_layer_s=9.77e-05 collective_s=8.05e-06 fixed_s=0.00324
  sequence_s=1.94e-06 host_s=2.5e-05
RTX PRO 6000 SE | fp4 | matmul=0.71 experts=0.455 attention=0.766 weights=0.858 kv=0.91 pointwise=2e+12
  domain=0.551 ramp=52 layer_s=2.17e-05 expert_layer_s=3.64e-05 collective_s=8.11e-06 fixed_s=0.00205
  sequence_s=2.68e-06 host_s=2.25e-05
TPU v4 | bf16 | matmul=0.823 attention=0.501 weights=0.85 kv=0.871 pointwise=2e+12 torus=0.72
  exposed=0.942 dequantize=0.809 ramp=42.2 layer_s=2.24e-05 collective_s=8.83e-06 fixed_s=0.000522
  sequence_s=1.96e-06 host_s=1e-06
TPU7x | fp8 | matmul=0.694 attention=0.467 weights=0.871 kv=0.843 pointwise=1.38e+12 ramp=45.6
  layer_s=2.18e-05 fixed_s=0.00881 sequence_s=2.24e-06 host_s=2.5e-05
"""
LEFT_OUT = {
    "LLaMA 7B, TensorRT-LLM (2024)": """
""",
    "LLaMA-2 70B, gpt-fast": """
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.839 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.25 ramp=40 layer_s=2.39e-05 collective_s=7.26e-06 fixed_s=0.000684 sequence_s=2e-06
  host_s=1e-06
""",
    "LLaMA-2 7B, gpt-fast": """
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.829 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.43 ramp=40 layer_s=2.32e-05 collective_s=8.5e-06 fixed_s=0.000544 sequence_s=2e-06
  host_s=1e-06
""",
    "LLaMA-3 70B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.673 experts=0.339 attention=0.548 weights=0.86 kv=0.867 pointwise=1.67e+12
  domain=0.538 ramp=41.1 layer_s=2.02e-05 expert_layer_s=0.000107 collective_s=8.07e-06 fixed_s=0.00307
  sequence_s=1.68e-06 host_s=2.44e-05
GB200 | fp4 | matmul=0.687 experts=0.347 attention=0.547 weights=0.88 kv=0.879 pointwise=1.73e+12
  ramp=40.2 layer_s=2e-05 expert_layer_s=6.71e-05 fixed_s=0.00295 sequence_s=1.43e-05 host_s=3.56e-05
H200 | fp8 | matmul=0.666 experts=0.223 attention=0.45 weights=0.868 kv=0.858 pointwise=1.88e+12
  domain=0.596 ramp=40.8 layer_s=2.01e-05 expert_layer_s=9.43e-05 collective_s=8.05e-06 fixed_s=0.00326
  sequence_s=1.93e-06 host_s=2.5e-05
RTX PRO 6000 SE | fp4 | matmul=0.707 experts=0.453 attention=0.759 weights=0.875 kv=0.939 pointwise=2e+12
  domain=0.549 ramp=40 layer_s=1.95e-05 expert_layer_s=4.39e-05 collective_s=8.13e-06 fixed_s=0.00264
  sequence_s=2.59e-06 host_s=2.5e-05
""",
    "LLaMA-3 70B, vLLM on TPU": """
""",
    "LLaMA-3 8B, TensorRT-LLM 1.0": """
H100 | fp8 | matmul=0.695 experts=0.295 attention=0.511 weights=0.871 kv=0.872 pointwise=1.92e+12
  domain=0.59 ramp=41.4 layer_s=2.02e-05 expert_layer_s=0.000378 collective_s=8.06e-06 fixed_s=0.0032
  sequence_s=2.23e-06 host_s=2.5e-05
""",
    "Llama 4 Scout, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.683 experts=0.323 attention=0.539 weights=0.869 kv=0.858 pointwise=1.83e+12
  domain=0.485 ramp=53.5 layer_s=2.55e-05 expert_layer_s=5.35e-05 collective_s=8.8e-06 fixed_s=0.00616
  sequence_s=1.84e-06 host_s=2.44e-05
GB200 | fp4 | matmul=0.671 experts=0.348 attention=0.562 weights=0.883 kv=0.88 pointwise=1.94e+12 ramp=58
  layer_s=2.12e-05 expert_layer_s=0.000234 fixed_s=0.0041 sequence_s=2.79e-06 host_s=3.41e-05
H100 | fp8 | matmul=0.719 attention=0.525 weights=0.873 kv=0.962 pointwise=2.06e+12 ramp=35.2
  layer_s=1.76e-05 fixed_s=0.00153 sequence_s=1.7e-06 host_s=2.54e-05
H200 | fp8 | matmul=0.689 experts=0.249 attention=0.493 weights=0.868 kv=0.872 pointwise=1.83e+12
  domain=0.543 ramp=40.2 layer_s=2.04e-05 expert_layer_s=0.000109 collective_s=8.06e-06 fixed_s=0.0032
  sequence_s=1.85e-06 host_s=2.5e-05
""",
    "MT-NLG 530B, FasterTransformer": """
A100 | fp16 | matmul=0.71 attention=0.499 weights=0.859 kv=0.856 pointwise=2e+12 ramp=101
  layer_s=2.26e-05 fixed_s=0.000611 sequence_s=1.88e-06 host_s=1e-06
""",
    "PaLM 540B, JAX (Pope et al.)": """
""",
    "Qwen3 235B-A22B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.683 experts=0.311 attention=0.556 weights=0.867 kv=0.845 pointwise=1.83e+12
  ramp=54.1 layer_s=2.28e-05 expert_layer_s=4.01e-05 fixed_s=0.00625 sequence_s=2.32e-06 host_s=2.44e-05
H200 | fp8 | matmul=0.685 experts=0.219 attention=0.511 weights=0.866 kv=0.872 pointwise=1.85e+12
  domain=0.582 ramp=38.9 layer_s=2.02e-05 expert_layer_s=9.69e-05 collective_s=8.05e-06 fixed_s=0.00319
  sequence_s=2.4e-06 host_s=2.5e-05
""",
    "Qwen3 30B-A3B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.703 experts=0.323 attention=0.542 weights=0.876 kv=0.848 pointwise=1.74e+12
  domain=0.533 ramp=51 layer_s=2.29e-05 expert_layer_s=6.33e-05 collective_s=8.17e-06 fixed_s=0.00639
  sequence_s=1.97e-06 host_s=2.5e-05
GB200 | fp4 | matmul=0.698 experts=0.282 attention=0.535 weights=0.884 kv=0.859 pointwise=1.88e+12
  ramp=52.8 layer_s=2e-05 expert_layer_s=9.52e-05 fixed_s=0.00307 sequence_s=6.9e-06 host_s=2.5e-05
RTX PRO 6000 SE | fp4 | matmul=0.727 attention=0.602 weights=0.871 kv=0.882 pointwise=2e+12 domain=0.606
  ramp=54.1 layer_s=2.12e-05 collective_s=7.99e-06 fixed_s=0.00187 sequence_s=2.24e-06 host_s=2.34e-05
""",
    "Qwen3 32B, vLLM on TPU": """
""",
    "Qwen3 8B, vLLM on TPU": """
""",
}
NO_HOST = (0.092, 0.1692)
