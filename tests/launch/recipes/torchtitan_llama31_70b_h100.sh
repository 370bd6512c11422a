# The settings of a published run; recipes.csv names the source.
torchrun --nproc_per_node 8 --nnodes 32 -m torchtitan.train \
    --model.name llama3 --model.flavor 70B --training.local_batch_size 16 --training.seq_len 8192 \
    --model.converters float8 --compile.enable --parallelism.tensor_parallel_degree 8 \
    --parallelism.data_parallel_shard_degree 32 --activation_checkpoint.mode full
