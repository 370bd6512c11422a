#!/bin/bash
# Continued pretraining at 128k tokens on 64 chips
python3 -m MaxText.train MaxText/configs/base.yml \
  model_name=llama3.1-8b \
  per_device_batch_size=0.125 \
  max_target_length=131072 \
  ici_fsdp_parallelism=8 \
  ici_context_parallelism=8 \
  context_parallel_strategy=ring \
  context_parallel_load_balance=true \
  remat_policy=minimal \
  dtype=bfloat16 \
  steps=12000
