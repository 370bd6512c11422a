# The settings of a published run; recipes.csv names the source.
torchrun --nproc_per_node 8 --nnodes 16 -m torchtitan.train \
    --model.name llama3 --model.flavor 8B --training.local_batch_size 2 --training.seq_len 8192 \
    --parallelism.data_parallel_shard_degree -1 --compile.enable \
    --activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option op
