# The settings of a published recipe; recipes.csv names the source.
export VLLM_ROCM_USE_AITER=1
vllm serve Qwen/Qwen3-235B-A22B-FP8 -tp 4 \
    --max-num-batched-tokens 32768 --max-model-len 32768 \
    --gpu-memory-utilization 0.8 --trust-remote-code
