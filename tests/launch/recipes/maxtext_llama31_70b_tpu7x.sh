# The settings of a published recipe; recipes.csv names the source.
SETTINGS="\
model_name=llama3.1-70b dtype=bfloat16 per_device_batch_size=2 max_target_length=8192 \
ici_fsdp_parallelism=-1 remat_policy=custom \
decoder_layer_input=device context=device query_proj=device key_proj=device value_proj=device \
opt_type=adamw mu_dtype=bfloat16 attention=flash use_tokamax_splash=True steps=30"
xpk workload create --device-type=tpu7x-4x4x4 --num-slices=1 \
  --command="python3 -m MaxText.train MaxText/configs/base.yml ${SETTINGS}"
