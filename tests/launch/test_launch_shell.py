"""A script is read into commands and words with their lines; nothing is executed."""

import pytest

from scalingbook_lib import launch, models
from scalingbook_lib.launch import LaunchError, commands, files, shell, slurm
from scalingbook_lib.machines import chips


def words(text):
    return [[word.text for word in command] for command in shell.read(text).commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve m # a comment", [["vllm", "serve", "m"]]),
        ("a --x '1 # 2' \"b c\"", [["a", "--x", "1 # 2", "b c"]]),
        ("a \\\n  --x 1 \\\n  --y 2", [["a", "--x", "1", "--y", "2"]]),
        ("A=1; B=$A$A\nc $B ${B}x ${C:-7}", [["c", "11", "11x", "7"]]),
        ("A=(--x 1\n  --y 2 # z\n)\nA+=(--z)\nc ${A[@]}", [["c", "--x", "1", "--y", "2", "--z"]]),
        ('export N=$((2 * 4 + 1)); c "$N"', [["c", "9"]]),
        ('A="x=1 \\\ny=2"\nc $A', [["c", "x=1", "y=2"]]),
        ('A="x 1"\nc "$A"', [["c", "x 1"]]),
        ("a && b | c & d; e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("X=1 Y=2 c --x 3 2>&1 > log", [["c", "--x", "3", ">", "log"]]),
        ("a '' b", [["a", "", "b"]]),
        ("if [ $Q ]; then\n  A=1\nelse\n  A=2\nfi\nc $A", [["c", "1"]]),
        ("a --x \\$HOME", [["a", "--x", "$HOME"]]),
        ("", []),
    ],
)
def test_words_are_those_of_a_shell(text, expected):
    assert words(text) == expected


def test_every_word_knows_its_line_also_through_a_variable():
    script = shell.read('A="\n--x 1\n--y 2"\n\nc $A \\\n  --z 3\n')
    (command,) = script.commands
    assert [(word.text, word.line) for word in command] == [
        ("c", 5), ("--x", 2), ("1", 2), ("--y", 3), ("2", 3), ("--z", 6), ("3", 6),
    ]  # fmt: skip


def test_what_only_a_shell_can_know_stays_as_it_is_written():
    script = shell.read('a --x $1 --y "$(nproc)" --z ${OUTSIDE} --w `date`\n')
    assert [word.text for word in script.commands[0]][2::2] == ["$1", "$(nproc)", "${OUTSIDE}", "`date`"]
    assert set(script.unresolved) == {"$1", "$(nproc)", "${OUTSIDE}", "`date`"}


def test_an_unresolved_value_stays_one_word_behind_a_variable():
    text = 'HEAD=$(scontrol show hostnames "$LIST" | head -n 1)\ntorchrun --rdzv_endpoint $HEAD:6000 a.py\n'
    assert [word.text for word in shell.read(text).commands[-1]][-1] == "a.py"
    assert len(shell.read(text).commands[-1]) == 4


@pytest.mark.parametrize(
    ("lines", "nodes", "each"),
    [
        ("#SBATCH --nodes=16\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=1", 16, 8),
        ("#SBATCH -N 4\n#SBATCH --gres=gpu:a100:4", 4, 4),
        ("#SBATCH --nodes 2\n#SBATCH --ntasks-per-node 8", 2, 8),
        ("#SBATCH --nodes=4\n#SBATCH --gpus=16", 4, 4),
        ("#SBATCH --nodes=2-4\n#SBATCH --gres=gpu:8", None, 8),
        ("# SBATCH --nodes=4", None, None),
    ],
)
def test_slurm_lines_are_an_allocation(lines, nodes, each):
    allocation = slurm.read(f"#!/bin/bash\n{lines}\n")
    assert (allocation.nodes, allocation.each) == (nodes, each)


def test_a_script_for_slurm_knows_its_nodes_and_gpus():
    head = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n"
    shape = "pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 "
    given = launch.Given(model=models.find("llama-3-8b"), machine=chips.H100)
    plain = launch.read(f"{head}srun python {shape}", given)
    assert plain.machine.chips == 32
    assert any("#SBATCH" in one for one in plain.account.assumed)
    starts = "srun torchrun --nproc_per_node 4 --nnodes $SLURM_JOB_NUM_NODES "
    said = launch.read(f"{head}{starts}{shape}", given)  # the command's own numbers count
    assert said.machine.chips == 16
    assert launch.read(f"{head}torchrun --nproc_per_node 4 {shape}", given).machine.chips == 4


def test_a_here_document_is_a_file_of_the_script():
    script = shell.read("cat > ./a.yml <<EOF\nx: 1\ny: 2\nEOF\nrun --config ./a.yml\n")
    assert script.files["./a.yml"].text == "x: 1\ny: 2\n"
    assert script.files["./a.yml"].line == 2
    assert words("cat <<'E' > a\nx\nE\nb\n")[-1] == ["b"]


@pytest.mark.parametrize("text", ["a 'b", 'x\na "b\nc', "a --x '"])
def test_an_open_quote_is_refused_with_its_line(text):
    with pytest.raises(LaunchError, match=r"^line \d+: a (single|double) quote is not closed; close it$"):
        shell.read(text)


def test_variables_cannot_explode():
    bomb = "A=" + "x" * 1000 + "\n" + "".join("A=$A$A$A$A$A$A$A$A\n" for _ in range(8)) + "vllm $A"
    with pytest.raises(LaunchError, match="expand to more than 1,000,000 characters"):
        shell.read(bomb)


def test_arithmetic_of_a_script_is_of_small_whole_numbers_alone():
    assert words("c $((2**999999999)) $((1/0)) $((__import__('os')))")[0][0] == "c"
    assert "$((1/0))" in shell.read("c $((1/0))").unresolved


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        ("vllm serve m", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.2 --model m", "vllm"),
        ("bash -c 'cd /x && vllm serve m -tp 2'", "vllm"),
        ("python3 -m sglang.launch_server --model-path m", "sglang"),
        ("sglang serve --model-path m", "sglang"),
        ("mpirun -n 1 trtllm-serve m", "tensorrt_llm"),
        ("torchrun pretrain_gpt.py --seq-length 1", "megatron"),
        ("torchrun run.py model.tensor_model_parallel_size=2", "megatron_bridge"),
        ("torchrun -m torchtitan.train --training.seq_len 1", "torchtitan"),
        ("accelerate launch --use_fsdp train.py", "accelerate"),
        ("deepspeed --num_gpus 8 train.py --deepspeed ds.json", "deepspeed"),
        ("python -m MaxText.train base.yml model_name=llama3-8b", "maxtext"),
        ("per_device_batch_size=1 ; python x.py per_device_batch_size=1", "maxtext"),
    ],
)
def test_a_launcher_is_recognized_by_its_program_or_its_flags(text, launcher):
    assert commands.from_text(text).launcher == launcher


def test_the_last_launch_of_a_script_counts_and_the_answer_says_so():
    command = commands.from_text("vllm serve a\nvllm serve b -tp 2\n")
    assert [setting.value for setting in command.settings] == ["b", "2"]
    assert command.notes == ("The script has 2 launch commands; the last one, on line 2, is read.",)


@pytest.mark.parametrize(
    ("name", "text", "launcher"),
    [
        ("a.toml", "[training]\nseq_len = 1", "torchtitan"),
        ("a.json", '{"zero_optimization": {"stage": 1}}', "deepspeed"),
    ],
)
def test_a_file_belongs_to_the_launcher_that_knows_its_names(name, text, launcher):
    assert commands.from_file(name, text).launcher == launcher


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        ("per_device_batch_size: 1\nici_fsdp_parallelism: -1\n", "maxtext"),
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n", "accelerate"),
        ("tensor-parallel-size: 2\nmax-num-seqs: 4\n", "vllm"),
        ("model-path: m\nmem-fraction-static: 0.8\n", "sglang"),
        ("kv_cache_config:\n  dtype: fp8\nenable_attention_dp: true\n", "tensorrt_llm"),
    ],
)
def test_a_yaml_file_belongs_to_the_launcher_that_knows_most_of_it(text, launcher):
    assert commands.from_file("a.yaml", text).launcher == launcher


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# a server\n\nmodel: a/b\ntensor_parallel_size: 2", "yaml"),
        ("---\nmodel: a/b", "yaml"),
        ("# a run\n[training]\nseq_len = 8192", "toml"),
        ('{\n  "zero_optimization": {"stage": 3}\n}', "json"),
        ("{ vllm serve a/b -tp 2; }", None),
        ("[ -d /scratch ] && vllm serve a/b", None),
        ("TP=2 vllm serve a/b -tp $TP", None),
        (": ${TP:=2}\nvllm serve a/b -tp $TP", None),
        ("#!/bin/bash\nvllm serve a/b", None),
        ("", None),
    ],
)
def test_the_first_line_shows_whether_a_text_is_a_config(text, kind):
    assert files.kind_of(text) == kind
