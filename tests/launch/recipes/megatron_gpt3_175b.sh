#!/bin/bash
# The settings of a published example; recipes.csv names the source.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=1   # change for more nodes
DATA_PATH=$5
DISTRIBUTED=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
SHAPE=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # a comment within an array
)
TRAINING=(
    --micro-batch-size 1
    --global-batch-size 1536
    --rampup-batch-size 16 16 5859375
    --lr 6.0e-5
    --fp16
)
PARALLEL=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
)
torchrun ${DISTRIBUTED[@]} pretrain_gpt.py \
    ${SHAPE[@]} ${TRAINING[@]} ${PARALLEL[@]} \
    --data-path $DATA_PATH --vocab-file $3
