"""Bad input: what was read, on which line, which rule it breaks, and what to write instead."""

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import Given, LaunchError
from scalingbook_lib.machines import chips, machine_names

MODEL = models.find("llama-3-8b")
H64 = Given(model=MODEL, machine=machine_names.read("h100:64").machine)
H1 = Given(machine=chips.H100)
VLLM, MAX = "vllm serve gpt-2", "python -m MaxText.train b.yml"
TITAN = "torchrun -m torchtitan.train --training.seq_len 4096 --parallelism.tensor_parallel_degree 4"
LM = "torchrun pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 "


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("", Given(), "the text is empty; give a launch command, a script or a config"),
        ("HloModule jit_step\n\nENTRY main {", Given(), "a program, not a launch command; write"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n", H1, "is a Git LFS pointer"),
        ("helm install vllm . --set model=m", H1, "'helm install vllm . --set model=m' starts no launcher"),
        ("composer a.py x.yaml train_loader.dataset.split=b", H1, "starts no launcher that is known here"),
        ("vllm bench serve --model gpt-2", H1, "`vllm bench` starts no server; give the `vllm serve`"),
        (f"{VLLM} --task embed", H1, "--task 'embed' generates no tokens, and only generation is counted"),
        (f"{VLLM} --runner pooling", H1, "--runner 'pooling' generates no tokens"),
        ("sglang serve --model gpt-2 --is-embedding", H1, "generates no tokens, and only generation is"),
        (f"{VLLM.replace('gpt-2', 'llama-3-8b')} -tp 3", H1, "-tp '3' splits the 32 heads and 8 KV heads of"),
        ("sglang serve --model llama-3-8b --tp 6", H1, "--tp '6' splits the 32 heads and 8 KV heads of"),
        ("trtllm-serve llama-3-8b --tp_size 5", H1, "--tp_size '5' splits the 32 heads and 8 KV heads of"),
        ("vllm serve llama-3-8b --max-model-len 2000000", H1, "times what the KV cache holds, and"),
        ("vllm serve llama-3-8b --dtype float32", H1, "no rate of fp32 matmuls for H100; write"),
        ("vllm serve ./llama", H1, "--model './llama' is a path, and no files of a model are read"),
        ("vllm serve --config a.yaml", H1, "--config 'a.yaml' is not here, and the command names no model"),
        (f"{LM} --nproc_per_node 8 --nnodes $NODES", H1, "'$NODES' is set by the shell, which does not run"),
        ("torchrun pretrain_bert.py --num-layers 2", H1, "'pretrain_bert.py' trains an encoder, whose"),
        ("torchrun pretrain_t5.py --num-layers 2", H1, "trains an encoder and a decoder, whose shape is"),
        ("torchrun pretrain_mamba.py --num-layers 2", H1, "trains a model with state-space layers"),
        (f"{LM} --num-layers 2 --hybrid-attention-ratio 0.08", H1, "'0.08' mixes kinds of layers, which"),
        (f"{LM} --use-checkpoint-args", H1, "takes the shape of the model from its checkpoint, which is not"),
        (f"{LM} --num-layers 2 --hidden-size 64 --num-attention-heads 2", H1, "without its vocabulary"),
        ("ls -l", Given(), "'ls -l' starts no launcher that is known here"),
        ("vllm serve", H1, "does not name the model; add --model, as in --model llama-3-70b"),
        (f"{VLLM} -tp 2", Given(), "starts 2 GPUs (TP 2 x PP 1 x DP 1) and does not say which; add"),
        ("vllm serve nobody/unknown", H1, "line 1: --model 'nobody/unknown' is not a model of"),
        (f"\n\n{VLLM} \\\n -tp two", H1, "line 4: -tp 'two' is not a number; write one"),
        (f"{VLLM} -tp", H1, "line 1: -tp has no value; write one, as in -tp 8"),
        (f"{VLLM} -tp --enforce-eager", H1, "line 1: -tp has no value; write one, as in -tp 8"),
        (f"{VLLM} --gpu-memory-utilization", H1, "has no value; write one, as in --gpu-memory-utilization"),
        (f"{LM}--fp16", H64, "--fp16 'true' is set together with --bf16; write one of the two"),
        ("accelerate launch --use_fsdp x.py --max_length 2048 --per_device_train_batch_size 1 --bf16 --fp16",
         H64, "--fp16 'true' is set together with --bf16; write one of the two"),
        (f"{LM}--max-position-embeddings 2048", H64, "'2048' is less than the sequence of 4,096 tokens"),
        (f"{LM}--pipeline-model-parallel-size 64", H64, "makes 64 parts, into which 32 layers do not divide"),
        (f"{LM}--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 3", H64,
         "--num-virtual-stages-per-pipeline-rank '3' makes 12 parts, into which 32 layers do not divide"),
        (f"{TITAN} --parallelism.enable_async_tensor_parallel --compile.enable false", H64,
         "--parallelism.enable_async_tensor_parallel 'true' needs a compiled model; add compile.enable"),
        (f"{TITAN} --parallelism.enable_async_tensor_parallel", H64, "needs a compiled model; add compile.e"),
        (f"{TITAN} --parallelism.enable_async_tensor_parallel --compile.enable --compile.components loss",
         H64, "needs a compiled model; add compile.enable=true, with model in compile.components"),
        (f"{VLLM} -tp 1.5", H1, "-tp '1.5' is not a whole number; write one as in 8"),
        (f"{VLLM} -tp 0", H1, "-tp '0' is below 1; write at least 1"),
        (f"{VLLM} --gpu-memory-utilization 90", H1, "is not a share of the card"),
        (f"{VLLM} --kv-cache-dtype fp3", H1, "is not known here; write one of auto"),
        (f"{VLLM} -tp $1", H1, "'$1' is set by the shell, which does not run here"),
        ("vllm serve m --speculative-config '{x'", H1, "is not valid JSON; correct the quotes"),
        (f"{LM}--tensor-model-parallel-size 7", H64, "tensor 7 · pipeline 1 · context 1 = 7 does not"),
        (f"{LM}--global-batch-size 100", H64, "'100' leaves 100 sequences, which do not divide by 64;"),
        (f"{LM}--expert-model-parallel-size 2", H64, "needs experts, which Llama 3 8B does not"),
        (LM.replace("--seq-length 4096", ""), H64, "does not set --seq-length; add it, or --sequence"),
        (LM.replace("--micro-batch-size 1", ""), H64, "does not set --micro-batch-size; add it, as"),
        (LM, H1, "does not name the model; write its shape (--num-layers, --hidden-size"),
        (LM, Given(model=MODEL, machine=chips.H100), "does not say on how many GPUs it runs; write"),
        (LM, Given(model=MODEL), "does not say on how many GPUs it runs, or on which; add"),
        ("torchrun --nproc_per_node 8 " + LM, Given(model=MODEL), "starts 8 GPUs and does not say which"),
        (f"{MAX} ici_tensor_parallelism=3 per_device_batch_size=1", H64,
         "ici_tensor_parallelism=3 = 3 does not divide the 64 GPUs; write degrees whose product divides 64"),
        (f"{MAX} ici_tensor_parallelism=-1 per_device_batch_size=1", H64, "are both -1; write"),
        (f"{MAX} per_device_batch_size=0.01", H64, "is not a whole number of sequences on 64"),
        (f"{MAX} remat_policy=some", H64, "is not known here; write one of minimal_with_conte"),
        (f"{MAX} model_name=none-7b", Given(machine=H64.machine), "is not a model of the catal"),
        ("torchrun -m torchtitan.train --activation_checkpoint.mode half", H64, "is not known here"),
        ("accelerate launch --use_fsdp x.py --max_length 2048", H64, "does not say the batch"),
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
            '{"train_batch_size": 64, "zero_optimization": {\n"stage": 4}}',
            "line 2: zero_optimization.stage '4'",
        ),
        (
            "a.json",
            '{"train_batch_size": 64, "bf16": {"enabled": true}, "fp16": {"enabled": true}}',
            "fp16.enabled 'true' is set together with bf16.enabled; write one of the two",
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
     ("!!python/object/apply:os.system ['true']", "")],
)  # fmt: skip
def test_yaml_is_data(text, said):
    with pytest.raises(LaunchError) as told:
        launch.read(text, H64, name="a.yml")
    assert said in str(told.value)


def test_a_yaml_file_that_contains_itself_is_read_to_an_end():
    one = launch.read("a: &x {b: *x}\nper_device_batch_size: 1\nmax_target_length: 8192", H64, name="a.yml")
    assert one.batch == 64


def test_unknown_flags_are_listed_with_their_line():
    one = launch.read(f"{VLLM} \\\n  --frobnicate 3 \\\n  --max-num-seqs 4", H1)
    assert [(each.name, each.value, each.where) for each in one.account.unknown] == [
        ("--frobnicate", "3", "line 2")
    ]


def test_a_plan_that_cannot_be_is_told_as_the_launchers():
    text = f"{LM}--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 40"
    with pytest.raises(LaunchError, match=r"^line 1: --decoder-first-pipeline-num-layers|^Megatron-LM: "):
        launch.read(text, H64)
