# The settings of a published recipe; recipes.csv names the source.
SETTINGS="\
model_name=gpt-oss-120b per_device_batch_size=10.0 max_target_length=8192 dtype=bfloat16 \
weight_dtype=float32 remat_policy=custom decoder_layer_input=offload mlpwo=offload opt_type=adamw \
megablox=True sparse_matmul=True shard_exp_on_fsdp=True use_random_routing=False attention=flash \
dcn_pipeline_parallelism=1 dcn_data_parallelism=-1 ici_pipeline_parallelism=1 \
ici_fsdp_transpose_parallelism=1 ici_fsdp_parallelism=64 ici_data_parallelism=2 steps=20"
gcluster job submit --compute-type=tpu7x --topology=4x4x4 --num-slices=1 \
  --command="python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml ${SETTINGS}"
