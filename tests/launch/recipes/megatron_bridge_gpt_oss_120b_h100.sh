# The settings of a published recipe; recipes.csv names the source.
torchrun --nproc_per_node 8 --nnodes 8 scripts/training/run_recipe.py \
    mixed_precision=bf16_mixed ddp.grad_reduce_in_fp32=false model.seq_length=4096 \
    model.tensor_model_parallel_size=1 model.pipeline_model_parallel_size=4 \
    model.expert_model_parallel_size=8 model.sequence_parallel=false \
    model.recompute_granularity=selective model.recompute_modules=[layernorm,moe_act] \
    model.moe_router_force_load_balancing=true train.global_batch_size=1280 train.micro_batch_size=1
