"""Trainers of Hugging Face's family: adapters, quantized base weights, and the words of three tools."""

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.machines import chips, machine_names
from scalingbook_lib.units import BF16, FP32, INT8

A8 = Given(machine=machine_names.read("a100:8").machine)
LLAMA = models.find("llama-3-8b")

FACTORY = """### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
### dataset
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 2048
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
bf16: true
"""
AXOLOTL = """base_model: meta-llama/Meta-Llama-3-8B
load_in_4bit: true
adapter: qlora
sequence_len: 2048
sample_packing: true
lora_r: 16
lora_alpha: 32
gradient_accumulation_steps: 4
micro_batch_size: 2
optimizer: adamw_8bit
bf16: auto
gradient_checkpointing: true
flash_attention: true
"""


def read(text, given=A8, file="", **opened):
    return launch.read(text, given, name=file, opener=opened.get)


def test_llama_factory_trains_adapters_on_half_precision_weights_and_recomputes():
    one = read(FACTORY, file="a.yaml")
    assert (one.model.name, one.T, one.batch, one.plan.microbatch) == ("Llama 3 8B", 2048, 64, 1)
    assert (one.plan.frozen, one.plan.weights, one.plan.remat) == (True, BF16, "full")
    assert not one.account.unknown
    assert read(FACTORY + "disable_gradient_checkpointing: true\n", file="a.yaml").plan.remat == "none"


def test_axolotl_stores_the_layers_in_four_bits_and_the_rest_in_half_precision():
    """Layers of Llama 3 8B: 4 bits and a scale of 4 bytes for 64 elements; embeddings and norms in bf16."""
    one = read(AXOLOTL, file="a.yml")
    assert (one.model.name, one.T, one.batch, one.plan.microbatch) == ("Llama 3 8B", 2048, 64, 2)
    assert (one.plan.frozen, one.plan.compute, one.plan.remat) == (True, BF16, "full")
    outside = 2 * 128_256 * 4096 + 65 * 4096
    stored = 2 * outside + (0.5 + 4 / 64) * (LLAMA.params - outside)
    assert one.plan.weights.bytes * LLAMA.params == pytest.approx(stored)
    assert not one.account.unknown


def test_a_tool_reads_the_file_that_its_command_names():
    for text in ("llamafactory-cli train a.yaml", "accelerate launch -m train.main a.yaml"):
        assert launch.read(text, A8, opener={"a.yaml": FACTORY}.get).T == 2048
    for text in ("axolotl train b.yml", "accelerate launch -m axolotl.cli.train b.yml"):
        assert launch.read(text, A8, opener={"b.yml": AXOLOTL}.get).plan.frozen
        with pytest.raises(LaunchError, match=r"'b\.yml' is not here, and it sets the model and"):
            launch.read(text, A8)


def test_a_config_names_a_deepspeed_file():
    config = AXOLOTL.replace("load_in_4bit: true\nadapter: qlora\n", "") + "deepspeed: zero3.json\n"
    files = {"zero3.json": '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'}
    one = launch.read(config, A8, name="a.yml", opener=files.get)
    assert (one.launcher, one.plan.zero, one.plan.fsdp, one.plan.frozen) == ("deepspeed", 3, 8, False)
    with pytest.raises(LaunchError, match=r"deepspeed 'zero3.json' is not here"):
        launch.read(config, A8, name="a.yml")


SFT = (
    "python trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 "
    "--max_length 1024 --bf16 --gradient_checkpointing "
)


@pytest.mark.parametrize(
    ("flags", "weights", "gradients", "moments"),
    [
        ("", FP32, FP32, FP32),
        ("--torch_dtype bfloat16", BF16, BF16, BF16),
        ("--torch_dtype bfloat16 --optim adamw_bnb_8bit", BF16, BF16, INT8),
        ("--optim adamw_8bit", FP32, FP32, INT8),
    ],
)
def test_without_sharding_the_state_has_the_dtype_in_which_the_model_is_loaded(
    flags, weights, gradients, moments
):
    plan = read(SFT + flags, Given(machine=chips.A100)).plan
    assert (plan.weights, plan.gradients, plan.moments) == (weights, gradients, moments)


def test_python_alone_starts_one_process():
    one = read(SFT + "--use_peft --load_in_4bit", Given(machine=chips.A100))
    assert (one.machine.chips, one.plan.frozen, one.plan.weights.name) == (1, True, "nf4")
    assert read(SFT, A8).machine.chips == 8  # of a machine that is given


def test_quantized_weights_are_not_trained():
    one = read(SFT + "--load_in_4bit")
    assert one.plan.weights is FP32
    assert [each.flag for each in one.account.unused] == ["--load_in_4bit"]


def test_llama_factory_trains_all_weights_in_fp32():
    full = FACTORY.replace("type: lora", "type: full")
    assert read(full, file="a.yaml").plan.weights is FP32
    assert read(full + "pure_bf16: true\n", file="a.yaml").plan.weights is BF16


@pytest.mark.parametrize(
    "text",
    [
        SFT.replace("sft.py", "dpo.py"),
        "trl grpo --model_name_or_path gpt2 --per_device_train_batch_size 8 --max_length 1024 --bf16",
        FACTORY.replace("stage: sft", "stage: ppo"),
        AXOLOTL + "rl: dpo\n",
    ],
)
def test_a_step_of_another_training_is_refused(text):
    with pytest.raises(LaunchError, match="is no step of next-token training"):
        read(text)


def test_a_method_that_is_not_expressed_is_named():
    one = read(FACTORY.replace("type: lora", "type: freeze"), file="a.yaml")
    assert not one.plan.frozen
    assert "counted as training all weights" in [each.why for each in one.account.unused]


def test_hybrid_sharding_is_within_a_node():
    text = (
        "accelerate launch --num_processes 32 --num_machines 4 --use_fsdp --mixed_precision bf16 "
        "--fsdp_sharding_strategy HYBRID_SHARD train.py --model_name_or_path gpt2 "
        "--per_device_train_batch_size 1 --block_size 1024"
    )
    plan = read(text, Given(machine=chips.A100)).plan
    assert (plan.fsdp, plan.dp, plan.zero) == (8, 4, 3)


def test_the_plan_of_another_framework_is_refused():
    with pytest.raises(LaunchError, match="MEGATRON_LM' is another framework's plan"):
        read("distributed_type: MEGATRON_LM\nnum_processes: 8\n", Given(model=LLAMA, sequence=4096), "a.yaml")


def test_a_batch_without_that_of_a_process_is_taken_at_once_and_the_answer_says_so():
    config = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n"
    given = Given(model=LLAMA, machine=A8.machine, sequence=4096, batch=64)
    one = read(config, given, "a.yaml")
    assert one.plan.microbatch == 8
    assert any("each takes its 8 sequences at once" in each for each in one.account.assumed)


def test_fp32_on_a_chip_without_such_a_rate_is_refused_with_the_flag_to_add():
    with pytest.raises(LaunchError, match="no rate of fp32 matmuls for RTX 4090; add --bf16"):
        read(SFT.replace("--bf16 ", ""), Given(machine=chips.find("rtx4090")))
