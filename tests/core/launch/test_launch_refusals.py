"""Bad input: what was read, on which line, which rule it breaks, and what to write instead."""

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.machines import chips, machine_names

MODEL = models.find("llama-3-8b")
H64 = Given(model=MODEL, machine=machine_names.read("h100:64").machine)
LM = "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 "


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("", Given(), "'the text' starts no launcher that is known here; give a command or a file of MaxText"),
        ("ls -l", Given(), "'ls -l' starts no launcher that is known here"),
        ("vllm serve", Given(machine=chips.H100), "does not name the model; add --model, as in --model llama-3-70b"),
        ("vllm serve gpt-2 -tp 2", Given(), "starts 2 GPUs (TP 2 x PP 1 x DP 1) and does not say which; add --machine"),
        ("vllm serve nobody/unknown", Given(machine=chips.H100), "line 1: --model 'nobody/unknown' is not a model of"),
        ("\n\nvllm serve gpt-2 \\\n -tp two", Given(machine=chips.H100), "line 4: -tp 'two' is not a number; write one"),
        ("vllm serve gpt-2 -tp 1.5", Given(machine=chips.H100), "-tp '1.5' is not a whole number; write one as in 8"),
        ("vllm serve gpt-2 -tp 0", Given(machine=chips.H100), "-tp '0' is below 1; write at least 1"),
        ("vllm serve gpt-2 --gpu-memory-utilization 90", Given(machine=chips.H100), "is not a share of the card"),
        ("vllm serve gpt-2 --kv-cache-dtype fp3", Given(machine=chips.H100), "is not known here; write one of auto"),
        ("vllm serve gpt-2 -tp $1", Given(machine=chips.H100), "'$1' is set by the shell, which does not run here"),
        ("vllm serve m --speculative-config '{x'", Given(machine=chips.H100), "is not valid JSON; correct the quotes"),
        (f"{LM}--tensor-model-parallel-size 7", H64, "tensor 7 · pipeline 1 · context 1 = 7 does not divide the 64"),
        (f"{LM}--global-batch-size 100", H64, "'100' leaves 100 sequences, which do not divide by 64; write a mult"),
        (f"{LM}--expert-model-parallel-size 2", H64, "needs experts, which Llama 3 8B does not have; write 1"),
        (LM.replace("--seq-length 4096", ""), H64, "does not set --seq-length; add it, or --sequence"),
        (LM.replace("--micro-batch-size 1", ""), H64, "does not set --micro-batch-size; add it, as in --micro-batch"),
        (LM, Given(machine=chips.H100), "does not name the model; write its shape (--num-layers, --hidden-size"),
        (LM, Given(model=MODEL, machine=chips.H100), "does not say how many GPUs it runs on; write the number in"),
        (LM, Given(model=MODEL), "does not say how many GPUs it runs on and not on which chip; add --machine"),
        ("torchrun --nproc_per_node 8 " + LM, Given(model=MODEL), "starts 8 GPUs and not on which chip; add --machine"),
        ("python -m MaxText.train b.yml ici_tensor_parallelism=3 per_device_batch_size=1", H64,
         "ici_tensor_parallelism=3 = 3 does not divide the 64 GPUs; write degrees whose product divides 64"),
        ("python -m MaxText.train b.yml ici_tensor_parallelism=-1 per_device_batch_size=1", H64, "are both -1; write"),
        ("python -m MaxText.train b.yml per_device_batch_size=0.01", H64, "is not a whole number of sequences on 64"),
        ("python -m MaxText.train b.yml remat_policy=some", H64, "is not known here; write one of minimal_with_conte"),
        ("python -m MaxText.train b.yml model_name=none-7b", Given(machine=H64.machine), "is not a model of the catal"),
        ("torchrun -m torchtitan.train --activation_checkpoint.mode half", H64, "is not known here; write one of none"),
        ("accelerate launch --use_fsdp --mixed_precision bf16 x.py --max_length 2048", H64, "does not say the batch"),
    ],
)  # fmt: skip
def test_an_error_says_what_was_read_and_what_to_write(text, given, said):
    with pytest.raises(LaunchError) as told:
        launch.read(text, given)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "line 1: it is not valid JSON"),
        ("a.json", "[1]", "the JSON holds no names with values; give a file of settings"),
        (
            "a.json",
            '{"x": 1}',
            "a.json has settings of no known launcher (x); write --launcher and one of maxtext",
        ),
        ("a.toml", "[a", "it is not valid TOML"),
        (
            "a.json",
            '{"train_batch_size": 8, "zero_optimization": {\n"stage": 4}}',
            "line 2: zero_optimization.stage '4'",
        ),
        ("a.json", '{"zero_optimization": {"stage": 1}}', "the configuration does not say the batch"),
    ],
)
def test_a_file_is_refused_with_its_line(name, text, said):
    with pytest.raises(LaunchError) as told:
        launch.read(text, Given(model=MODEL, machine=H64.machine, sequence=2048), name=name)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "it is not valid YAML"), ("- 1\n- 2\n", "holds no names with values"),
     ("a: &x {b: *x}\nici_fsdp_parallelism: 1", ""), ("!!python/object/apply:os.system ['true']", "")],
)  # fmt: skip
def test_yaml_is_data(text, said):
    pytest.importorskip("yaml")
    with pytest.raises(LaunchError) as told:
        launch.read(text, H64, name="a.yml")
    assert said in str(told.value)


def test_unknown_flags_are_listed_with_their_line():
    one = launch.read(
        "vllm serve gpt-2 \\\n  --frobnicate 3 \\\n  --max-num-seqs 4", Given(machine=chips.H100)
    )
    assert [(each.name, each.value, each.where) for each in one.account.unknown] == [
        ("--frobnicate", "3", "line 2")
    ]


def test_a_plan_that_cannot_be_is_told_as_the_launchers():
    text = f"{LM}--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 40"
    with pytest.raises(LaunchError, match="^line 1: --decoder-first-pipeline-num-layers|^Megatron-LM: "):
        launch.read(text, H64)
