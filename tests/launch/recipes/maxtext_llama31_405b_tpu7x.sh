# The settings of a published recipe; recipes.csv names the source.
SETTINGS="\
model_name=llama3.1-405b dtype=bfloat16 per_device_batch_size=3 max_target_length=8192 \
ici_fsdp_parallelism=-1 \
remat_policy=custom decoder_layer_input=offload mlpwo=offload key_proj=device value_proj=device \
attention=flash sa_block_q=2048 sa_block_kv=2048 use_tokamax_splash=True \
opt_type=adamw mu_dtype=bfloat16 num_vocab_tiling=4 \
use_iota_embed=True enable_checkpointing=False dataset_type=synthetic steps=30 \
run_name=$1"
xpk workload create --device-type=tpu7x-4x8x8 --num-slices=1 --priority=very-high \
  --command="export LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=65536' && \
python3 -m MaxText.train maxtext/configs/base.yml ${SETTINGS} | tee train.log"
