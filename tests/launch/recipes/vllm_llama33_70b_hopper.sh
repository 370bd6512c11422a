#!/bin/bash
# The settings of a published recipe; recipes.csv names the source.
cat > hopper.yaml <<EOF
kv-cache-dtype: fp8
async-scheduling: true
no-enable-prefix-caching: true
max-num-batched-tokens: 8192
EOF
if [ "$COMPUTE_CAPABILITY" != "10.0" ]; then
    DTYPE="FP8"
else
    DTYPE="FP4"
fi
vllm serve nvidia/Llama-3.3-70B-Instruct-$DTYPE \
  --config hopper.yaml \
  --tensor-parallel-size 1 \
  --max-num-seqs 512 \
  --max-model-len 10240 &
