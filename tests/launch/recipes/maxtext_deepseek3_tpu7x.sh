# The settings of a published recipe; recipes.csv names the source.
SETTINGS="\
model_name=deepseek3-671b per_device_batch_size=8.0 max_target_length=4096 \
dcn_pipeline_parallelism=1 dcn_data_parallelism=-1 ici_pipeline_parallelism=1 \
ici_fsdp_transpose_parallelism=1 ici_fsdp_parallelism=-1 allow_split_physical_axes=True \
remat_policy=custom decoder_layer_input=offload opt_type=adamw mu_dtype=bfloat16 grad_dtype=bfloat16 \
megablox=True sparse_matmul=True shard_exp_on_fsdp=True attention=flash use_tokamax_gmm=True steps=30"
gcluster job submit --compute-type tpu7x --topology 4x4x8 --num-slices 1 \
  --command "set +e; python3 -u -m maxtext.trainers.pre_train.train maxtext/configs/base.yml ${SETTINGS}"
