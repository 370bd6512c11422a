"""A suggested change is written in the flags of its launcher, and removes only what the command has."""

from dataclasses import replace

import pytest

from scalingbook_lib import launch, models, training
from scalingbook_lib.launch import Given, change_flags, changes
from scalingbook_lib.machines import machine_names

SMALL, MOE = models.find("llama-3-8b"), models.find("mixtral-8x7b")
LM = "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64"
TITAN = (
    "torchrun -m torchtitan.train --training.seq_len 4096 --training.local_batch_size 1 "
    "--parallelism.tensor_parallel_degree 4"
)
TRAINER = "--max_length 2048 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16"
FSDP = f"accelerate launch --use_fsdp x.py {TRAINER}"
R1 = "deepseek-ai/DeepSeek-R1"
SGLANG = f"python -m sglang.launch_server --model-path {R1} --tp 16 --dp 16 --enable-dp-attention"


def read(text, machine="h100:16", model=SMALL, name="", **more):
    found = machine_names.read(machine).machine
    return launch.read(text, Given(model=model, machine=found, **more), name=name)


@pytest.mark.parametrize(
    ("text", "plan", "flags"),
    [
        (f"{LM} --recompute-activations", {"remat": "none"}, ("without --recompute-activations",)),
        (f"{LM} --recompute-granularity selective", {"remat": "none"},
         ("without --recompute-granularity",)),
        (f"{LM} --recompute-activations", {"remat": "full"},
         ("--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1",
          "without --recompute-activations")),
        (f"{LM} --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 8",
         {"chunks": 4},
         ("--num-virtual-stages-per-pipeline-rank 4", "without --num-layers-per-virtual-pipeline-stage")),
        (f"{TITAN} --compile.enable", {"collective_matmul": True},
         ("parallelism.enable_async_tensor_parallel=true",)),
        (TITAN, {"collective_matmul": True},
         ("parallelism.enable_async_tensor_parallel=true", "compile.enable=true")),
        (FSDP, {"zero": 2}, ("--fsdp_sharding_strategy SHARD_GRAD_OP",)),
        (f"{FSDP} --gradient_checkpointing", {"remat": "none"}, ("without --gradient_checkpointing",)),
        (FSDP, {"microbatch": 4}, ("--per_device_train_batch_size 4", "--gradient_accumulation_steps 2")),
        (FSDP, {"tp": 2, "fsdp": 8},
         ("parallelism_config_tp_size: 2", "parallelism_config_dp_shard_size: 8",
          "--gradient_accumulation_steps 8")),
        (FSDP.replace("--use_fsdp", "--use_fsdp --fsdp_version 2"), {"zero": 2},
         ("--fsdp_reshard_after_forward false",)),
        (f'torchrun --nproc_per_node 16 x.py {TRAINER} --fsdp "full_shard auto_wrap"', {"zero": 2},
         ('--fsdp "shard_grad_op auto_wrap"',)),
        (f"accelerate launch --use_deepspeed --zero_stage 2 x.py {TRAINER}", {"zero": 3},
         ("--zero_stage 3",)),
        (f"accelerate launch --multi_gpu x.py {TRAINER}", {"zero": 3, "fsdp": 16, "dp": 1},
         ("parallelism_config_dp_replicate_size: 1", "parallelism_config_dp_shard_size: 16",
          "distributed_type: FSDP", "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP",
          "--fsdp_sharding_strategy FULL_SHARD")),
    ],
)  # fmt: skip
def test_a_change_of_a_plan_is_written_as_its_command_is(text, plan, flags):
    one = read(text)
    assert change_flags.training(one, replace(one.plan, **plan)) == flags


def test_a_change_of_deepspeed_is_written_as_in_its_file():
    file = (
        '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}}'
    )
    one = read(file, name="ds.json", sequence=2048)
    assert change_flags.training(one, replace(one.plan, zero=2)) == ("zero_optimization.stage: 2",)
    assert change_flags.training(one, replace(one.plan, microbatch=4)) == (
        "train_micro_batch_size_per_gpu: 4",
        "gradient_accumulation_steps: 2",
    )


@pytest.mark.parametrize(
    ("text", "layout", "caps", "flags"),
    [
        (f"{SGLANG} --moe-a2a-backend deepep", {"ep": 1}, {}, ("without --moe-a2a-backend",)),
        (f"{SGLANG} --ep 16", {"ep": 1}, {}, ("without --expert-parallel-size",)),
        (f"{SGLANG} --ep 16 --moe-a2a-backend deepep", {"ep": 1}, {},
         ("without --expert-parallel-size", "without --moe-a2a-backend")),
        (f"trtllm-serve {R1} --tp_size 16 --ep_size 16", {"ep": 1}, {}, ("without --ep_size",)),
        (f"trtllm-serve {R1} --tp_size 16", {"attention_dp": 16}, {"max_sequences": 2048 * 16},
         ("enable_attention_dp: true", "--max_num_tokens 512")),
        (f"trtllm-serve {R1} --tp_size 16", {}, {"max_sequences": 4096}, ("--max_batch_size 4096",)),
    ],
)  # fmt: skip
def test_a_change_of_a_server_is_written_as_its_command_is(text, layout, caps, flags):
    one = read(text, "h200:16", model=None)
    assert change_flags.serving(one, replace(one, layout=replace(one.layout, **layout), **caps)) == flags


def test_no_change_of_megatron_leaves_layers_that_do_not_divide():
    odd = replace(SMALL, name="30 layers", L=30)
    one = read(f"{LM} --pipeline-model-parallel-size 2", model=odd)
    tried = []

    def judge(plan):
        tried.append(plan)
        try:
            return training.step(odd, one.machine, plan, batch=one.batch, T=one.T, efficiency=one.efficiency)
        except ValueError:
            return None

    found = changes.training(one, judge(one.plan), judge, most=20)
    assert any(odd.L % (plan.pp * plan.chunks) for plan in tried)
    assert found
    assert not any(odd.L % (each.step.plan.pp * each.step.plan.chunks) for each in found)
