# The settings of a published recipe; recipes.csv names the source.
torchrun --nproc_per_node 8 --nnodes 128 scripts/training/run_recipe.py \
    mixed_precision=bf16_with_fp8_current_scaling_mixed ddp.grad_reduce_in_fp32=false \
    model.seq_length=8192 model.tensor_model_parallel_size=8 model.pipeline_model_parallel_size=8 \
    model.context_parallel_size=2 model.virtual_pipeline_model_parallel_size=8 \
    model.sequence_parallel=true train.global_batch_size=1536 train.micro_batch_size=1 \
    comm_overlap.tp_comm_overlap=true
