"""The efficiencies of chips in inference, as `fit` found them: calibrate_inference.py wrote it.

`ROWS` are of all published runs; `LEFT_OUT` has, for each model as an engine ran it, the chips that it
touches, without it (no line where fewer than three runs are left). Chapter: Inference.
"""

DATE = "2026-11-21"
ROWS = """
A100 | fp16 | matmul=0.699 attention=0.499 weights=0.855 kv=0.857 pointwise=2e+12 domain=0.575
  network=0.596 ramp=101 layer_s=2.3e-05 collective_s=8.25e-06 network_s=0.000111 fixed_s=0.000597
  sequence_s=3.55e-06
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.824 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.42 ramp=40 layer_s=2.43e-05 collective_s=7.71e-06 fixed_s=0.000605 sequence_s=4.01e-06
B200 | fp4 | matmul=0.7 experts=0.323 attention=0.544 weights=0.865 kv=0.854 pointwise=1.74e+12
  domain=0.542 ramp=53.8 layer_s=2.44e-05 expert_layer_s=4.64e-05 collective_s=8.5e-06 fixed_s=0.00585
  sequence_s=2.88e-06
GB200 | fp4 | matmul=0.728 experts=0.291 attention=0.514 weights=0.891 kv=0.894 pointwise=1.93e+12
  ramp=43.5 layer_s=1.82e-05 expert_layer_s=7.92e-05 fixed_s=0.00227 sequence_s=1.62e-05
H100 | fp8 | matmul=0.733 experts=0.286 attention=0.524 weights=0.873 kv=0.97 pointwise=2.04e+12
  domain=0.589 ramp=34.8 layer_s=1.75e-05 expert_layer_s=0.000432 collective_s=8.06e-06 fixed_s=0.00147
  sequence_s=2.78e-06
H200 | fp8 | matmul=0.686 experts=0.225 attention=0.471 weights=0.867 kv=0.869 pointwise=1.88e+12
  domain=0.597 ramp=38.8 layer_s=2e-05 expert_layer_s=8.61e-05 collective_s=8.04e-06 fixed_s=0.00316
  sequence_s=3.09e-06
RTX PRO 6000 SE | fp4 | matmul=0.684 experts=0.472 attention=0.785 weights=0.871 kv=0.955 pointwise=2e+12
  domain=0.587 ramp=136 layer_s=2.01e-05 expert_layer_s=2.46e-05 collective_s=7.87e-06 fixed_s=0.00365
  sequence_s=4.06e-06
TPU v4 | bf16 | matmul=0.823 attention=0.501 weights=0.85 kv=0.871 pointwise=2e+12 torus=0.72
  exposed=0.939 dequantize=0.808 ramp=42.3 layer_s=2.24e-05 collective_s=8.77e-06 fixed_s=0.000522
  sequence_s=3.86e-06
TPU7x | fp8 | matmul=0.696 attention=0.467 weights=0.871 kv=0.843 pointwise=1.39e+12 ramp=45.3
  layer_s=2.18e-05 fixed_s=0.00845 sequence_s=5.13e-06
"""
LEFT_OUT = {
    "LLaMA 7B, TensorRT-LLM (2024)": """
""",
    "LLaMA-2 70B, gpt-fast": """
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.839 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.25 ramp=40 layer_s=2.39e-05 collective_s=7.25e-06 fixed_s=0.000683 sequence_s=4.01e-06
""",
    "LLaMA-2 7B, gpt-fast": """
A100, 330 W | bf16 | matmul=0.7 attention=0.5 weights=0.829 kv=0.87 pointwise=2e+12 domain=0.6
  dequantize=1.43 ramp=40 layer_s=2.32e-05 collective_s=8.5e-06 fixed_s=0.000544 sequence_s=4e-06
""",
    "LLaMA-3 70B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.677 experts=0.347 attention=0.543 weights=0.859 kv=0.869 pointwise=1.61e+12
  domain=0.576 ramp=41.3 layer_s=2.01e-05 expert_layer_s=9.38e-05 collective_s=8e-06 fixed_s=0.00313
  sequence_s=2.57e-06
GB200 | fp4 | matmul=0.693 experts=0.348 attention=0.54 weights=0.879 kv=0.888 pointwise=1.74e+12
  ramp=40.2 layer_s=1.96e-05 expert_layer_s=4.4e-05 fixed_s=0.00264 sequence_s=1.82e-05
H200 | fp8 | matmul=0.667 experts=0.23 attention=0.441 weights=0.868 kv=0.859 pointwise=1.89e+12
  domain=0.595 ramp=40.4 layer_s=2.01e-05 expert_layer_s=8.29e-05 collective_s=8.03e-06 fixed_s=0.00319
  sequence_s=3.07e-06
RTX PRO 6000 SE | fp4 | matmul=0.711 experts=0.463 attention=0.746 weights=0.875 kv=0.944 pointwise=2e+12
  domain=0.569 ramp=39.9 layer_s=1.94e-05 expert_layer_s=3.88e-05 collective_s=8.06e-06 fixed_s=0.00252
  sequence_s=3.61e-06
""",
    "LLaMA-3 70B, vLLM on TPU": """
""",
    "LLaMA-3 8B, TensorRT-LLM 1.0": """
H100 | fp8 | matmul=0.696 experts=0.294 attention=0.511 weights=0.871 kv=0.872 pointwise=1.93e+12
  domain=0.59 ramp=41.1 layer_s=2.02e-05 expert_layer_s=0.000348 collective_s=8.07e-06 fixed_s=0.00321
  sequence_s=4.93e-06
""",
    "Llama 4 Scout, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.7 experts=0.324 attention=0.532 weights=0.869 kv=0.86 pointwise=1.77e+12
  domain=0.532 ramp=52.6 layer_s=2.51e-05 expert_layer_s=4.33e-05 collective_s=8.63e-06 fixed_s=0.00592
  sequence_s=2.86e-06
GB200 | fp4 | matmul=0.709 experts=0.311 attention=0.524 weights=0.883 kv=0.891 pointwise=1.97e+12
  ramp=47.2 layer_s=1.96e-05 expert_layer_s=0.000149 fixed_s=0.00287 sequence_s=1.17e-05
H100 | fp8 | matmul=0.728 attention=0.517 weights=0.873 kv=0.968 pointwise=2.09e+12 ramp=34.6
  layer_s=1.74e-05 fixed_s=0.00147 sequence_s=2.65e-06
H200 | fp8 | matmul=0.69 experts=0.258 attention=0.486 weights=0.868 kv=0.873 pointwise=1.84e+12
  domain=0.547 ramp=39.8 layer_s=2.03e-05 expert_layer_s=9.77e-05 collective_s=8.05e-06 fixed_s=0.00314
  sequence_s=3.1e-06
""",
    "MT-NLG 530B, FasterTransformer": """
A100 | fp16 | matmul=0.711 attention=0.499 weights=0.859 kv=0.856 pointwise=2e+12 ramp=101
  layer_s=2.26e-05 fixed_s=0.00061 sequence_s=3.54e-06
""",
    "PaLM 540B, JAX (Pope et al.)": """
""",
    "Qwen3 235B-A22B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.695 experts=0.319 attention=0.542 weights=0.864 kv=0.844 pointwise=1.82e+12
  ramp=54.9 layer_s=2.32e-05 expert_layer_s=3.13e-05 fixed_s=0.0056 sequence_s=4.68e-06
H200 | fp8 | matmul=0.687 experts=0.23 attention=0.504 weights=0.866 kv=0.873 pointwise=1.86e+12
  domain=0.583 ramp=38.3 layer_s=2.01e-05 expert_layer_s=8e-05 collective_s=8.02e-06 fixed_s=0.00308
  sequence_s=4.13e-06
""",
    "Qwen3 30B-A3B, TensorRT-LLM 1.0": """
B200 | fp4 | matmul=0.702 experts=0.328 attention=0.533 weights=0.874 kv=0.846 pointwise=1.77e+12
  domain=0.554 ramp=50.7 layer_s=2.26e-05 expert_layer_s=5.73e-05 collective_s=8.05e-06 fixed_s=0.00634
  sequence_s=2.67e-06
GB200 | fp4 | matmul=0.708 experts=0.283 attention=0.514 weights=0.884 kv=0.864 pointwise=1.95e+12
  ramp=47.5 layer_s=1.91e-05 expert_layer_s=8.01e-05 fixed_s=0.0026 sequence_s=1.13e-05
RTX PRO 6000 SE | fp4 | matmul=0.737 attention=0.586 weights=0.888 kv=0.894 pointwise=2e+12 domain=0.604
  ramp=55.1 layer_s=1.99e-05 collective_s=8e-06 fixed_s=0.0021 sequence_s=2.51e-05
""",
    "Qwen3 32B, vLLM on TPU": """
""",
    "Qwen3 8B, vLLM on TPU": """
""",
}
