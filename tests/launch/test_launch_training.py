"""What each training framework means by its words: degrees, batch, ZeRO, rematerialization, dtypes."""

import json
from fractions import Fraction

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.units import BF16, FP8, FP16, FP32

SMALL, MOE, LARGE = (models.find(name) for name in ("llama-3-8b", "mixtral-8x7b", "llama-3.1-405b"))


def machine(name):
    return machine_names.read(name).machine


def read(text, name="h100:64", model=SMALL, **more):
    file = more.pop("file", "")
    return launch.read(text, Given(model=model, machine=machine(name), **more), name=file)


def megatron(flags, name="h100:64", model=SMALL, **more):
    base = "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 --overlap-grad-reduce "
    return read(base + flags, name, model, **more)


def test_megatron_data_parallelism_is_what_the_chips_leave():
    flags = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 6 --context-parallel-size 2"
    one = megatron(f"{flags} --global-batch-size 512", "h100:768", LARGE)
    assert (one.plan.ranks, one.accumulation) == (8, 64)


def test_the_embedding_and_the_loss_may_count_as_layers_of_a_pipeline():
    """Llama 3.1 405B has 126 layers, and 8 stages."""
    flags = "--pipeline-model-parallel-size 8 --tensor-model-parallel-size 8"
    with pytest.raises(LaunchError, match="makes 8 parts, into which 126 layers do not divide"):
        megatron(flags, model=LARGE)
    ends = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"
    assert megatron(f"{flags} {ends}", model=LARGE).plan.pp == 8
    assert megatron(f"{flags} --decoder-last-pipeline-num-layers 14", model=LARGE).plan.stage_layers == (
        *[16] * 7, 14,
    )  # fmt: skip


def test_the_kernels_of_experts_are_assumptions_of_a_model_that_has_experts():
    def told(model):
        return [one for one in megatron("", model=model).account.assumed if "the prediction is for" in one]

    assert not told(SMALL)
    assert [one.split()[0] for one in told(MOE)] == [
        "--moe-token-dispatcher-type", "--moe-grouped-gemm", "--moe-permute-fusion", "--moe-router-fusion",
    ]  # fmt: skip
    named = megatron("--moe-token-dispatcher-type allgather", model=MOE).account.unused
    assert [(one.flag, one.why) for one in named] == [
        ("--moe-token-dispatcher-type", "the collectives are those of an all-to-all")
    ]


def test_virtual_stages_are_layers_over_stages_and_chunk():
    model = models.Transformer(name="m", D=512, L=96, V=1024, N=8, K=8, H=64, F=2048)
    flags = "--pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 4"
    one = megatron(f"{flags} --global-batch-size 64", model=model)
    assert (one.plan.schedule, one.plan.chunks) == ("interleaved", 3)


def test_megatron_expert_parallelism_does_not_multiply_the_chips():
    """slime's GLM-5.2 run: TP 4, PP 8 and CP 8 are 256 chips with DP 1; EP 32 is cut out of them."""
    model = models.Transformer(
        name="m", D=512, L=64, V=1024, N=64, K=64, H=64, F=2048,
        experts=models.parts.Experts(E=256, k=8, F=512),
    )  # fmt: skip
    flags = (
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 8 --context-parallel-size 8 "
        "--expert-model-parallel-size 32 --expert-tensor-parallel-size 1"
    )
    plan = megatron(flags, "h100:256", model).plan
    assert (plan.chips, plan.ranks, plan.ep, plan.expert_ways) == (256, 1, 32, 1)
    assert plan.tp * plan.cp * plan.fsdp % plan.ep == 0


@pytest.mark.parametrize(
    ("flags", "zero", "shards", "copies"),
    [
        ("", 0, 64, 1),
        ("--use-distributed-optimizer", 1, 64, 1),
        ("--use-distributed-optimizer --num-distributed-optimizer-instances 4", 1, 16, 4),
        ("--use-megatron-fsdp", 3, 64, 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", 2, 64, 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy no_shard", 0, 64, 1),
        ("--use-torch-fsdp2", 3, 64, 1),
        ("--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward", 2, 64, 1),
    ],
)
def test_the_zero_stages_of_megatron(flags, zero, shards, copies):
    plan = megatron(flags).plan
    assert (plan.zero, plan.fsdp, plan.dp) == (zero, shards, copies)


def test_the_default_global_batch_of_megatron_is_one_microbatch_for_each_rank():
    one = megatron("--tensor-model-parallel-size 8")
    assert (one.batch, one.accumulation) == (8, 1)


@pytest.mark.parametrize(
    ("flags", "remat"),
    [
        ("", "none"),
        ("--recompute-activations", "recompute:core_attn"),
        ("--recompute-granularity selective --recompute-modules core_attn", "recompute:core_attn"),
        ("--recompute-granularity selective --recompute-modules mlp layernorm", "recompute:layernorm,mlp"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "full"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 32", "full"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 4", "full:4"),
    ],
)
def test_the_recomputation_of_megatron(flags, remat):
    one = megatron(flags)
    assert one.plan.remat == remat
    assert not one.account.unused


@pytest.mark.parametrize(
    "flags",
    [
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4",
        "--recompute-granularity selective --recompute-modules moe",
        "--optimizer-cpu-offload --optimizer-offload-fraction 0.5",
        "--rampup-batch-size 16 16 5859375",
        "--moe-expert-capacity-factor 1.5",
        "--cuda-graph-impl local",
    ],
)
def test_what_changes_time_or_memory_and_is_not_expressed_is_named(flags):
    names = flags.split()[:1] if "recompute" not in flags else ["--recompute-"]
    told = [one.flag for one in megatron(flags).account.unused]
    assert any(flag.startswith(names[0]) for flag in told)


def test_the_dtypes_of_megatron():
    plan = megatron("").plan
    assert (plan.weights, plan.gradients, plan.reduced, plan.master) == (BF16, FP32, None, FP32)
    plan = megatron("--grad-reduce-in-bf16 --fp8-format hybrid").plan
    assert (plan.compute, plan.gradients, plan.activations) == (FP8, BF16, BF16)
    half = read("torchrun pretrain_gpt.py --fp16 --seq-length 1024 --micro-batch-size 1").plan
    assert (half.weights, half.gradients, half.activations) == (FP16, FP16, FP16)
    flags = "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"
    assert megatron(flags).plan.moments == BF16


def test_a_model_may_be_given_by_its_shape():
    flags = (
        "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --group-query-attention "
        "--num-query-groups 2 "
        "--swiglu --ffn-hidden-size 1536 --vocab-size 1000 --untie-embeddings-and-output-weights "
        "--tensor-model-parallel-size 2"
    )
    one = megatron(flags, model=None)
    m = one.model
    assert (m.L, m.D, m.N, m.K, m.F, m.H, m.gated, m.tied) == (4, 512, 8, 2, 1536, 64, True, False)
    assert m.V == 1024  # padded to a multiple of 128 x TP


def test_flags_of_bridge_are_those_of_the_dataclasses():
    text = (
        "torchrun --nproc_per_node 8 --nnodes 8 run.py model.tensor_model_parallel_size=2 "
        "model.seq_length=4096 "
        "train.micro_batch_size=1 train.global_batch_size=64 mixed_precision=bf16_with_mxfp8_mixed"
    )
    one = launch.read(text, Given(model=SMALL, machine=chips.H100))
    assert (one.launcher, one.machine.chips, one.plan.tp) == ("megatron_bridge", 64, 2)
    assert (one.plan.zero, one.plan.overlap, one.plan.compute) == (1, "full", FP8)


@pytest.mark.parametrize("value", ["''", "none", "auto"])
def test_a_data_type_that_is_left_open_is_the_usual_one(value):
    bridge = (
        "torchrun --nproc_per_node 8 --nnodes 8 run.py model.seq_length=4096 train.micro_batch_size=1 "
        "train.global_batch_size=64"
    )
    plain = read(bridge).plan
    assert read(f"{bridge} optimizer.main_grads_dtype={value}").plan.gradients == plain.gradients


# MaxText


def maxtext(flags, name="v5p:4x4x4", model=SMALL, **more):
    base = "python3 -m MaxText.train base.yml max_target_length=8192 "
    return read(base + flags, name, model, **more)


def test_the_batch_of_maxtext_counts_every_device():
    """The eight numbers of the line: 256 chips, tensor 4, half a sequence for each device."""
    one = maxtext("ici_tensor_parallelism=4 per_device_batch_size=0.5", "v5p:4x8x8")
    assert (one.plan.tp, one.plan.fsdp, one.batch, one.batch * one.T) == (4, 64, 128, 1_048_576)
    assert one.plan.microbatch == 2  # sequences of each of 64 data ranks: Megatron's DP 64, MBS 2


def test_accumulation_of_maxtext_raises_the_batch_and_not_the_microbatch():
    one = maxtext("per_device_batch_size=1 gradient_accumulation_steps=4")
    assert (one.batch, one.plan.microbatch, one.accumulation) == (256, 1, 4)


def test_a_chip_of_tpu7x_is_two_devices():
    one = maxtext("per_device_batch_size=3", "tpu7x:4x8x8", LARGE)
    assert (one.batch, one.plan.fsdp, one.plan.microbatch) == (1536, 256, 6)


def test_a_tpu_alone_takes_the_size_of_a_slice_from_the_axes():
    text = "python3 -m MaxText.train base.yml max_target_length=4096 per_device_batch_size=1 "
    text += "ici_fsdp_parallelism=64 dcn_data_parallelism=2"
    one = launch.read(text, Given(model=SMALL, machine=chips.TPU7X))
    assert (one.machine.chips, one.plan.dcn, one.plan.fsdp, one.batch) == (32, 2, 32, 128)


def test_slices_are_replicas_over_the_data_center_network():
    for flags in ("num_slices=2 dcn_data_parallelism=2", "num_slices=2", "dcn_data_parallelism=2"):
        one = maxtext(f"per_device_batch_size=1 {flags}")
        assert (one.plan.dcn, one.plan.fsdp, one.batch) == (2, 64, 128)
    with pytest.raises(
        LaunchError, match="shards across slices, and here slices hold replicas; write it within"
    ):
        maxtext("per_device_batch_size=1 num_slices=2 dcn_fsdp_parallelism=2 dcn_data_parallelism=1")


def test_the_batch_of_gpus_counts_the_devices_of_all_nodes_once():
    """per_device_batch_size 2 on 64 GPUs are 128 sequences, whatever the axes across nodes are."""
    axes = "hardware=gpu dcn_fsdp_parallelism=8 ici_fsdp_parallelism=8 per_device_batch_size=2"
    one = launch.read(
        f"python -m MaxText.train b.yml model_name=llama3-8b {axes}", Given(machine=machine("h100:64"))
    )
    assert (one.batch, one.plan.fsdp, one.plan.microbatch) == (128, 64, 2)


def test_slices_of_a_given_machine_are_not_reported_as_another_number_of_devices():
    axes = "num_slices=2 dcn_data_parallelism=2 ici_fsdp_parallelism=64 per_device_batch_size=1"
    one = launch.read(
        f"python -m MaxText.train b.yml model_name=llama3-8b {axes}", Given(machine=machine("v5p:4x4x4"))
    )
    assert (one.batch, one.plan.dcn) == (128, 2)
    assert not any("are used instead" in each for each in one.account.assumed)


def test_the_expert_axis_of_maxtext_also_splits_tokens_and_the_other_weights():
    plan = maxtext("per_device_batch_size=1 ici_expert_parallelism=8 ici_fsdp_parallelism=8", model=MOE).plan
    assert (plan.fsdp, plan.ep, plan.ranks) == (64, 8, 64)


def test_axes_across_nodes_and_within_multiply_on_gpus():
    one = maxtext("per_device_batch_size=1 dcn_fsdp_parallelism=8 ici_tensor_parallelism=8 "
                  "ici_fsdp_parallelism=1 dcn_data_parallelism=1", "h100:64")  # fmt: skip
    assert (one.plan.tp, one.plan.fsdp) == (8, 8)


@pytest.mark.parametrize(
    ("flags", "remat"),
    [
        ("", "full"),
        ("remat_policy=minimal", "selective"),
        ("remat_policy=none", "none"),
        ("remat_policy=qkv_proj_offloaded", "offload:q,k,v"),
        (
            "remat_policy=custom query_proj=device key_proj=offload decoder_layer_input=offload",
            "save:q;offload:in,k",
        ),
        ("remat_policy=custom", "full"),
    ],
)
def test_the_policies_of_maxtext(flags, remat):
    assert maxtext(f"per_device_batch_size=1 {flags}").plan.remat == remat


def test_minimal_stores_the_most_and_full_the_least():
    """The names of the policies say what is recomputed, not what is stored."""
    from scalingbook_lib import training

    held = []
    for policy in ("minimal_with_context", "minimal", "save_dot_except_mlpwi", "save_qkv_proj", "full"):
        one = maxtext(f"per_device_batch_size=1 remat_policy={policy}")
        held.append(
            training.memory(SMALL, one.plan, batch=one.batch, T=one.T, machine=one.machine).activations
        )
    assert held == sorted(held, reverse=True)
    assert held[0] > 2 * held[-1]


def test_weights_of_maxtext_are_their_own_master():
    plan = maxtext("per_device_batch_size=1 mu_dtype=bfloat16").plan
    assert (plan.weights, plan.master, plan.moments.bytes) == (FP32, None, 3)
    assert maxtext("per_device_batch_size=1 weight_dtype=bfloat16").plan.weights == BF16


def test_the_circular_pipeline_of_maxtext():
    flags = "per_device_batch_size=4 ici_pipeline_parallelism=4 num_layers_per_pipeline_stage=4 "
    plan = maxtext(f"{flags} num_pipeline_microbatches=8").plan
    assert (plan.pp, plan.schedule, plan.chunks, plan.microbatch) == (4, "interleaved", 2, 2)
    plan = maxtext(flags + "num_pipeline_repeats=2").plan
    assert plan.microbatches(256) == 4  # as many microbatches as stages


# torchtitan


def torchtitan(toml, name="h100:128", model=LARGE, **more):
    return read(toml, name, model, file="a.toml", **more)


def test_the_preset_of_llama_405b_is_262144_tokens():
    toml = "[training]\nlocal_batch_size = 2\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 8\n"
    one = torchtitan(toml)
    assert (one.plan.fsdp, one.plan.zero, one.batch, one.batch * one.T) == (16, 3, 32, 262_144)


def test_after_0_2_2_torchtitan_counts_tokens():
    toml = (
        "[training]\nnum_tokens_per_microbatch_per_dp_rank = 16384\nmax_context_length = 8192\n"
        "[parallelism]\ntensor_parallel_degree = 8\n"
    )
    one = torchtitan(toml)
    assert (one.plan.microbatch, one.batch * one.T) == (2, 262_144)


def test_a_pipeline_divides_the_local_batch_into_microbatches():
    toml = (
        "[training]\nlocal_batch_size = 32\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 8\n"
        "pipeline_parallel_degree = 8\n{}"
    )
    plan = torchtitan(toml.format(""), "h100:512").plan
    assert (plan.fsdp, plan.microbatch, plan.schedule, plan.zero) == (8, 1, "1f1b", 2)
    plan = torchtitan(toml.format('pipeline_parallel_schedule = "Interleaved1F1B"'), "h100:512").plan
    assert (plan.schedule, plan.chunks) == ("interleaved", 2)


def test_float8_of_torchtitan_needs_its_converter():
    flags = "--quantize.linear.float8.enable_fsdp_float8_all_gather"
    base = "torchrun -m torchtitan.train --model.name llama3 --model.flavor 8B --training.local_batch_size 1 "
    one = read(base + flags, model=None)
    assert one.plan.compute is BF16
    assert not one.account.unused
    assert any("model.converters does not name it" in each for each in one.account.assumed)
    converted = read(f"{base}{flags} --model.converters quantize.linear.float8", model=None)
    assert converted.plan.compute is FP8
    assert [each.flag for each in converted.account.unused] == [flags.lstrip("-")]


def test_experts_of_torchtitan_borrow_ranks():
    toml = (
        "[training]\nlocal_batch_size = 1\nseq_len = 4096\n[parallelism]\ntensor_parallel_degree = 2\n"
        "expert_parallel_degree = 8\n"
    )
    plan = torchtitan(toml, "h100:64", MOE).plan
    assert (plan.chips, plan.fsdp, plan.ep, plan.expert_ways) == (64, 32, 8, 1)


@pytest.mark.parametrize(
    ("mode", "remat"),
    [('"none"', "none"), ('"full"', "full"), ('"selective"\nselective_ac_option = "op"', "alternate"),
     ('"selective"\nselective_ac_option = "1"', "full"), ('"selective"', "full:63"),
     ('"selective"\nselective_ac_option = "3"', "full:42")],
)  # fmt: skip
def test_the_checkpointing_of_torchtitan(mode, remat):
    toml = f"[training]\nseq_len = 8192\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = {mode}\n"
    assert torchtitan(toml).plan.remat == remat


# DeepSpeed and Accelerate


def deepspeed(config, name="h100:8", **more):
    return read(json.dumps(config), name, file="ds.json", **({"sequence": 2048} | more))


@pytest.mark.parametrize(
    ("config", "batch", "microbatch", "steps"),
    [
        ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}, 64, 2, 4),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2}, 64, 2, 4),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 4}, 64, 2, 4),
        ({"train_batch_size": 64}, 64, 8, 1),
    ],
)
def test_two_of_three_counts_give_the_third(config, batch, microbatch, steps):
    one = deepspeed(config | {"bf16": {"enabled": True}})
    assert (one.batch, one.plan.microbatch, one.accumulation) == (batch, microbatch, steps)


def test_three_counts_that_contradict_each_other_are_refused():
    config = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
    with pytest.raises(LaunchError, match="is not the batch of 64; correct one of the three"):
        deepspeed(config)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_zero_stages_are_those_of_the_plan(stage):
    config = {"zero_optimization": {"stage": stage}, "train_batch_size": 8, "bf16": {"enabled": True}}
    plan = deepspeed(config).plan
    assert (plan.zero, plan.fsdp, plan.weights, plan.master) == (stage, 8, BF16, FP32)


def test_offloading_the_parameters_is_named_as_not_used():
    config = {
        "train_batch_size": 8,
        "zero_optimization": {
            "stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"},
        },
    }  # fmt: skip
    one = deepspeed(config)
    assert one.plan.offload_optimizer
    assert [each.flag for each in one.account.unused] == ["zero_optimization.offload_param.device"]


@pytest.mark.parametrize(
    ("flags", "zero", "shards"),
    [
        ("--use_fsdp", 3, 8),
        ("--use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP", 2, 8),
        ("--use_fsdp --fsdp_sharding_strategy NO_SHARD", 0, 8),
        ("--use_fsdp --fsdp_version 2", 3, 8),
        ("--use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false", 2, 8),
        ("--multi_gpu", 0, 1),
        ("--use_deepspeed", 2, 8),  # accelerate's default, where DeepSpeed's own is 0
    ],
)
def test_the_sharding_of_accelerate(flags, zero, shards):
    text = f"accelerate launch --num_processes 8 --mixed_precision bf16 {flags} train.py"
    one = launch.read(
        f"{text} --per_device_train_batch_size 2 --max_seq_length 2048",
        Given(model=SMALL, machine=chips.H100),
    )
    assert (one.plan.zero, one.plan.fsdp, one.machine.chips, one.batch) == (zero, shards, 8, 16)


def test_fsdp_of_accelerate_keeps_weights_in_fp32():
    text = "accelerate launch --num_processes 8 --mixed_precision bf16 --use_fsdp train.py"
    given = Given(model=SMALL, machine=chips.H100, batch=16, sequence=2048)
    plan = launch.read(text, given).plan
    assert (plan.weights, plan.compute, plan.master) == (FP32, BF16, None)


# All of them


def test_a_chip_alone_takes_its_number_from_the_command():
    text = (
        "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1"
    )
    assert launch.read(text, Given(model=SMALL, machine=chips.H100)).machine.chips == 32


def test_the_same_plan_in_three_dialects_is_the_same_batch():
    tokens = 64 * 8192
    line = maxtext("per_device_batch_size=1", "h100:64")
    toml = torchtitan("[training]\nlocal_batch_size = 1\nseq_len = 8192\n", "h100:64", SMALL)
    flags = "torchrun pretrain_gpt.py --bf16 --seq-length 8192 --micro-batch-size 1"
    assert {one.batch * one.T for one in (line, toml, read(flags))} == {tokens}
    assert Fraction(tokens, 8192) == line.batch


MLA = (  # NVIDIA/Megatron-LM examples/megatron_fsdp/sbatch_mfsdp_deepseek_v3.sh @d98e8a6, shortened
    "torchrun pretrain_gpt.py --bf16 --num-layers 61 --hidden-size 7168 --num-attention-heads 128 --swiglu "
    "--num-experts 256 --moe-router-topk 8 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 "
    "--seq-length 4096 --micro-batch-size 1 --global-batch-size 2048 --expert-model-parallel-size 8 "
    "--calculate-per-token-loss --init-model-with-meta-device --profile --profile-ranks 0 "
    "--fp8-amax-history-len 1024 --fp8-amax-compute-algo max"
)


def test_latent_attention_is_read_of_the_model_that_the_option_names():
    with pytest.raises(LaunchError, match="add --model, as in --model deepseek-v3"):
        launch.read(MLA, Given(machine=machine("h100:256")))
    deepseek = models.find("deepseek-v3")
    found = read(MLA, "h100:256", deepseek)
    assert found.model == deepseek
    names = {row.flag for row in found.account.unused}
    assert not names & {"--num-layers", "--hidden-size", "--num-experts", "--multi-latent-attention"}
    assert "--profile" in names


def test_flags_of_published_scripts_are_known():
    assert not read(MLA, "h100:256", models.find("deepseek-v3")).account.unknown
