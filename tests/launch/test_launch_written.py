"""Launch commands as people write them, from documentation: read, or refused with the reason."""

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.units import FP8, MXFP4

ON_H100 = Given(machine=chips.H100)


def on(machine, model=None, **more):
    return Given(
        machine=machine_names.read(machine).machine, model=models.find(model) if model else None, **more
    )


DOCKER_VLLM = """docker run --runtime nvidia --gpus all \\
    -v ~/.cache/huggingface:/root/.cache/huggingface \\
    --env "HUGGING_FACE_HUB_TOKEN=<secret>" \\
    -p 8000:8000 \\
    --ipc=host \\
    vllm/vllm-openai:latest \\
    --model mistralai/Mistral-7B-v0.1 --tensor-parallel-size 2
"""
EAGLE = """vllm serve Qwen/Qwen3-8B \\
  -tp 1 \\
  --speculative-config '{
    "model": "RedHatAI/Qwen3-8B-speculator.eagle3",
    "num_speculative_tokens": 3,
    "method": "eagle3"
  }'
"""
COMPILED = (
    "VLLM_USE_FLASHINFER_MOE_FP8=1 CUDA_VISIBLE_DEVICES=0,1,2,3 uv run vllm serve openai/gpt-oss-120b "
    "--tensor-parallel-size 4 --async-scheduling --no-enable-prefix-caching --kv-cache-dtype fp8 -O3 "
    '--compilation-config \'{"cudagraph_mode":"FULL","pass_config":{"fuse_allreduce_rms":true}}\''
)
WIDE_EP = """vllm serve deepseek-ai/DeepSeek-R1 --data-parallel-size 16 --tensor-parallel-size 1 \\
  --enable-expert-parallel --data-parallel-size-local 8 --data-parallel-address 10.99.48.128 \\
  --data-parallel-rpc-port 13345 --all2all-backend deepep_low_latency --enable-eplb \\
  --eplb-config '{"window_size":1000,"step_interval":3000,"num_redundant_experts":32}'
"""
ABBREVIATED = """sglang serve --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 --dp 8 --enable-dp-attention \\
    --moe-a2a-backend deepep --deepep-config '{"normal_dispatch":{"num_sms":96}}' --speculative-algo EAGLE \\
    --speculative-num-steps 1 --speculative-num-draft-tokens 2 --model-loader-extra-config '{"a": 1}'
"""
SGLANG = """export SGLANG_ENABLE_SPEC_V2=1
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --trust-remote-code \\
    --cuda-graph-bs 8 16 24 28 32 --mem-fraction-static 0.68 --max-running-requests 128 \\
    --chunked-prefill-size -1 --enable-dp-attention --dp-size 4 --moe-a2a-backend deepep
"""
SGLANG_DOCKER = """docker run --gpus all --shm-size 32g -p 30000:30000 --env "HF_TOKEN=<secret>" --ipc=host \\
    lmsysorg/sglang:latest \\
    python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --port 30000 --tp 2
"""
TRTLLM = """cat >./extra.yml <<EOF
enable_attention_dp: true
kv_cache_config:
  dtype: fp8
EOF
trtllm-serve nvidia/DeepSeek-R1-0528-FP4-V2 --port 8000 --max_batch_size 384 --max_num_tokens 1536 \\
  --tp_size 8 --ep_size 8 --extra_llm_api_options ./extra.yml
"""
TRTLLM_DOCKER = (
    "docker run --rm -it --ipc host --gpus all -p 8000:8000 nvcr.io/nvidia/tensorrt-llm/release:1.0.0 "
    'trtllm-serve "meta-llama/Llama-3.1-8B-Instruct" --tp_size 2'
)
SERVED = [
    (DOCKER_VLLM, ON_H100, "vllm", {"tp": 2}, set(), set()),
    (EAGLE, ON_H100, "vllm", {"tp": 1},
     {"--speculative-config.num_speculative_tokens", "--speculative-config.model"}, set()),
    (COMPILED, ON_H100, "vllm", {"tp": 4},
     {"$VLLM_USE_FLASHINFER_MOE_FP8", "--compilation-config.pass_config.fuse_allreduce_rms"}, set()),
    (WIDE_EP, ON_H100, "vllm", {"ep": 16, "redundant_experts": 32},
     {"--all2all-backend", "--enable-eplb", "--eplb-config.window_size", "--eplb-config.step_interval"},
     set()),
    (SGLANG, on("h100:16"), "sglang", {"tp": 16, "attention_dp": 4, "ep": 16}, {"--cuda-graph-bs"}, set()),
    (ABBREVIATED, on("b200:8"), "sglang",
     {"tp": 8, "ep": 8, "attention_dp": 8, "weights": FP8, "experts": MXFP4},
     {"--speculative-algorithm", "--speculative-num-draft-tokens",
      "--deepep-config.normal_dispatch.num_sms"}, set()),
    (SGLANG_DOCKER, ON_H100, "sglang", {"tp": 2}, set(), set()),
    (TRTLLM, on("b200:8"), "tensorrt_llm", {"tp": 8, "ep": 8, "attention_dp": 8}, set(), set()),
    (TRTLLM_DOCKER, ON_H100, "tensorrt_llm", {"tp": 2}, set(), set()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "launcher", "layout", "unused", "unknown"), SERVED)
def test_a_serving_command_is_read_and_every_flag_is_used_or_named(
    text, given, launcher, layout, unused, unknown
):
    one = launch.read(text, given)
    assert one.launcher == launcher
    assert {name: getattr(one.layout, name) for name in layout} == layout
    assert {each.flag for each in one.account.unused} == unused
    assert {each.name for each in one.account.unknown} == unknown


TRAINER = (
    "torchrun --nproc_per_node=8 --master_port=29500 train.py --model_name_or_path meta-llama/Llama-2-7b-hf "
    "--bf16 True --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --tf32 True "
    "--fsdp \"full_shard auto_wrap\" --fsdp_transformer_layer_cls_to_wrap 'LlamaDecoderLayer' "
    "--model_max_length 2048"
)
DEEPSPEED = """cat > ds.json <<EOF
{"fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}
EOF
deepspeed --num_gpus 8 \\
--num_nodes 2 \\
--master_addr 10.128.15.200 \\
--hostfile hostfile \\
fastchat/train/train_mem.py \\
--model_name_or_path ~/ssd/llama-13b-hf-transformers-4.29 \\
--per_device_train_batch_size 40 \\
--gradient_accumulation_steps 1 \\
--fp16 True \\
--model_max_length 2048 \\
--gradient_checkpointing True \\
--lazy_preprocess True \\
--deepspeed ds.json \\
# --report_to "wandb" \\
"""
TITAN = """cat > ./llama3_8b.toml <<EOF
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
EOF
NGPU=8 CONFIG_FILE="./llama3_8b.toml" ./run_train.sh --parallelism.tensor_parallel_degree=2
"""
MEGATRON = """#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes ${NNODES:-"2"}
)
MODEL_ARGS=(--use-mcore-models --seq-length 8192 --bf16 --fp8-format hybrid)
srun --container-image=nvcr.io/nvidia/nemo:25.04 -N 2 torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\
  ${MODEL_ARGS[@]} --micro-batch-size 1 --global-batch-size 128 --context-parallel-size 2 \\
  --use-distributed-optimizer --overlap-grad-reduce --cross-entropy-loss-fusion
"""
MAXTEXT = (
    "python3 -m MaxText.train src/MaxText/configs/base.yml run_name=$YOUR_JOB_NAME "
    "base_output_directory=gs://b dataset_path=gs://d model_name=llama3.1-8b per_device_batch_size=4 "
    "max_target_length=8192 ici_fsdp_parallelism=4 steps=10 remat_policy=full attention=flash"
)
BRIDGE = """uv run python scripts/performance/setup_experiment.py --account acct --partition batch \\
  -i nvcr.io/nvidia/nemo:26.04 -m llama -mr llama31_405b --log_dir /results -t "00:15:00" \\
  --num_gpus 1024 --gpus_per_node 8 -g h100 -c bf16 -hf token -sl 8192 \\
  -tp 8 -pp 8 -cp 2 -vp 8 -mb 1 -gb 1536 --recompute_modules core_attn,mlp
"""
ADAPTERS = (
    "accelerate launch --use_fsdp --fsdp_version 2 --num_processes 8 --mixed_precision bf16 "
    "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP --fsdp_activation_checkpointing true trl/scripts/sft.py "
    "--model_name_or_path Qwen/Qwen3-32B --per_device_train_batch_size 1 --gradient_accumulation_steps 8 "
    "--max_length 8192 --use_peft --lora_r 32 --lora_alpha 16 --use_liger_kernel"
)
SRUN = (
    'srun -N 4 --ntasks-per-node=8 bash -c "python pretrain_gpt.py --tensor-model-parallel-size 8 '
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --swiglu "
    "--group-query-attention --num-query-groups 8 --seq-length 4096 --micro-batch-size 1 --bf16 "
    '--global-batch-size 64 --sequence-parallel --vocab-size 128256"'
)
MINIMAL = (
    "python3 MaxText/train.py MaxText/configs/base.yml model_name=llama2-7b per_device_batch_size=1 "
    "remat_policy=minimal_flash max_target_length=4096 ici_fsdp_parallelism=8 steps=5"
)
TRAINED = [
    (ADAPTERS, ON_H100, "accelerate", {"fsdp": 8, "zero": 3, "frozen": True}, {"--use_liger_kernel"}),
    (SRUN, ON_H100, "megatron", {"tp": 8, "fsdp": 4}, set()),
    (MINIMAL, on("h100:8"), "maxtext", {"remat": "save:q,k,v,context,o,gate,up,down"}, set()),
    (TRAINER, on("h100:8"), "accelerate", {"fsdp": 8, "zero": 3, "microbatch": 4}, {"--tf32"}),
    (DEEPSPEED, Given(machine=chips.H100, model=models.find("llama-2-13b")), "deepspeed",
     {"fsdp": 16, "zero": 2, "microbatch": 40, "remat": "full"}, set()),
    (TITAN, ON_H100, "torchtitan", {"tp": 2, "fsdp": 4}, set()),
    (MEGATRON, Given(machine=chips.H100, model=models.find("llama-3-8b")), "megatron",
     {"cp": 2, "fsdp": 8}, {"--cross-entropy-loss-fusion"}),
    (MAXTEXT, on("v5p:2x2x1"), "maxtext", {"fsdp": 4, "remat": "full"}, set()),
    (BRIDGE, Given(), "megatron_bridge",
     {"tp": 8, "pp": 8, "cp": 2, "chunks": 8, "remat": "recompute:mlp,core_attn"}, {"--model_recipe_name"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "launcher", "plan", "unused"), TRAINED)
def test_a_training_command_is_read_and_every_flag_is_used_or_named(text, given, launcher, plan, unused):
    one = launch.read(text, given)
    assert one.launcher == launcher
    assert {name: getattr(one.plan, name) for name in plan} == plan
    assert {each.flag for each in one.account.unused} == unused
    assert not one.account.unknown


def test_the_scripts_of_megatron_bridge_name_the_chip_and_the_model():
    one = launch.read(BRIDGE, Given())
    assert (one.model.name, one.machine.chips, one.machine.chip.name) == ("Llama 3.1 405B", 1024, "H100")
    assert "The model is Llama 3.1 405B, by the name of the recipe." in one.account.assumed


def test_overrides_of_hydra_are_read_with_and_without_the_name_of_the_config():
    plain = (
        "torchrun --nproc_per_node 8 run.py model.tensor_model_parallel_size=8 model.seq_length=4096 "
        "train.micro_batch_size=1 train.global_batch_size=64"
    )
    prefixed = plain.replace(" model.", " cfg.model.").replace(" train.", " ++cfg.train.")
    first, second = (launch.read(text, on("h100:8", "llama-3-8b")) for text in (plain, prefixed))
    assert first.plan == second.plan
    assert first.plan.tp == 8
    assert not second.account.unknown


REFUSED = [
    ("CONFIG_FILE=./train_configs/llama3_8b.toml ./run_train.sh", on("h100:8"),
     r"line 1: \$CONFIG_FILE './train_configs/llama3_8b.toml' is not here, and it sets the model and the "
     r"plan; run this where the file is, or write its text into the script"),
    ("srun torchrun --nproc_per_node 8 -m torchtitan.train --job.config_file x.toml", on("h100:8"),
     "--job.config_file 'x.toml' is not here, and it sets the model and the plan"),
    ("MODULE=llama3 CONFIG=llama3_8b ./run_train.sh", on("h100:8"),
     r"\$CONFIG 'llama3_8b' is a Python function that sets the model and the plan, and nothing is executed "
     r"here; give the file that has it, as in config_registry.py:llama3_8b"),
    ("accelerate launch --config_file fsdp.yaml train.py --per_device_train_batch_size 16",
     on("h100:8", "llama-3-8b"),
     "--config_file 'fsdp.yaml' is not here, and it sets how the model is sharded"),
    ("deepspeed train.py --deepspeed ds.json --max_length 2048", on("h100:8", "llama-3-8b"),
     "--deepspeed 'ds.json' is not here, and it sets how the model is sharded"),
    ("torchrun train.py --fsdp 'hybrid_shard auto_wrap' --max_length 2048 --per_device_train_batch_size 1",
     on("h100:8", "llama-3-8b"), "does not say over how many GPUs it shards; write an Accelerate config"),
    ("torchrun scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config "
     "cfg.model.tensor_model_parallel_size=8", on("h100:8"),
     "--recipe 'llama3_8b_pretrain_config' sets model.pipeline_model_parallel_size, .* in Python, "
     "which is not executed; add them to the command, or give the recipe's file, as in llama31.py:FUNCTION"),
    (BRIDGE.replace("-g h100", "-g vr900"), Given(), "'vr900' is not a chip of the catalog; add --machine"),
    ("FORCE_TORCHRUN=1 llamafactory-cli train llama3_full_sft.yaml", on("h100:8"),
     "'llama3_full_sft.yaml' is not here, and it sets the model and its training"),
    ("import torch\nfrom vllm import LLM\nllm = LLM(model='m')\n", on("h100:8"),
     "the text is a Python program, and nothing is executed here; give the command that starts it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "said"), REFUSED)
def test_what_cannot_be_read_is_refused_with_the_reason(text, given, said):
    with pytest.raises(LaunchError, match=said) as told:
        launch.read(text, given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 1\n", "Kubernetes manifest"),
        ("services:\n  db:\n    image: postgres\n", "Compose file"),
    ],
)
def test_a_file_that_starts_containers_without_a_command_is_refused_by_its_kind(text, kind):
    with pytest.raises(LaunchError, match=f"serve.yaml is a {kind} whose containers have neither a command"):
        launch.read(text, ON_H100, name="serve.yaml")
    with pytest.raises(LaunchError, match=f"the text is a {kind} whose containers"):
        launch.read(text, ON_H100)


POD = """apiVersion: v1
kind: Service
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: server
        image: vllm/vllm-openai:v0.10.0
"""
ARGUMENTS = '        args: ["--model", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]\n'
SHELL = """        command: ["/bin/sh", "-c"]
        args: ["vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --max-model-len $(LENGTH)"]
"""
COMPOSE = """services:
  a:
    image: vllm/vllm-openai
    command: --model Qwen/Qwen3-8B --tensor-parallel-size 2
"""


@pytest.mark.parametrize("text", [POD + ARGUMENTS, COMPOSE], ids=["arguments", "compose"])
def test_the_command_of_a_container_is_read(text):
    for one in (launch.read(text, ON_H100), launch.read(text, ON_H100, name="serve.yaml")):
        assert (one.model.name, one.layout.tp) == ("Qwen3 8B", 2)
        assert any("its replicas and its GPUs are not read" in each for each in one.account.assumed)


def test_a_variable_of_a_manifest_is_refused_where_it_matters():
    with pytest.raises(LaunchError, match=r"'\$\(LENGTH\)' is set by the shell"):
        launch.read(POD + SHELL, ON_H100)


def test_where_the_output_goes_is_no_model():
    command = "nohup python3 -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B > log.txt 2>&1 &"
    assert launch.read(command, ON_H100).model.name == "Qwen3 8B"


def test_a_name_that_is_no_program_starts_no_launch():
    one = launch.read("conda activate vllm && vllm serve Qwen/Qwen3-8B", ON_H100)
    assert not any("launch commands" in each for each in one.account.assumed)


def test_a_serving_config_that_is_not_there_is_named_as_not_used():
    one = launch.read("vllm serve gpt2 --config server.yaml", ON_H100)
    assert [(each.flag, each.value, each.why) for each in one.account.unused] == [
        ("--config", "server.yaml", "the file is not here")
    ]
