"""The models that Transformer explorers offer, in the same order on every control."""

MODELS = (
    "GPT-2 XL", "OPT 175B", "Llama 2 7B", "Llama 3 8B", "Llama 3 70B", "Llama 3.1 405B", "Gemma-2 27B",
    "Gemma-3 27B", "Qwen3 32B", "Mixtral 8x22B", "Qwen3 235B-A22B", "gpt-oss 120B", "DeepSeek-V3",
)  # fmt: skip
